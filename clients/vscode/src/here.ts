// Which task a command without arguments is about, and what the palette and the menus may offer.

import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Server } from './server';
import { Tasks, documentOf, isBelow, real, stageOf } from './tasks';
import type { Node } from './tree';
import { can } from './tree';
import type { TaskView } from './protocol';
import { cut, need, plain, taskIcon } from './words';

/** Arguments of a command: what a lens or another extension gives, or an entry of the tree. */
export type Given = Record<string, unknown>;

const COMMANDS = [
  'run', 'approve', 'send', 'allow', 'deny', 'redo', 'retry', 'interrupt', 'stop', 'pause', 'resume', 'skip', 'goBack',
  'takeBack', 'ready', 'abandon', 'archive', 'undo', 'takeOver', 'giveBack',
];

export class Here {
  /** The task of the panel that is visible; the panel sets it. */
  panel: TaskView | undefined;
  private readonly told = new Map<string, unknown>();
  private due: NodeJS.Timeout | undefined;

  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
  ) {
    tasks.onChange(() => this.soon());
    server.onState(() => this.soon());
    vscode.window.onDidChangeActiveTextEditor(() => this.soon());
    vscode.window.tabGroups.onDidChangeTabs(() => this.soon());
    this.tell();
  }

  /** The task whose document is before the person. */
  get active(): TaskView | undefined {
    const editor = this.tasks.ofDocument(vscode.window.activeTextEditor?.document.uri);
    if (editor) return editor;
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    return input instanceof vscode.TabInputTextDiff ? this.tasks.ofDocument(input.modified) : undefined;
  }

  /** The one that is meant; undefined if the person chose none. `fits` narrows what may be chosen. */
  async target(given: Given, fits: (task: TaskView) => boolean = () => true): Promise<TaskView | undefined> {
    const named = this.named(given);
    if (named) return named;
    const before = this.active ?? this.live(this.panel);
    if (before) return before;
    const possible = this.tasks.all.filter(task => task.state !== 'archived' && fits(task));
    const waiting = possible.filter(task => task.waiting_for !== null);
    if (waiting.length === 1) return waiting[0];
    return this.pick(possible.length > 0 ? possible : this.tasks.all);
  }

  /** The task that arguments name. */
  named(given: Given): TaskView | undefined {
    const { project, task, uri } = given;
    if (typeof project === 'string' && typeof task === 'number') return this.tasks.task(project, task);
    if (typeof task === 'number') return this.tasks.all.find(one => one.id === task);
    return typeof uri === 'string' ? this.tasks.ofDocument(vscode.Uri.parse(uri)) : undefined;
  }

  async pick(tasks: TaskView[], title = 'Which task?'): Promise<TaskView | undefined> {
    if (tasks.length <= 1) return tasks[0];
    const sorted = [...tasks].sort((a, b) => Number(!a.waiting_for) - Number(!b.waiting_for) || b.state_since - a.state_since);
    const items = sorted.map(task => ({
      label: plain(cut(task.title, 80)),
      description: [`#${task.id}`, this.tasks.projectName(task)].filter(Boolean).join(' · '),
      detail: plain([stageOf(task)?.name, task.waiting_for ? need(task.waiting_for) : task.state].filter(Boolean).join(' · ')),
      iconPath: taskIcon(task),
      task,
    }));
    const options = { title, placeHolder: 'Task', matchOnDescription: true, matchOnDetail: true };
    return (await vscode.window.showQuickPick(items, options))?.task;
  }

  /**
   * What a command is about that needs no task: the project before the person, else the only one, else the one they
   * choose. Undefined if they chose none; empty where no folder is open, which the server says.
   */
  async project(title = 'Which project?'): Promise<string | undefined> {
    const task = this.active ?? this.live(this.panel);
    if (task) return task.project;
    const { projects } = this.tasks;
    const editor = vscode.window.activeTextEditor?.document.uri;
    const file = editor?.scheme === 'file' ? real(editor.fsPath) : '';
    const around = projects.filter(project => isBelow(file, project)).sort((a, b) => b.length - a.length);
    if (around[0] !== undefined || projects.length <= 1) return around[0] ?? projects[0] ?? '';
    const items = projects.map(project => ({ label: plain(this.tasks.nameOf(project)), description: plain(path.dirname(project)), project }));
    return (await vscode.window.showQuickPick(items, { title }))?.project;
  }

  private live(task: TaskView | undefined): TaskView | undefined {
    return task && this.tasks.task(task.project, task.id);
  }

  private soon(): void {
    this.due ??= setTimeout(() => {
      this.due = undefined;
      this.tell();
    }, 50);
  }

  /** What palette, menus and keys depend on, without the prefix. */
  keys(): Record<string, unknown> {
    const { all, waiting } = this.tasks;
    const here = this.active ?? this.live(this.panel);
    const offered = new Set((here ? [here] : all).flatMap(can));
    const gates = (here ? [here] : waiting).flatMap(task => task.waiting_for?.gate ?? []);
    const editor = vscode.window.activeTextEditor?.document.uri;
    const form = here !== undefined && editor?.toString() === documentOf(here).toString();
    const draft = editor?.path.includes('/.promptside/drafts/') === true;
    return {
      state: this.server.state,
      daemon: this.tasks.up,
      mismatch: this.server.mismatch !== '',
      tasks: all.length,
      waiting: waiting.length,
      attempts: offered.has('attempts'),
      compare: offered.has('compare'),
      changes: offered.has('changes'),
      gate: gates.some(gate => gate.type === 'require_selection') ? 'options' : gates.length > 0 ? 'other' : '',
      inDraft: draft,
      inForm: draft || form || (here !== undefined && editor !== undefined && this.active === here),
      ...Object.fromEntries(COMMANDS.map(name => [`can.${name}`, offered.has(name)])),
      ...Object.fromEntries(COMMANDS.map(name => [`here.${name}`, form && can(here).includes(name)])),
    };
  }

  private tell(): void {
    for (const [name, value] of Object.entries(this.keys())) {
      if (this.told.get(name) === value) continue;
      this.told.set(name, value);
      void vscode.commands.executeCommand('setContext', `promptside.${name}`, value);
    }
  }
}

/** Arguments as an object: what the tree hands over is named by what it shows. */
export function given(argument: unknown): Given {
  if (typeof argument !== 'object' || argument === null || argument instanceof vscode.Uri) return {};
  if (!isNode(argument)) return argument as Given;
  if (argument.kind === 'group') return {};
  const at: Given = { project: argument.task.project, task: argument.task.id };
  if (argument.kind === 'task') return at;
  at['stage'] = argument.stage.id;
  return argument.kind === 'attempt' ? { ...at, attempt: argument.attempt.n } : at;
}

function isNode(argument: object): argument is Node {
  return 'kind' in argument && ['group', 'task', 'stage', 'attempt'].includes(String(argument.kind)) && !('scm' in argument);
}
