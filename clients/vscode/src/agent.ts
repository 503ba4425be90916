// Whether there is an agent at all; asked only while nothing else is shown, so that the first step is the right one.

import * as vscode from 'vscode';
import type { Doctor } from './protocol';
import type { Server } from './server';
import type { Tasks } from './tasks';
import type { TaskTree } from './tree';

export class Agent {
  missing = false;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChange = this.changed.event;
  private asking = false;

  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
    private readonly tree: TaskTree,
  ) {
    tasks.onChange(() => void this.look());
    server.onState(() => void this.look());
    tree.view.onDidChangeVisibility(() => void this.look());
    vscode.window.onDidChangeWindowState(state => state.focused && void this.look());
  }

  /** Asks, unless something more important is said than the answer. */
  private async look(): Promise<void> {
    const wanted = this.server.state === 'running' && this.tasks.daemon?.up === true && this.tasks.all.length === 0 && this.tree.view.visible;
    if (!wanted || this.asking) {
      if (this.tasks.all.length > 0) this.become(false);
      return;
    }
    this.asking = true;
    try {
      const { checks } = await this.server.request<Doctor>('promptside/query', { type: 'doctor' });
      const set = vscode.workspace.getConfiguration('promptside').get<string>('agent.default', '');
      this.become(this.tasks.all.length === 0 && set !== 'rehearsal' && checks.some(check => check.name === 'claude' && !check.ok));
    } catch {
      this.become(false); // what is wrong then is said by whoever needs it
    } finally {
      this.asking = false;
    }
  }

  private become(missing: boolean): void {
    if (missing === this.missing) return;
    this.missing = missing;
    void vscode.commands.executeCommand('setContext', 'promptside.agent', missing ? 'missing' : '');
    this.changed.fire();
  }
}
