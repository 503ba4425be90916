// The one item in the status bar: what waits, runs or is wrong; hidden when there is nothing to say.

import * as vscode from 'vscode';
import type { Agent } from './agent';
import type { Server } from './server';
import { running, stageOf, Tasks } from './tasks';
import { waitWords } from './tree';
import { cut, groupOf, hasFailed, minutes, need, oneLine, plain } from './words';

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('promptside', vscode.StatusBarAlignment.Left, 50);
  private readonly clock = setInterval(() => this.draw(), 15_000);

  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
    private readonly agent: Agent,
  ) {
    this.item.name = 'Promptside';
    tasks.onChange(() => this.draw());
    server.onState(() => this.draw());
    agent.onChange(() => this.draw());
  }

  dispose(): void {
    clearInterval(this.clock);
    this.item.dispose();
  }

  private draw(): void {
    this.item.backgroundColor = undefined;
    const waiting = this.tasks.waiting;
    const failed = waiting.filter(hasFailed);
    const busy = this.tasks.all.filter(running);
    const ready = this.tasks.all.filter(task => groupOf(task) === 'ready');
    if (this.server.state === 'missing') {
      this.show('$(debug-disconnect) Promptside', 'The program promptside was not found.', 'promptside.tasks.focus', 'errorBackground');
    } else if (this.server.state === 'failed') {
      this.show('$(debug-disconnect) Promptside', 'Promptside could not be started.', 'promptside.tasks.focus', 'errorBackground');
    } else if (!this.tasks.up) {
      const why = this.tasks.daemon?.sentence || 'The Promptside daemon is not running.';
      this.show('$(debug-disconnect) Promptside', `${why} Click to start it.`, 'promptside.daemonStart', 'errorBackground');
    } else if (this.server.mismatch) {
      this.show('$(warning) Promptside', this.server.mismatch, 'promptside.tasks.focus', 'warningBackground');
    } else if (this.agent.missing) {
      const why = "The agent claude was not found, or can't be used. Click to check the set-up.";
      this.show('$(warning) Promptside', why, 'promptside.doctor', 'warningBackground');
    } else if (failed[0]) {
      const words = failed.length > 1 ? `${failed.length} failed` : `${plain(cut(stageOf(failed[0])?.name ?? '', 30))} failed`;
      this.show(`$(error) ${words}`, list(failed), 'promptside.next', 'warningBackground');
    } else if (waiting.length > 0) {
      const words = waiting.length === 1 ? '1 waits for you' : `${waiting.length} wait for you`;
      this.show(`$(bell-dot) ${words}`, `${waitWords(waiting.length)}\n${list(waiting)}`, 'promptside.next');
    } else if (busy[0]) {
      const stage = stageOf(busy[0]);
      const words = [plain(cut(stage?.name ?? busy[0].title, 30)), minutes(stage?.since ?? null)].filter(Boolean).join(' ');
      const text = busy.length > 1 ? `${busy.length} running` : words;
      this.show(`$(loading~spin) ${text}`, list(busy), 'promptside.showOutput');
    } else if (ready.length > 0) {
      this.show(`$(checklist) ${ready.length} ready`, list(ready), 'promptside.openTask');
    } else {
      this.item.hide();
    }
  }

  private show(text: string, tooltip: string, command: string, background = ''): void {
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.command = command;
    if (background) this.item.backgroundColor = new vscode.ThemeColor(`statusBarItem.${background}`);
    this.item.accessibilityInformation = { label: `Promptside: ${text.replace(/(\\)?\$\([^)]*\)\s*/g, (found, literal) => (literal ? found.slice(1) : ''))}` };
    this.item.show();
  }
}

function list(tasks: { title: string; waiting_for: Parameters<typeof need>[0] | null }[]): string {
  const shown = tasks.slice(0, 5).map(task => {
    const wanted = task.waiting_for ? `: ${need(task.waiting_for)}` : '';
    return `${cut(oneLine(task.title), 60)}${wanted}`;
  });
  return [...shown, ...(tasks.length > 5 ? [`and ${tasks.length - 5} more`] : [])].join('\n');
}
