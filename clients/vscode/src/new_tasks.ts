// A new task: begun as a draft where the person is, made of that draft, or played as a rehearsal.

import * as vscode from 'vscode';
import type { Given, Here } from './here';
import type { Orders } from './orders';
import type { Shown } from './ours';
import type { Panels } from './panel';
import { placeIn } from './place';
import type { Server } from './server';
import type { Tasks } from './tasks';

/** The task that was recorded: it is made at once, since there is nothing to be written. */
const REHEARSAL = {
  agent: 'rehearsal:standard',
  title: 'Leave common words out of the list',
  description: 'The most frequent words of almost any text are “the”, “and”, “of”, “to”. Let me name words that wordcount leaves out.',
};

export class NewTasks {
  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
    private readonly here: Here,
    private readonly orders: Orders,
    private readonly panels: Panels,
  ) {}

  /** Begins a draft, with what is known of it already. */
  async draft(at: Given): Promise<void> {
    if (!this.orders.mayAct()) return;
    const where = at['uri'] === undefined && at['project'] === undefined ? await this.where() : {};
    if (!where) return;
    const place = at['uri'] ?? where['uri'];
    const file = typeof place === 'string' ? vscode.Uri.parse(place) : vscode.Uri.file(String(at['project'] ?? ''));
    const pipeline = vscode.workspace.getConfiguration('promptside', file).get('pipeline.default', '');
    const shown = await this.orders.ask(() => this.server.order<Shown>('newTask', { ...(pipeline ? { pipeline } : {}), ...where, ...at }));
    if (shown && !shown.shown) await vscode.window.showTextDocument(vscode.Uri.parse(shown.uri), { preview: true });
  }

  /** Makes the task that a draft describes. */
  async create(at: Given): Promise<void> {
    if (!this.orders.mayAct()) return;
    const uri = String(at['uri'] ?? vscode.window.activeTextEditor?.document.uri.toString() ?? '');
    const document = vscode.workspace.textDocuments.find(one => one.uri.toString() === vscode.Uri.parse(uri).toString());
    if (document?.isDirty) await document.save();
    const id = await this.orders.ask(() => this.server.order<number>('createTask', { ...at, uri }));
    if (id === undefined) return;
    await closeTab(uri);
    const task = await this.tasks.comes(() => this.tasks.ofFile(vscode.Uri.parse(uri)).find(one => one.id === id));
    if (!task) return;
    this.orders.took('newTask', task);
    this.panels.show(task); // the draft is closed: in its place stands what became of it
    if (at['run']) this.orders.took('run', task);
  }

  /** Makes the task that was recorded, and shows it. */
  async rehearse(): Promise<void> {
    const project = this.orders.mayAct() ? await this.here.project('Rehearse in which project?') : undefined;
    if (!project) return;
    const uri = vscode.Uri.file(project);
    const own = (await vscode.workspace.fs.readDirectory(uri)).filter(([name]) => !['.git', '.promptside'].includes(name));
    if (own.length > 0) {
      const words = 'A rehearsal is played on a sample project, best in an empty folder. Here its edits are made only where they fit.';
      const answer = await vscode.window.showInformationMessage(words, 'Open Folder…', 'Rehearse Here');
      if (answer === 'Open Folder…') await vscode.commands.executeCommand('workbench.action.files.openFolder');
      if (answer !== 'Rehearse Here') return;
    }
    const made = await this.orders.ask(() => this.server.order<{ task: number }>('newTask', { ...REHEARSAL, uri: uri.toString() }));
    const task = made && (await this.tasks.comes(() => this.tasks.ofFile(uri).find(one => one.id === made.task)));
    if (task) this.panels.show(task);
  }

  /** Where a new task belongs: at the cursor in a file of the window, else in the project; undefined if none was chosen. */
  private async where(): Promise<Given | undefined> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.uri.scheme === 'file' && vscode.workspace.getWorkspaceFolder(editor.document.uri)) return placeIn(editor);
    const project = await this.here.project('A task for which project?');
    if (!project) return project === '' ? {} : undefined;
    // The server takes the folder that a file is in; this one is ours, so nothing of it goes into the task.
    return { uri: vscode.Uri.joinPath(vscode.Uri.file(project), '.promptside', 'DESK.md').toString() };
  }
}

async function closeTab(uri: string): Promise<void> {
  const wanted = vscode.Uri.parse(uri).toString();
  const tabs = vscode.window.tabGroups.all.flatMap(group => group.tabs);
  const mine = tabs.filter(tab => tab.input instanceof vscode.TabInputText && tab.input.uri.toString() === wanted);
  if (mine.length > 0) await vscode.window.tabGroups.close(mine);
}
