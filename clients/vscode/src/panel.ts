// The pipeline panels: one per task in the editor area. Each is drawn by its page from what is told here, whole.

import * as path from 'node:path';
import * as vscode from 'vscode';
import { cut } from './amounts';
import type { Given, Here } from './here';
import type { FormNews } from './ours';
import type { Orders } from './orders';
import type { FromPage, PanelState, ToPage } from './panel_messages';
import type { DocumentView, FormView, PipelineView, TaskView } from './protocol';
import type { Server } from './server';
import { fileOf, isBelow, keyOf, Tasks } from './tasks';

const TYPE = 'promptside.panel';
/** What puts a document right is no command of the editor's: only a form offers it. */
const MENDS = ['promptside.restore', 'promptside.removeNotes'];
/** What is told in one go: a task, its form and what the agent does come one by one, a moment apart. */
const TOGETHER_MS = 30;

export interface PanelParts {
  server: Server;
  tasks: Tasks;
  here: Here;
  orders: Orders;
}

export class Panels implements vscode.Disposable, vscode.WebviewPanelSerializer {
  private readonly open = new Map<string, Panel>();
  private readonly parts: vscode.Disposable[];

  constructor(
    private readonly of: PanelParts,
    private readonly dist: vscode.Uri,
  ) {
    const { server, tasks } = of;
    this.parts = [
      vscode.window.registerWebviewPanelSerializer(TYPE, this),
      tasks.onChange(task => {
        this.fill();
        this.each(task && keyOf(task), panel => panel.soon());
      }),
      tasks.onActivity(activity => this.each(`${activity.task} ${activity.project}`, panel => panel.soon())),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.each(undefined, panel => panel.soon())),
    ];
    server.on('promptside/form', news => this.each(`${news.task} ${news.project}`, panel => panel.hear(news)));
    server.onState(state => this.each(undefined, panel => void (state === 'running' ? panel.ask() : panel.soon())));
  }

  show(task: TaskView | undefined, preserveFocus = false): void {
    const state: PanelState = { project: task?.project ?? '', task: task?.id ?? 0, stage: '', scroll: 0 };
    const there = this.open.get(key(state));
    if (there) {
      there.view.reveal(undefined, preserveFocus);
      return;
    }
    const column = { viewColumn: vscode.ViewColumn.Active, preserveFocus };
    this.adopt(vscode.window.createWebviewPanel(TYPE, 'Promptside', column), state);
  }

  has(task: TaskView): boolean {
    return this.open.has(keyOf(task));
  }

  async deserializeWebviewPanel(view: vscode.WebviewPanel, state: unknown): Promise<void> {
    this.adopt(view, isState(state) ? state : { project: '', task: 0, stage: '', scroll: 0 });
    return Promise.resolve();
  }

  dispose(): void {
    for (const part of [...this.parts, ...[...this.open.values()].map(panel => panel.view)]) part.dispose();
  }

  /** A panel that was opened while there was no task, or before any was told, becomes the one of the task that came. */
  private fill(): void {
    const none = this.open.get(key({ project: '', task: 0, stage: '', scroll: 0 }));
    const task = this.of.tasks.waiting[0] ?? this.of.tasks.all[0];
    if (!none || !task) return;
    const { active } = none.view;
    this.show(task, !active);
    none.view.dispose();
  }

  private adopt(view: vscode.WebviewPanel, state: PanelState): void {
    const panel = new Panel(this.of, view, state, this.dist);
    this.open.get(key(state))?.view.dispose();
    this.open.set(key(state), panel);
    view.onDidDispose(() => this.open.get(key(state)) === panel && this.open.delete(key(state)));
  }

  private each(of: string | undefined, perform: (panel: Panel) => void): void {
    for (const [name, panel] of this.open) if (of === undefined || name === of || panel.state.task === 0) perform(panel);
  }
}

class Panel {
  private form: FormView | null = null;
  private pipeline: PipelineView | null = null;
  private due: NodeJS.Timeout | undefined;
  private gone = false;

  constructor(
    private readonly of: PanelParts,
    readonly view: vscode.WebviewPanel,
    readonly state: PanelState,
    dist: vscode.Uri,
  ) {
    view.webview.options = { enableScripts: true, enableCommandUris: false, localResourceRoots: [dist] };
    // A theme's icon is taken by newer editors than those that the types are of; older ones show none.
    view.iconPath = new vscode.ThemeIcon('checklist') as unknown as vscode.Uri;
    view.webview.onDidReceiveMessage((message: FromPage) => void this.heard(message));
    view.onDidChangeViewState(() => this.seen());
    view.onDidDispose(() => {
      this.gone = true;
      clearTimeout(this.due);
      if (of.here.panel && keyOf(of.here.panel) === key(state)) of.here.panel = undefined;
      void this.request('promptside/closeForm', this.at);
    });
    view.webview.html = page(view.webview, dist);
    this.seen();
    void this.ask();
  }

  get task(): TaskView | undefined {
    return this.of.tasks.task(this.state.project, this.state.task);
  }

  /** Asks the server for what is pushed from then on; again when it is another server. */
  async ask(): Promise<void> {
    if (this.state.task === 0) return this.soon();
    const news = await this.request<FormNews>('promptside/openForm', this.at);
    if (news) this.hear(news);
    this.soon();
    const name = this.task?.pipeline;
    if (name && !this.pipeline) {
      const query = { type: 'pipeline', name, project: this.state.project };
      this.pipeline = (await this.request<PipelineView>('promptside/query', query)) ?? null;
      this.soon();
    }
  }

  hear(news: FormNews): void {
    if (news.document !== '') return; // that of a document that somebody else asked for
    this.form = news.form;
    this.soon();
  }

  soon(): void {
    this.due ??= setTimeout(() => {
      this.due = undefined;
      this.tell();
    }, TOGETHER_MS);
  }

  private get at(): Given {
    return { project: this.state.project, task: this.state.task };
  }

  private seen(): void {
    const { here } = this.of;
    if (this.view.active) here.panel = this.task;
  }

  private tell(): void {
    if (this.gone) return;
    const { server, tasks } = this.of;
    const task = this.task ?? null;
    this.view.title = task ? cut(task.title, 40) : 'Promptside';
    if (this.view.active && task) this.of.here.panel = task;
    this.send({
      type: 'shown',
      state: this.state,
      server: server.state,
      up: tasks.up,
      sentence: tasks.daemon?.sentence ?? '',
      trusted: vscode.workspace.isTrusted,
      hindrance: vscode.workspace.isTrusted ? server.mismatch : 'This folder is not trusted. Tasks are shown; nothing is run.',
      told: tasks.daemon !== undefined,
      task,
      activity: (task && tasks.activity(task)) ?? null,
      form: this.form,
      pipeline: this.pipeline,
    });
  }

  private async heard(message: FromPage): Promise<void> {
    switch (message.type) {
      case 'ready':
        this.tell();
        return;
      case 'give':
        // The page draws what agents wrote: it may call nothing but commands of ours.
        if (!/^(promptside\.[\w.]+|workbench\.trust\.manage)$/.test(message.command)) return;
        if (MENDS.includes(message.command)) {
          await this.of.orders.give(message.command.replace('promptside.', ''), { ...message.args });
          return;
        }
        await vscode.commands.executeCommand(message.command, { ...(this.state.task ? this.at : {}), ...message.args });
        return;
      case 'answer': {
        const { item: id, value, version, attempt } = message;
        const given = { ...this.at, id, value, version, attempt };
        const taken = this.of.orders.mayAct() && (await this.of.orders.ask(() => this.of.server.request('promptside/answer', given)));
        this.send({ type: 'taken', answer: message.answer, ok: Boolean(taken) });
        return;
      }
      case 'openFile':
        await this.openFile(message.path, message.line);
        return;
      case 'openLink':
        if (/^https?:\/\//i.test(message.href)) await vscode.env.openExternal(vscode.Uri.parse(message.href));
        return;
      case 'document': {
        const { stage, attempt } = message;
        const document = await this.request<DocumentView>('promptside/query', { type: 'document', ...this.at, stage, attempt });
        this.send({ type: 'document', stage, attempt, document: document ?? null });
      }
    }
  }

  /** A file of the project, in the place where the task's branch is checked out. */
  private async openFile(name: string, line: number): Promise<void> {
    const { task } = this;
    if (!task) return;
    const root = task.worktree ?? task.project;
    const inside = isBelow(path.resolve(root, name), root) ? path.resolve(root, name) : path.resolve(task.project, name);
    if (!isBelow(inside, root) && !isBelow(inside, task.project)) return;
    const uri = isBelow(inside, task.project) ? fileOf(task, path.relative(task.project, inside)) : vscode.Uri.file(inside);
    const place = new vscode.Position(Math.max(0, line - 1), 0);
    try {
      await vscode.window.showTextDocument(uri, { ...beside(), selection: new vscode.Range(place, place) });
    } catch {
      this.of.orders.say(`${name} is not there, or is no text.`);
    }
  }

  private send(message: ToPage): void {
    if (!this.gone) void this.view.webview.postMessage(message);
  }

  /** What only shows something; without an answer it shows nothing. */
  private async request<R>(method: string, params: unknown): Promise<R | undefined> {
    try {
      return await this.of.server.request<R>(method, params);
    } catch {
      return undefined; // the daemon is gone: the panel says so, by what is told of it
    }
  }
}

/** In the column that is there already: a third one leaves none of them room for a line. */
function beside(): vscode.TextDocumentShowOptions {
  const there = vscode.window.tabGroups.all.filter(group => !group.isActive).at(-1);
  return { preview: true, viewColumn: there?.viewColumn ?? vscode.ViewColumn.Beside };
}

function key(state: PanelState): string {
  return `${state.task} ${state.project}`;
}

function isState(state: unknown): state is PanelState {
  return typeof state === 'object' && state !== null && 'project' in state && 'task' in state && typeof state.task === 'number';
}

function page(webview: vscode.Webview, dist: vscode.Uri): string {
  const address = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
  const nonce = Array.from(crypto.getRandomValues(new Uint8Array(24)), byte => byte.toString(36)).join('');
  const policy = `default-src 'none'; style-src ${webview.cspSource}; font-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Promptside</title>
<link rel="stylesheet" href="${address('panel.css')}">
</head>
<body>
<script nonce="${nonce}" src="${address('panel.js')}"></script>
</body>
</html>`;
}
