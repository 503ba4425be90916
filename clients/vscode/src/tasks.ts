// The tasks as the server tells them, whole; nothing is worked out here but which of them are meant.

import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import type { DaemonNews } from './ours';
import type { Activity, AttemptView, StageView, TaskView } from './protocol';
import type { Server } from './server';

export interface AttemptAt {
  stage: StageView;
  attempt: AttemptView;
}

/** How long after an order its effect is still what was ordered. */
const COMES_MS = 10_000;

export class Tasks {
  /** What was told of the daemon last; none before the server has said anything. */
  daemon: DaemonNews | undefined;
  private readonly known = new Map<string, TaskView>();
  private readonly doing = new Map<string, Activity>();
  private readonly changed = new vscode.EventEmitter<TaskView | undefined>();
  private readonly active = new vscode.EventEmitter<Activity>();
  private folders: { name: string; path: string }[] = [];
  /** A task that changed; none if it may be any of them, or the daemon. */
  readonly onChange = this.changed.event;
  readonly onActivity = this.active.event;

  constructor(server: Server) {
    this.look();
    vscode.workspace.onDidChangeWorkspaceFolders(() => {
      this.look();
      this.changed.fire(undefined);
    });
    server.on('promptside/task', ({ task }) => {
      this.known.set(keyOf(task), task);
      if (!running(task)) this.doing.delete(keyOf(task));
      this.changed.fire(task);
    });
    server.on('promptside/gone', ({ project }) => {
      for (const [key, task] of this.known) if (task.project === project) this.known.delete(key);
      this.changed.fire(undefined);
    });
    server.on('promptside/activity', ({ activity }) => {
      this.doing.set(key(activity.project, activity.task), activity);
      this.active.fire(activity);
    });
    server.on('promptside/daemon', news => {
      this.daemon = news;
      this.changed.fire(undefined);
    });
    server.onState(state => {
      if (state !== 'running') this.daemon = undefined;
      if (state === 'missing') this.known.clear();
      this.changed.fire(undefined);
    });
  }

  get up(): boolean {
    return this.daemon?.up ?? true; // before it is told, nothing is said to be wrong
  }

  task(project: string, id: number): TaskView | undefined {
    return this.known.get(key(project, id));
  }

  /** Those of this window's folders, and of others what waits: one inbox over all projects. */
  get all(): TaskView[] {
    return [...this.known.values()].filter(task => this.isHere(task) || task.waiting_for !== null);
  }

  /** What waits for the person, this window's first, each longest first. */
  get waiting(): TaskView[] {
    const elsewhere = (task: TaskView) => Number(!this.isHere(task));
    return this.all
      .filter(task => task.waiting_for !== null)
      .sort((a, b) => elsewhere(a) - elsewhere(b) || a.waiting_for!.since - b.waiting_for!.since);
  }

  /** The project's name, where it is not clear whose task it is: there are several, or it is not of this window. */
  projectName({ project }: TaskView): string {
    const others = [...new Set(this.all.map(task => task.project))].filter(other => other !== project);
    if (others.length === 0 && this.holds(project)) return '';
    const name = this.nameOf(project);
    return others.some(other => this.nameOf(other) === name) ? path.join(path.basename(path.dirname(project)), name) : name;
  }

  /** As the window calls the folder, if it is one. */
  nameOf(project: string): string {
    return this.folders.find(folder => folder.path === project)?.name ?? path.basename(project);
  }

  /** The projects of this window's folders; a folder that is none yet stands for itself. */
  get projects(): string[] {
    const known = [...new Set([...this.known.values()].map(task => task.project))];
    const found = this.folders.flatMap(folder => {
      const around = known.filter(project => isBelow(folder.path, project)).sort((a, b) => b.length - a.length);
      const below = known.filter(project => isBelow(project, folder.path));
      return around.slice(0, 1).concat(below, around.length + below.length > 0 ? [] : [folder.path]);
    });
    return [...new Set(found)];
  }

  activity(task: TaskView): Activity | undefined {
    return this.doing.get(keyOf(task));
  }

  /** Whether its project is in this window: a folder of it, one above it, or no folder is open. */
  isHere(task: TaskView): boolean {
    return this.holds(task.project);
  }

  /** The task that a document is of. */
  ofDocument(uri: vscode.Uri | undefined): TaskView | undefined {
    if (!uri) return undefined;
    if (uri.scheme === 'promptside') {
      const project = uri.query.replace(/^project=/, '');
      const number = [uri.authority, ...uri.path.split('/')].find(part => /^\d+$/.test(part));
      return [...this.known.values()].find(
        task => String(task.id) === number && (task.project === project || project === ''),
      );
    }
    if (uri.scheme !== 'file') return undefined;
    const file = real(uri.fsPath);
    return [...this.known.values()].find(task => isBelow(file, path.join(task.project, task.directory)));
  }

  /** The tasks of the project that a file is in, the innermost one. */
  ofFile(uri: vscode.Uri): TaskView[] {
    const file = uri.scheme === 'file' ? real(uri.fsPath) : '';
    const around = [...this.known.values()].filter(task => isBelow(file, task.project));
    const most = Math.max(0, ...around.map(task => task.project.length));
    return around.filter(task => task.project.length === most);
  }

  /** What comes with the next news, if it comes soon. */
  comes<T>(find: () => T | undefined): Promise<T | undefined> {
    return new Promise(resolve => {
      const end = (found: T | undefined) => {
        listening.dispose();
        clearTimeout(timer);
        resolve(found);
      };
      const listening = this.changed.event(() => {
        const found = find();
        if (found !== undefined) end(found);
      });
      const timer = setTimeout(() => end(undefined), COMES_MS);
      const now = find();
      if (now !== undefined) end(now);
    });
  }

  private holds(project: string): boolean {
    return (
      this.folders.length === 0 ||
      this.folders.some(folder => isBelow(project, folder.path) || isBelow(folder.path, project))
    );
  }

  private look(): void {
    this.folders = (vscode.workspace.workspaceFolders ?? []).map(({ name, uri }) => ({ name, path: real(uri.fsPath) }));
  }
}

export function keyOf(task: TaskView): string {
  return key(task.project, task.id);
}

export function running(task: TaskView): boolean {
  return task.state === 'taken' && task.waiting_for === null;
}

export function stageOf(task: TaskView, id: string | null = task.waiting_for?.stage ?? task.current): StageView | undefined {
  return task.stages.find(stage => stage.id === id);
}

/** The attempt that started last, of all stages or of one. */
export function newest(task: TaskView, of = ''): AttemptAt | undefined {
  const all = task.stages.flatMap(stage => stage.attempts.map(attempt => ({ stage, attempt })));
  const meant = all.filter(({ stage }) => of === '' || stage.id === of);
  return meant.sort((a, b) => (a.attempt.started ?? Infinity) - (b.attempt.started ?? Infinity)).at(-1);
}

/** The document that a task waits with, else its own. */
export function documentOf(task: TaskView): vscode.Uri {
  return fileOf(task, task.waiting_for?.document ?? `${task.directory}/task.md`);
}

/** A file of a task's project, as this window names it: below the folder that is open, also where that is a link. */
export function fileOf(task: TaskView, name: string): vscode.Uri {
  const file = path.join(task.project, name);
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    const there = real(folder.uri.fsPath);
    if (isBelow(file, there)) return vscode.Uri.joinPath(folder.uri, path.relative(there, file).split(path.sep).join('/'));
  }
  return vscode.Uri.file(file);
}

export function isBelow(file: string, directory: string): boolean {
  return file === directory || file.startsWith(directory.endsWith(path.sep) ? directory : directory + path.sep);
}

export function real(file: string): string {
  try {
    return fs.realpathSync(file);
  } catch {
    return file; // a file that is not there yet has no other name
  }
}

function key(project: string, id: number): string {
  return `${id} ${project}`;
}
