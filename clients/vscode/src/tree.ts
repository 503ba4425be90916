// Tasks, their stages and attempts as a tree; badge and accessible labels say in words what the icons show.

import * as vscode from 'vscode';
import type { AttemptView, StageView, TaskView } from './protocol';
import type { Server } from './server';
import { keyOf, stageOf, Tasks } from './tasks';
import {
  attemptIcon,
  clock,
  duration,
  Group,
  groupOf,
  isolated,
  GROUPS,
  spent,
  need,
  oneLine,
  several,
  stageIcon,
  stageWord,
  taskIcon,
} from './words';

export type Node =
  | { kind: 'group'; group: Group; title: string }
  | { kind: 'task'; task: TaskView }
  | { kind: 'stage'; task: TaskView; stage: StageView }
  | { kind: 'attempt'; task: TaskView; stage: StageView; attempt: AttemptView };

const OPEN: Group[] = ['waiting', 'running', 'paused', 'ready'];

/** How often, and after how long, it is looked whether the rows of a view that was opened are drawn. */
const FOCUS_TRIES = 20;
const DRAWN_MS = 100;

/** The view in the side bar, with its badge and what there is to say above the tasks. */
export class TaskTree {
  readonly view: vscode.TreeView<Node>;
  private readonly nodes: TaskNodes;
  private due: NodeJS.Timeout | undefined;

  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
  ) {
    this.nodes = new TaskNodes(tasks);
    this.view = vscode.window.createTreeView('promptside.tasks', { treeDataProvider: this.nodes, showCollapseAll: true });
    this.view.onDidExpandElement(({ element }) => element.kind === 'task' && this.nodes.unfolded.add(keyOf(element.task)));
    this.view.onDidCollapseElement(({ element }) => element.kind === 'task' && this.nodes.unfolded.delete(keyOf(element.task)));
    const opened = this.view.onDidChangeVisibility(({ visible }) => {
      if (!visible) return;
      opened.dispose();
      void this.focusFirst();
    });
    tasks.onChange(() => this.soon());
    server.onState(() => this.soon());
    vscode.workspace.onDidGrantWorkspaceTrust(() => this.soon());
  }

  /** What the keys of the tree are about. The editor tells which rows are selected, but not which one has the focus. */
  async focused(): Promise<Node | undefined> {
    const before = this.view.selection;
    await vscode.commands.executeCommand('list.toggleSelection');
    const after = this.view.selection;
    const added = after.find(node => !before.includes(node));
    if (added) {
      if (before.length > 0) void this.view.reveal(added, { select: true, focus: false });
      return added;
    }
    const removed = before.find(node => !after.includes(node));
    if (removed) await vscode.commands.executeCommand('list.toggleSelection');
    return removed ?? before[0];
  }

  /**
   * The editor gives the focus to what is in a view, and when this one is opened first, nothing is drawn in it yet.
   * A window that comes back with the view in it shows it before any task is known; there the focus stays where it is.
   */
  private async focusFirst(): Promise<void> {
    const first = this.nodes.getChildren()[0];
    for (let tries = 0; first && tries < FOCUS_TRIES && this.view.visible; tries++) {
      try {
        await this.view.reveal(first, { select: false, focus: true });
        return;
      } catch {
        await new Promise(resolve => setTimeout(resolve, DRAWN_MS)); // it is not drawn yet
      }
    }
  }

  private soon(): void {
    this.due ??= setTimeout(() => {
      this.due = undefined;
      const count = this.tasks.waiting.length;
      this.view.badge = { value: count, tooltip: count ? waitWords(count) : '' };
      this.view.message = this.tasks.all.length > 0 ? this.message() : '';
      this.nodes.redraw();
    }, 50);
  }

  /** What keeps the person from deciding, if anything does. */
  private message(): string {
    if (!this.tasks.up) return this.tasks.daemon?.sentence ?? '';
    if (this.server.mismatch) return this.server.mismatch;
    return vscode.workspace.isTrusted ? '' : 'This folder is not trusted. Tasks are shown; nothing is run.';
  }
}

/** Groups, tasks, stages and attempts, as the server tells them. */
export class TaskNodes implements vscode.TreeDataProvider<Node> {
  private readonly changed = new vscode.EventEmitter<Node | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  /** The tasks that the person has unfolded; they stay so when they come to another group. */
  readonly unfolded = new Set<string>();

  constructor(private readonly tasks: Tasks) {}

  redraw(): void {
    this.changed.fire(undefined);
  }

  getChildren(node?: Node): Node[] {
    switch (node?.kind) {
      case undefined: {
        if (!this.tasks.up && this.tasks.all.length === 0) return [];
        const there = new Set(this.tasks.all.map(groupOf));
        return GROUPS.filter(([group]) => there.has(group)).map(([group, title]) => ({ kind: 'group', group, title }));
      }
      case 'group':
        return this.of(node.group).map(task => ({ kind: 'task', task }));
      case 'task':
        return node.task.stages.map(stage => ({ kind: 'stage', task: node.task, stage }));
      case 'stage':
        return [...node.stage.attempts].reverse().map(attempt => ({ ...node, kind: 'attempt', attempt }));
      case 'attempt':
        return [];
    }
  }

  getParent(node: Node): Node | undefined {
    switch (node.kind) {
      case 'group':
        return undefined;
      case 'task': {
        const group = groupOf(node.task);
        return { kind: 'group', group, title: GROUPS.find(([one]) => one === group)?.[1] ?? '' };
      }
      case 'stage':
        return { kind: 'task', task: node.task };
      case 'attempt':
        return { kind: 'stage', task: node.task, stage: node.stage };
    }
  }

  getTreeItem(node: Node): vscode.TreeItem {
    switch (node.kind) {
      case 'group':
        return this.group(node.group, node.title);
      case 'task':
        return this.task(node.task);
      case 'stage':
        return this.stage(node.task, node.stage);
      case 'attempt':
        return this.attempt(node.task, node.stage, node.attempt);
    }
  }

  private group(group: Group, title: string): vscode.TreeItem {
    const count = this.of(group).length;
    const alone = !this.tasks.all.some(task => OPEN.includes(groupOf(task)));
    const state = OPEN.includes(group) || (alone && group === 'done') ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.Collapsed;
    const item = new vscode.TreeItem(title, state);
    item.id = `group ${group}`;
    item.description = String(count);
    item.contextValue = 'group';
    item.accessibilityInformation = { label: `${title}, ${several(count, 'task')}` };
    return item;
  }

  private task(task: TaskView): vscode.TreeItem {
    const title = oneLine(task.title);
    const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(isolated(title), this.unfolded.has(keyOf(task)) ? Expanded : Collapsed);
    const project = this.tasks.projectName(task);
    const words = wordsOf(task);
    item.id = keyOf(task);
    item.description = [words, project].filter(Boolean).join(' · ');
    item.iconPath = taskIcon(task);
    item.tooltip = tooltip(task, this.tasks);
    item.contextValue = [groupOf(task), 'task', ...can(task), task.branch ? 'branch' : '', ''].join(';');
    item.command = { command: 'promptside.openDocument', title: 'Open Document', arguments: [{ kind: 'task', task }] };
    item.accessibilityInformation = { label: [title, ...spoken(task), project].filter(Boolean).join(', ') };
    return item;
  }

  private stage(task: TaskView, stage: StageView): vscode.TreeItem {
    const name = oneLine(stage.name);
    const inside = stage.attempts.length > 0 ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None;
    const item = new vscode.TreeItem(isolated(name), inside);
    const last = stage.attempts.at(-1);
    const facts = [
      stageWord(stage),
      last ? `attempt ${last.n}` : '',
      spent(task, last?.cost_usd),
    ].filter(Boolean);
    item.id = `${keyOf(task)} ${stage.id}`;
    item.description = facts.join(', ');
    item.iconPath = stageIcon(stage);
    const said = new vscode.MarkdownString('', true);
    said.appendMarkdown(`**${escape(name)}**`);
    for (const line of [facts.join(', '), stage.rule, stage.reason]) if (line) said.appendMarkdown(`\n\n${escape(line)}`);
    item.tooltip = said;
    const attempts = stage.attempts.length > 0 ? 'attempts' : '';
    const earlier = task.stages.indexOf(stage) < task.stages.findIndex(one => one.id === task.current);
    const back = earlier && can(task).includes('goBack') ? 'goBack' : '';
    const changes = stage.attempts.some(mayHaveChanged) ? 'changes' : '';
    item.contextValue = ['', 'stage', attempts, changes, stage.attempts.length > 1 ? 'compare' : '', back, ''].join(';');
    item.command = { command: 'promptside.openDocument', title: 'Open Document', arguments: [{ kind: 'stage', task, stage }] };
    item.accessibilityInformation = { label: [name, ...facts].join(', ') };
    return item;
  }

  private attempt(task: TaskView, stage: StageView, attempt: AttemptView): vscode.TreeItem {
    const item = new vscode.TreeItem(`Attempt ${attempt.n}`, vscode.TreeItemCollapsibleState.None);
    const facts = [
      attempt.status,
      attempt.duration_s !== null ? duration(attempt.duration_s) : '',
      spent(task, attempt.cost_usd),
      attempt.changes.length > 0 ? several(attempt.changes.length, 'file') : '',
      attempt.proof?.verdict === 'proved' ? 'read-only, proved' : '',
    ].filter(Boolean);
    item.id = `${keyOf(task)} ${stage.id} ${attempt.n}`;
    item.description = facts.join(' · ');
    item.iconPath = attemptIcon(attempt.status);
    const said = new vscode.MarkdownString('', true);
    said.appendMarkdown(`**${escape(stage.name)}, attempt ${attempt.n}**`);
    const when = attempt.started !== null ? `Started ${clock(attempt.started)}` : '';
    for (const line of [when, attempt.model, attempt.error ?? '', attempt.hint, attempt.note]) {
      if (line) said.appendMarkdown(`\n\n${escape(oneLine(line))}`);
    }
    item.tooltip = said;
    item.contextValue = ['', 'attempt', 'attempts', mayHaveChanged(attempt) ? 'changes' : '', stage.attempts.length > 1 ? 'compare' : '', ''].join(';');
    const command = attempt.ended === null ? 'promptside.showOutput' : 'promptside.showDocument';
    item.command = { command, title: 'Open', arguments: [{ kind: 'attempt', task, stage, attempt }] };
    item.accessibilityInformation = { label: [`Attempt ${attempt.n}`, ...facts].join(', ') };
    return item;
  }

  private of(group: Group): TaskView[] {
    const found = group === 'waiting' ? this.tasks.waiting : this.tasks.all.filter(task => groupOf(task) === group);
    return group === 'waiting' ? found : found.sort((a, b) => b.state_since - a.state_since || b.id - a.id);
  }
}

export function waitWords(count: number): string {
  return count === 1 ? '1 task waits for you' : `${count} tasks wait for you`;
}

/** The tags of what is offered, possible now or not. */
export function can(task: TaskView): string[] {
  const tags = task.offers.map(offer => offer.command.replace('promptside.', ''));
  const attempts = task.stages.some(stage => stage.attempts.length > 0) ? ['attempts'] : [];
  const compare = task.stages.some(stage => stage.attempts.length > 1) ? ['compare'] : [];
  const changes = task.stages.some(stage => stage.attempts.some(mayHaveChanged)) ? ['changes'] : [];
  return [...new Set([...tags, ...attempts, ...compare, ...changes])];
}

function mayHaveChanged(attempt: AttemptView): boolean {
  return attempt.changes.length > 0 || attempt.ended === null;
}

function wordsOf(task: TaskView): string {
  const stage = stageOf(task);
  if (task.waiting_for) {
    const wanted = need(task.waiting_for); // short: the side bar is narrow, and the rest is in tooltip and label
    return wanted.startsWith('your ') && stage ? stage.name : wanted;
  }
  if (task.state === 'taken' && stage) return stage.name;
  return task.state === 'paused' || task.state === 'expired' ? [stage?.name, task.state].filter(Boolean).join(' · ') : '';
}

function spoken(task: TaskView): string[] {
  const stage = stageOf(task)?.name ?? '';
  if (task.waiting_for) return ['waits for you', stage, need(task.waiting_for)];
  return [task.state === 'taken' ? 'running' : task.state, task.state === 'completed' ? '' : stage];
}

function tooltip(task: TaskView, tasks: Tasks): vscode.MarkdownString {
  const said = new vscode.MarkdownString('', true);
  said.appendMarkdown(`**${escape(task.title)}** #${task.id}`);
  const stage = stageOf(task);
  const state = task.waiting_for ? `Waits for you: ${need(task.waiting_for)}` : task.state === 'taken' ? 'Running' : task.state;
  const lines = [
    [stage?.name, `${state} since ${clock(task.waiting_for?.since ?? task.state_since)}`].filter(Boolean).join(' · '),
    tasks.activity(task)?.line ?? '',
    [
      tasks.projectName(task),
      task.pipeline,
      task.branch ?? '',
      `${Math.round((task.metrics.input_tokens + task.metrics.output_tokens) / 1000)}k tokens`,
      spent(task, task.metrics.cost_usd),
    ].filter(Boolean).join(' · '),
    task.error ?? task.reason ?? '',
  ];
  for (const line of lines) if (line) said.appendMarkdown(`\n\n${escape(oneLine(line))}`);
  return said;
}

function escape(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!<>|~$]/g, '\\$&');
}
