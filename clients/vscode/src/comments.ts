// Comments on lines of what an attempt changed; they are collected, and go to the agent together as one redo.

import * as path from 'node:path';
import * as vscode from 'vscode';
import type { ChangedFiles } from './changes';
import type { Changes } from './ours';
import type { Orders } from './orders';
import type { LineComment, TaskView } from './protocol';
import { real, Tasks } from './tasks';

class Note implements vscode.Comment {
  mode = vscode.CommentMode.Preview;
  author = { name: 'You' };
  label = 'goes with the redo';
  contextValue = 'note';

  constructor(
    public body: string,
    readonly thread: vscode.CommentThread,
    readonly of: Changes,
  ) {}
}

export class LineComments implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController('promptside', 'Promptside');
  private readonly threads = new Set<vscode.CommentThread>();

  constructor(
    private readonly changes: ChangedFiles,
    private readonly tasks: Tasks,
    private readonly orders: Orders,
  ) {
    this.controller.options = { prompt: 'Comment for the agent', placeHolder: 'What should be different here?' };
    this.controller.commentingRangeProvider = {
      provideCommentingRanges: document => this.ranges(document),
    };
    orders.comments = task => this.collected(task);
    changes.onChange(() => this.tell());
  }

  /** Begins one at the cursor; the editor's own command also puts the cursor into it. */
  async begin(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor) return;
    if (this.changes.fileAt(editor.document.uri)) await vscode.commands.executeCommand('workbench.action.addComment');
    else this.orders.say('No attempt has changed this file, so there is nobody to comment it to.');
  }

  /** Keeps what was written. */
  add({ thread, text }: vscode.CommentReply): void {
    const changes = this.changes.current;
    if (!text.trim() || !changes) return;
    thread.comments = [...thread.comments, new Note(text, thread, changes)];
    thread.label = 'Comment for the agent';
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
    this.threads.add(thread);
    this.tell();
  }

  remove(note: Note): void {
    note.thread.comments = note.thread.comments.filter(one => one !== note);
    if (note.thread.comments.length === 0) {
      this.threads.delete(note.thread);
      note.thread.dispose();
    }
    this.tell();
  }

  /** Sends all of them: as a redo where the attempt has ended, else to the agent at work. */
  async send(): Promise<void> {
    const first = this.notes[0];
    const task = first && this.tasks.task(first.of.project, first.of.task);
    if (!task) {
      this.orders.say('There is no comment to send.');
      return;
    }
    const redo = task.offers.some(offer => offer.command === 'promptside.redo');
    await this.orders.task(redo ? 'redo' : 'interrupt', { project: task.project, task: task.id });
  }

  dispose(): void {
    this.controller.dispose();
  }

  private get notes(): Note[] {
    return [...this.threads].flatMap(thread => thread.comments as readonly Note[]);
  }

  private collected(task: TaskView): { comments: LineComment[]; sent: () => void } {
    const mine = this.notes.filter(note => note.of.project === task.project && note.of.task === task.id);
    const sent = () => {
      for (const note of mine) this.remove(note);
    };
    return { comments: mine.map(note => comment(note)), sent };
  }

  private ranges(document: vscode.TextDocument): vscode.Range[] {
    const file = this.changes.fileAt(document.uri);
    return file ? [new vscode.Range(0, 0, Math.max(0, document.lineCount - 1), 0)] : [];
  }

  private tell(): void {
    void vscode.commands.executeCommand('setContext', 'promptside.comments', this.notes.length);
  }
}

function comment(note: Note): LineComment {
  const { uri, range } = note.thread;
  const file = path.relative(note.of.project, real(uri.fsPath)).split(path.sep).join('/');
  const document = vscode.workspace.textDocuments.find(one => one.uri.toString() === uri.toString());
  const [line, last] = range ? [range.start.line, range.end.line] : [-1, -1];
  const lines = document && range ? lineTexts(document, line, last) : [];
  return { path: file, text: note.body, line: line + 1, end_line: last > line ? last + 1 : 0, quote: lines.join('\n') };
}

function lineTexts(document: vscode.TextDocument, first: number, last: number): string[] {
  const found: string[] = [];
  for (let at = first; at <= Math.min(last, document.lineCount - 1); at++) found.push(document.lineAt(at).text);
  return found;
}
