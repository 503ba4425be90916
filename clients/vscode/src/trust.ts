// Whether what the projects of this window bring may run, and the person's word on it (M23, M24).

import * as vscode from 'vscode';
import type { Orders } from './orders';
import type { TrustView } from './protocol';
import type { Server } from './server';
import { isBelow, real, Tasks } from './tasks';

const PAUSE_MS = 300;

export class Trust {
  /** Projects of this window that bring something which does not run yet. */
  private readonly wanting = new Map<string, TrustView>();
  private readonly asked = new Set<string>();
  private due: NodeJS.Timeout | undefined;

  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
    private readonly orders: Orders,
  ) {
    server.onState(() => this.again());
    tasks.onChange(task => (task === undefined || !this.asked.has(task.project)) && this.again());
    vscode.workspace.onDidSaveTextDocument(({ uri }) => uri.path.includes('/.promptside/') && this.again());
  }

  async show(project: string): Promise<void> {
    const at = project || [...this.wanting.keys()][0] || '';
    const where = at ? { project: at } : {};
    const found = await this.orders.ask(() => this.server.request<TrustView>('promptside/query', { type: 'trustState', ...where }));
    if (!found) return;
    if (found.items.length === 0 || found.state === 'trusted') {
      void vscode.window.showInformationMessage(found.sentence || 'This project brings nothing of its own that would run.');
      return;
    }
    const detail = [found.sentence, '', ...found.items.map(item => `${item.what}: ${item.path}${item.changed ? ' (changed)' : ''}`)].join('\n');
    const which = this.tasks.projects.length > 1 && at ? `“${this.tasks.nameOf(at)}”` : 'this project';
    const answer = await vscode.window.showWarningMessage(`Trust what ${which} brings?`, { modal: true, detail }, 'Show', 'Trust');
    if (answer === 'Trust') await this.orders.give('trust', { ...where, hash: found.hash });
    for (const item of answer === 'Show' ? found.items : []) {
      await this.orders.ask(() => this.server.order('openFile', { ...where, path: item.path, line: 1 }));
    }
    this.again();
  }

  private again(): void {
    this.due ??= setTimeout(() => {
      this.due = undefined;
      void this.look();
    }, PAUSE_MS);
  }

  private async look(): Promise<void> {
    const folders = (vscode.workspace.workspaceFolders ?? []).map(folder => real(folder.uri.fsPath));
    const projects = this.tasks.all.filter(task => this.tasks.isHere(task)).map(task => task.project);
    const among = new Set([...projects, ...folders.filter(folder => !projects.some(project => isBelow(folder, project)))]);
    if (this.server.state !== 'running' || !this.tasks.up) return;
    this.wanting.clear();
    for (const project of among) {
      this.asked.add(project);
      try {
        const found = await this.server.request<TrustView>('promptside/query', { type: 'trustState', project });
        if (found.items.length > 0 && found.state !== 'trusted') this.wanting.set(project, found);
      } catch {
        continue; // a folder that is no project yet brings nothing
      }
    }
    void vscode.commands.executeCommand('setContext', 'promptside.trustNeeded', this.wanting.size > 0);
  }
}
