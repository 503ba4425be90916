// What an attempt changed: as one multi-diff, as marks beside the lines, and taken back file by file.

import * as vscode from 'vscode';
import type { ChangedFile, Changes } from './ours';
import type { TaskView } from './protocol';
import { Given, Here } from './here';
import type { Orders } from './orders';
import type { Server } from './server';
import { keyOf, newest, real, Tasks } from './tasks';
import { can } from './tree';
import { cut, plain, several, unlinked } from './words';

const PAUSE_MS = 500;
const LETTERS: Record<ChangedFile['kind'], string> = { added: 'A', modified: 'M', deleted: 'D', type: 'T' };

/** A file in the source control view. */
interface Changed extends vscode.SourceControlResourceState {
  scm: true;
  changes: Changes;
  file: ChangedFile;
}

export class ChangedFiles implements vscode.Disposable, vscode.QuickDiffProvider {
  /** What is marked now; none if nothing is changed. */
  current: Changes | undefined;
  private source: vscode.SourceControl | undefined;
  private group: vscode.SourceControlResourceGroup | undefined;
  private due: NodeJS.Timeout | undefined;
  private asked = 0;
  /** What was opened last to be looked at. */
  private shown: { title: string; task: TaskView } | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChange = this.changed.event;

  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
    private readonly here: Here,
    private readonly orders: Orders,
  ) {
    tasks.onChange(() => this.soon());
    tasks.onActivity(() => this.soon());
  }

  /** Opens what an attempt changed, from its checkpoint to what it left, or to now while it works. */
  async show(given: Given): Promise<void> {
    const task = await this.here.target(given, one => can(one).includes('attempts'));
    if (!task) return;
    // Of a task that is over, everything; before, what is to be decided on.
    const whole = given['whole'] === true || (given['stage'] === undefined && ['completed', 'archived'].includes(task.state));
    const at = { stage: '', attempt: 0, ...given, whole, project: task.project, task: task.id };
    const changes = await this.orders.ask(() => this.server.request<Changes>('promptside/changes', at));
    if (!changes) return;
    const stage = task.stages.find(one => one.id === changes.stage)?.name ?? changes.stage;
    const name = whole ? 'all stages' : `${stage} ${changes.attempt}`;
    if (changes.files.length === 0) {
      this.orders.say(whole ? `“${cut(task.title, 60)}” changed no files.` : `${stage}, attempt ${changes.attempt}, changed no files.`);
      return;
    }
    const sides = changes.files.map(file => [
      vscode.Uri.parse(file.uri),
      file.kind === 'added' ? undefined : alike(vscode.Uri.parse(file.before), vscode.Uri.parse(file.after)),
      file.kind === 'deleted' ? undefined : vscode.Uri.parse(file.after),
    ]);
    const title = `${cut(task.title, 40)}: ${name}`;
    this.lookedAt(task, title);
    await vscode.commands.executeCommand('vscode.changes', title, sides);
  }

  /** Notes what of a task is opened under this title, to be looked at before a decision. */
  lookedAt(task: TaskView, title: string): void {
    this.shown = { title, task };
  }

  /** Whether that is what the person looks at. */
  isBefore(task: TaskView): boolean {
    const label = vscode.window.tabGroups.activeTabGroup.activeTab?.label;
    return this.shown !== undefined && keyOf(this.shown.task) === keyOf(task) && label?.startsWith(this.shown.title) === true;
  }

  /** One file of it beside what it was. */
  async open(argument: unknown): Promise<void> {
    const { file, changes } = argument as Changed;
    const title = `${file.path} (before ${changes.stage} ${changes.attempt} ↔ ${changes.running ? 'now' : 'after'})`;
    await vscode.commands.executeCommand('vscode.diff', vscode.Uri.parse(file.before), vscode.Uri.parse(file.after), title);
  }

  /** Takes files back: those that the person names, or these. */
  async undo(given: Given): Promise<void> {
    const task = await this.here.target(given, one => can(one).includes('undo'));
    if (!task) return;
    const offer = task.offers.find(one => one.command === 'promptside.undo');
    const at = { ...offer?.args, ...given, project: task.project, task: task.id };
    const changes = await this.orders.ask(() => this.server.request<Changes>('promptside/changes', at));
    if (!changes) return;
    const items = changes.files.map(file => ({ label: plain(file.path), description: counts(file), picked: true, path: file.path }));
    const title = `Undo what attempt ${changes.attempt} of ${changes.stage} changed`;
    const chosen = await vscode.window.showQuickPick(items, { title, placeHolder: 'Files that will be as before it', canPickMany: true });
    if (!chosen || chosen.length === 0) return;
    await this.takeBack(changes, chosen.map(item => item.path));
  }

  /** One or several files from the source control view. */
  async undoFiles(resources: unknown[]): Promise<void> {
    const meant = resources.filter((one): one is Changed => typeof one === 'object' && one !== null && 'scm' in one);
    const first = meant[0];
    if (!first) return;
    const names = meant.map(one => one.file.path);
    const words = names.length === 1 ? names[0] : several(names.length, 'file');
    const button = 'Take Back';
    const answer = await vscode.window.showWarningMessage(unlinked(`${words} will be as before attempt ${first.changes.attempt}.`), button, 'Cancel');
    if (answer === button) await this.takeBack(first.changes, names);
  }

  provideOriginalResource(uri: vscode.Uri): vscode.Uri | undefined {
    const file = this.fileAt(uri);
    return file && file.kind !== 'deleted' ? vscode.Uri.parse(file.before) : undefined;
  }

  /** The file of the current changes that a document is, if it is one. */
  fileAt(uri: vscode.Uri): ChangedFile | undefined {
    if (uri.scheme !== 'file') return undefined;
    const path = real(uri.fsPath);
    return this.current?.files.find(file => real(vscode.Uri.parse(file.uri).fsPath) === path);
  }

  dispose(): void {
    clearTimeout(this.due);
    this.source?.dispose();
  }

  private async takeBack(changes: Changes, paths: string[]): Promise<void> {
    const { project, task, stage, attempt } = changes;
    await this.orders.give('undo', { project, task, stage, attempt, paths }, this.tasks.task(project, task));
    this.soon();
  }

  private soon(): void {
    this.due ??= setTimeout(() => {
      this.due = undefined;
      void this.look();
    }, PAUSE_MS);
  }

  /** Asks what is changed in the task before the person, else in the one that changed something last. */
  private async look(): Promise<void> {
    const number = ++this.asked;
    const meant = this.meant();
    let found: Changes | undefined;
    if (meant && this.server.state === 'running' && this.tasks.up) {
      try {
        const { task, stage, attempt } = meant;
        const at = { project: task.project, task: task.id, stage, attempt };
        found = await this.server.request<Changes>('promptside/changes', at);
      } catch {
        found = this.current; // it is asked again with the next change
      }
    }
    if (number !== this.asked) return;
    this.draw(meant?.task, found && found.files.length > 0 ? found : undefined);
  }

  private meant(): { task: TaskView; stage: string; attempt: number } | undefined {
    const open = this.tasks.all.filter(task => this.tasks.isHere(task) && (task.state === 'taken' || task.state === 'paused'));
    const here = this.here.active;
    const among = here && open.includes(here) ? [here] : open;
    const found = among.flatMap(task =>
      task.stages.flatMap(stage =>
        stage.attempts
          .filter(attempt => attempt.changes.length > 0 || attempt.ended === null)
          .map(attempt => ({ task, stage: stage.id, attempt: attempt.n, at: attempt.started ?? 0, now: attempt === newest(task)?.attempt })),
      ),
    );
    return found.sort((a, b) => a.at - b.at).at(-1);
  }

  private draw(task: TaskView | undefined, changes: Changes | undefined): void {
    const before = JSON.stringify(this.current);
    this.current = changes;
    if (before === JSON.stringify(changes)) return;
    const paths = changes?.files.map(file => vscode.Uri.parse(file.uri).fsPath) ?? [];
    void vscode.commands.executeCommand('setContext', 'promptside.changed', paths.length > 0);
    void vscode.commands.executeCommand('setContext', 'promptside.changedPaths', paths);
    if (!changes || !task || changes.project !== this.source?.rootUri?.fsPath) {
      this.source?.dispose();
      this.source = this.group = undefined;
    }
    if (!changes || !task) {
      this.changed.fire();
      return;
    }
    if (!this.source || !this.group) {
      this.source = vscode.scm.createSourceControl('promptside', 'Promptside', vscode.Uri.file(changes.project));
      this.source.inputBox.visible = false;
      this.source.quickDiffProvider = this;
      this.group = this.source.createResourceGroup('changes', '');
    }
    const name = task.stages.find(stage => stage.id === changes.stage)?.name ?? changes.stage;
    this.group.label = `${name}, attempt ${changes.attempt}${changes.running ? ', at work' : ''}`;
    this.group.resourceStates = changes.files.map(file => state(changes, file));
    this.source.count = 0; // what the agent changed is git's to count
    this.changed.fire();
  }
}

function state(changes: Changes, file: ChangedFile): Changed {
  const made: Changed = {
    scm: true,
    changes,
    file,
    resourceUri: vscode.Uri.parse(file.uri),
    decorations: { strikeThrough: file.kind === 'deleted', tooltip: `${LETTERS[file.kind]} ${counts(file)}`.trim() },
    contextValue: 'changed',
  };
  return { ...made, command: { command: 'promptside.openChange', title: 'Open Change', arguments: [made] } };
}

function counts(file: ChangedFile): string {
  return file.added === null || file.removed === null ? file.kind : `+${file.added} −${file.removed}`;
}

/** The address of a file before, with the path of the one after: with another one it would look renamed. */
function alike(before: vscode.Uri, after: vscode.Uri): vscode.Uri {
  if (before.scheme !== after.scheme || before.path === after.path) return before;
  const [, , stage, attempt] = before.path.split('/');
  return before.with({ path: after.path, query: `${before.query}&of=${stage}/${attempt}` });
}
