// What is permitted for good in a project: listed, and taken back.

import * as vscode from 'vscode';
import type { Here } from './here';
import type { Orders } from './orders';
import type { RuleView } from './protocol';
import type { Server } from './server';
import { plain, unlinked } from './words';

export class Rules {
  constructor(
    private readonly server: Server,
    private readonly here: Here,
    private readonly orders: Orders,
  ) {}

  async show(): Promise<void> {
    const project = await this.here.project('The permissions of which project?');
    if (project === undefined) return;
    const at = project ? { project } : {};
    const rules = await this.orders.ask(() => this.server.request<RuleView[]>('promptside/query', { type: 'rules', ...at }));
    if (!rules) return;
    if (rules.length === 0) {
      void vscode.window.showInformationMessage('Nothing is permitted for good in this project.');
      return;
    }
    const items = rules.map(rule => ({ label: plain(rule.rule), description: `task ${rule.task}, ${rule.stage}, by ${rule.by} in ${rule.client}`, rule }));
    const chosen = await vscode.window.showQuickPick(items, { title: 'Permissions given for good', placeHolder: 'Choose one to take it back' });
    const button = 'Take Back';
    if (chosen && (await vscode.window.showWarningMessage(unlinked(`Ask again before ${chosen.rule.rule}?`), button, 'Cancel')) === button) {
      await this.orders.give('removeRule', { ...at, rule: chosen.rule.id });
    }
  }
}
