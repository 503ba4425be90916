// The output of an attempt beside the code: a terminal that only reads. Closing it ends nothing.

import * as vscode from 'vscode';
import { Ansi } from './ansi';
import type { Given } from './here';
import type { Followed, OutputNews } from './ours';
import type { AttemptView, StageView, TaskView } from './protocol';
import { Refused, Server } from './server';
import { keyOf, Tasks } from './tasks';
import { cut, duration, need, spent } from './words';

const LAST = 2000;
const PAUSE_MS = 50;
/** After so long without another word, the last one is taken to be whole. */
const WORD_MS = 400;
const WAITS = 'It waits for you';
/** How long the news of an attempt's end may take after its output. */
const KNOWN_MS = 3000;

export class Outputs implements vscode.Disposable {
  private readonly open = new Map<string, { terminal: vscode.Terminal; output: Output }>();
  private readonly closed: vscode.Disposable;
  private readonly links: vscode.Disposable;

  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
  ) {
    server.on('promptside/output', news => {
      for (const { output } of this.open.values()) output.take(news);
    });
    tasks.onChange(task => {
      for (const { output } of this.open.values()) if (!task || output.isOf(task)) output.look();
    });
    server.onState(state => {
      if (state !== 'running') return;
      for (const { output } of this.open.values()) void output.follow();
    });
    this.closed = vscode.window.onDidCloseTerminal(terminal => {
      for (const [key, one] of this.open) if (one.terminal === terminal) this.open.delete(key);
    });
    this.links = vscode.window.registerTerminalLinkProvider({
      provideTerminalLinks: ({ line, terminal }) => {
        const output = [...this.open.values()].find(one => one.terminal === terminal)?.output;
        const at = line.indexOf(WAITS);
        if (!output || at < 0) return [];
        return [{ startIndex: at, length: line.replace(/ —.*$/, '').length - at, tooltip: 'Open what waits', task: output.task }];
      },
      handleTerminalLink: (link: vscode.TerminalLink & { task: Given }) => vscode.commands.executeCommand('promptside.openTask', link.task),
    });
  }

  /** Whether an output is what the person looks at. */
  get visible(): boolean {
    const shown = vscode.window.tabGroups.all.map(group => group.activeTab);
    const labels = shown.map(tab => (tab?.input instanceof vscode.TabInputTerminal ? tab.label : ''));
    return [...this.open.values()].some(({ terminal }) => labels.includes(terminal.name));
  }

  show(task: TaskView, stage: StageView, attempt: AttemptView, focus: boolean): void {
    const key = `${keyOf(task)} ${stage.id} ${attempt.n}`;
    const there = this.open.get(key);
    if (there) {
      there.terminal.show(!focus);
      return;
    }
    const over = [...this.open].filter(([name, one]) => name.startsWith(`${keyOf(task)} `) && one.output.over);
    const output = new Output(this.server, this.tasks, task, stage.id, attempt.n);
    const terminal = vscode.window.createTerminal({
      name: `${cut(task.title, 30)}: ${stage.name} ${attempt.n}`,
      pty: output,
      iconPath: new vscode.ThemeIcon('output'),
      location: { viewColumn: this.column(), preserveFocus: !focus },
      isTransient: true,
    });
    this.open.set(key, { terminal, output });
    // What is over gives way to what follows it, and not before: an empty group would take the focus along.
    for (const [, one] of over) one.terminal.dispose();
  }

  /** Where an output is already, else beside the code: the window is not cut into ever more columns. */
  private column(): vscode.ViewColumn {
    const names = [...this.open.values()].map(({ terminal }) => terminal.name);
    const groups = vscode.window.tabGroups.all;
    const there = groups.find(group => group.tabs.some(tab => tab.input instanceof vscode.TabInputTerminal && names.includes(tab.label)));
    const beside = groups.filter(group => !group.isActive).at(-1);
    return (there ?? beside)?.viewColumn ?? vscode.ViewColumn.Beside;
  }

  dispose(): void {
    this.closed.dispose();
    this.links.dispose();
    for (const { terminal } of this.open.values()) terminal.dispose();
  }
}

class Output implements vscode.Pseudoterminal {
  private readonly written = new vscode.EventEmitter<string>();
  readonly onDidWrite = this.written.event;
  private readonly ansi = new Ansi();
  private flow: number | undefined;
  /** News that comes before the answer that numbers it. */
  private early: OutputNews[] = [];
  private cursor = 0;
  private ended = false;
  private asking = false;
  private waited = 0;
  private held = '';
  private due: NodeJS.Timeout | undefined;
  private idle: NodeJS.Timeout | undefined;

  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
    private readonly of: TaskView,
    private readonly stage: string,
    private readonly attempt: number,
  ) {}

  get task(): Given {
    return { project: this.of.project, task: this.of.id };
  }

  isOf(task: TaskView): boolean {
    return keyOf(task) === keyOf(this.of);
  }

  /** Says it when the agent waits for the person: else it looks as if it were still at work. */
  look(): void {
    const waits = this.tasks.task(this.of.project, this.of.id)?.waiting_for;
    if (waits?.kind !== 'decision' || waits.stage !== this.stage || waits.since <= this.waited) return;
    this.waited = waits.since;
    this.write(this.ansi.line(`— ${WAITS}: ${need(waits)} —`));
  }

  /** Whether nothing more will come. */
  get over(): boolean {
    return this.now()?.ended != null;
  }

  open(size: vscode.TerminalDimensions | undefined): void {
    this.setDimensions(size);
    void this.follow();
  }

  setDimensions(size: vscode.TerminalDimensions | undefined): void {
    this.ansi.width = size?.columns ?? this.ansi.width;
  }

  close(): void {
    clearTimeout(this.due);
    clearTimeout(this.idle);
    if (this.flow !== undefined) void this.server.request('promptside/unfollow', { flow: this.flow }).catch(() => undefined);
    this.flow = undefined;
    this.ended = true;
  }

  /** Asks for what follows what is here; asked again when there is another server. */
  async follow(): Promise<void> {
    if (this.ended) return;
    this.flow = undefined;
    this.early = [];
    const { project, id } = this.of;
    try {
      const wish = { project, task: id, stage: this.stage, attempt: this.attempt, cursor: this.cursor };
      const { flow } = await this.server.request<Followed>('promptside/follow', wish);
      this.flow = flow;
      for (const news of this.early.splice(0)) this.take(news);
    } catch (error) {
      this.write(this.ansi.line(error instanceof Refused ? error.sentence : String(error), 'stderr'));
    }
  }

  take(news: OutputNews): void {
    if (this.flow === undefined) {
      if (news.task === this.of.id && news.stage === this.stage) this.early.push(news);
      return;
    }
    if (news.flow !== this.flow) return;
    this.cursor = news.cursor;
    this.write(this.ansi.add(news.entries));
    clearTimeout(this.idle);
    this.idle = setTimeout(() => this.write(this.ansi.rest()), WORD_MS);
    if (news.error) this.write(this.ansi.line(news.error, 'stderr'));
    if (!news.ended && !news.error) return;
    this.flow = undefined;
    this.ended = !news.error;
    if (news.ended) this.finish();
  }

  /** The last line says what became of the attempt, as soon as that is known. */
  private finish(): void {
    const due = Date.now() + KNOWN_MS;
    const listening = this.tasks.onChange(() => known());
    const timer = setTimeout(() => known(), KNOWN_MS);
    const known = () => {
      if (this.now()?.status === 'running' && Date.now() < due) return;
      listening.dispose();
      clearTimeout(timer);
      this.write(this.ansi.line(this.last()));
    };
    known();
  }

  handleInput(data: string): void {
    if (data === '\x03') void this.interrupt();
  }

  private async interrupt(): Promise<void> {
    const task = this.tasks.task(this.of.project, this.of.id);
    const offer = task?.offers.find(one => one.command === 'promptside.stop');
    if (!task || !offer || this.ended || this.asking) return;
    this.asking = true;
    const answer = await vscode.window.showWarningMessage('Stop the stage? The daemon and other tasks go on.', 'Stop', 'Let it go on');
    this.asking = false;
    if (answer === 'Stop') await vscode.commands.executeCommand('promptside.stop', { project: task.project, task: task.id });
  }

  private last(): string {
    const now = this.now();
    const name = this.of.stages.find(one => one.id === this.stage)?.name ?? this.stage;
    const facts = [
      now === undefined || now.status === 'running' ? 'over' : now.status,
      // The agent says itself how long it was at work, which is another time than the stage took with its waiting.
      now?.duration_s != null && now.status !== 'done' ? duration(now.duration_s) : '',
      spent(this.tasks.task(this.of.project, this.of.id) ?? this.of, now?.cost_usd),
    ];
    return `— ${name}, attempt ${this.attempt}: ${facts.filter(Boolean).join(', ')} —`;
  }

  private now(): AttemptView | undefined {
    const task = this.tasks.task(this.of.project, this.of.id);
    const stage = task?.stages.find(one => one.id === this.stage);
    return stage?.attempts.find(one => one.n === this.attempt);
  }

  /** What comes together is drawn together; of more lines than anybody reads only the last are kept. */
  private write(text: string): void {
    if (!text) return;
    this.held += text;
    this.due ??= setTimeout(() => {
      this.due = undefined;
      const lines = this.held.split('\r\n');
      this.held = '';
      const kept = lines.length > LAST ? ['\x1b[33m(earlier lines are in the transcript)\x1b[0m', ...lines.slice(-LAST)] : lines;
      this.written.fire(kept.join('\r\n'));
    }, PAUSE_MS);
  }
}
