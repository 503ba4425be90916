// What the person is asked before an order is sent: which one, how far, in which words, and whether it is meant.

import * as vscode from 'vscode';
import type { Given } from './here';
import type { DecisionView, StageView, TaskView } from './protocol';
import { stageOf } from './tasks';
import { cut, oneLine, plain } from './words';

/** Words that are asked for. */
export interface Wanted {
  title: string;
  hint: string;
  /** They may be left empty. */
  optional?: boolean;
  /** They may be written into the document of the task. */
  document?: boolean;
}

/** The words will be written into the document. */
export const IN_DOCUMENT = '\0';

const SCOPES: [string, string, string][] = [
  ['once', 'Once', 'This use only'],
  ['attempt', 'For this attempt', 'Until the attempt ends'],
  ['task', 'For this task', 'In every stage of it'],
  ['always', 'Always in this project', 'Listed by “Show Permissions Given for Good”'],
];

export async function whichPermission(asked: DecisionView[]): Promise<DecisionView | undefined> {
  if (asked.length <= 1) return asked[0];
  const items = asked.map(one => ({ label: plain(cut(one.what, 80)), description: plain(one.tool), detail: plain(oneLine(one.text)), one }));
  return (await vscode.window.showQuickPick(items, { title: 'Which permission?' }))?.one;
}

/** How far a permission goes, of what is offered. */
export async function whichScope(task: TaskView, decision: DecisionView): Promise<string | undefined> {
  const possible = task.offers.filter(one => one.command === 'promptside.allow' && one.place === decision.id);
  const scopes = new Set(possible.map(offer => String(offer.args['scope'] ?? 'once')));
  const items = SCOPES.filter(([id]) => scopes.has(id)).map(([id, label, detail]) => ({ label, description: detail, id }));
  const title = `Allow ${decision.tool}: ${cut(decision.what, 100)}`;
  return (await vscode.window.showQuickPick(items, { title, placeHolder: oneLine(decision.why) }))?.id;
}

/** The stage to go back to, the latest first. */
export async function whichStage(earlier: StageView[]): Promise<string | undefined> {
  const items = [...earlier].reverse().map(stage => ({ label: plain(stage.name), description: stage.status, id: stage.id }));
  return (await vscode.window.showQuickPick(items, { title: 'Go back to which stage?' }))?.id;
}

/** Asks before what can't be taken back; with a modal dialog only where work is thrown away (M34, M35). */
export async function confirmed(tag: string, task: TaskView, order: Given): Promise<boolean> {
  const settings = vscode.workspace.getConfiguration('promptside.confirm');
  const title = cut(task.title, 60);
  if (tag === 'abandon' && settings.get('abandon', true)) {
    const now = stageOf(task);
    const stopped = now?.status === 'running' ? `; ${now.name} is stopped` : '';
    return sure(`Abandon “${title}”?`, `Branch and files stay${stopped}.`, 'Abandon');
  }
  if (tag === 'goBack' && order['reason'] === undefined && settings.get('goBack', true)) {
    const ids = task.stages.map(stage => stage.id);
    const to = task.stages.find(stage => stage.id === order['stage']);
    const last = task.current === null ? ids.length : ids.indexOf(task.current) + 1;
    const later = task.stages.slice(ids.indexOf(String(order['stage'])) + 1, last).map(stage => stage.name);
    const kept = later.length > 1 ? 'run again; their documents are kept as earlier attempts' : 'runs again; its document is kept as an earlier attempt';
    const again = later.length > 0 ? `${later.join(' and ')} ${kept}. ` : '';
    return sure(`Go back to ${to?.name ?? String(order['stage'])}?`, `${again}Files stay.`, 'Go back');
  }
  return true;
}

/** A line of the person's; undefined if they thought better of it, `IN_DOCUMENT` if they write it there. */
export function inWords(wanted: Wanted, task: TaskView, along: string): Promise<string | undefined> {
  const box = vscode.window.createInputBox();
  box.title = `${wanted.title}: ${cut(task.title, 60)}`;
  box.placeholder = wanted.hint;
  box.ignoreFocusOut = true;
  const write: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon('edit'), tooltip: 'Write it in the document, where it may be longer' };
  if (wanted.document) box.buttons = [write];
  box.prompt = [along, wanted.document ? 'More than a line? Write it into the document, on lines that begin with >>' : ''].filter(Boolean).join(' ');
  return new Promise(resolve => {
    box.onDidAccept(() => {
      if (!box.value.trim() && !wanted.optional) {
        box.validationMessage = 'Say a word, or press Escape.';
        return;
      }
      resolve(box.value);
      box.hide();
    });
    box.onDidChangeValue(() => (box.validationMessage = undefined));
    box.onDidTriggerButton(() => {
      resolve(IN_DOCUMENT);
      box.hide();
    });
    box.onDidHide(() => {
      resolve(undefined);
      box.dispose();
    });
    box.show();
  });
}

async function sure(message: string, detail: string, button: string): Promise<boolean> {
  return (await vscode.window.showWarningMessage(message, { modal: true, detail }, button)) === button;
}
