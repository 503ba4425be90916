// When a message is shown: only if the person must act, nothing of ours is on the screen, and once for each wait.

import * as vscode from 'vscode';
import type { Outputs } from './output';
import type { TaskView } from './protocol';
import { documentOf, keyOf, stageOf, Tasks } from './tasks';
import type { TaskTree } from './tree';
import { cut, hasFailed, need, oneLine, several, unlinked } from './words';

const TOGETHER_MS = 400;

/** One thing that waits: a gate, questions, a permission, a failure. */
interface Wait {
  key: string;
  task: TaskView;
  kind: 'gate' | 'questions' | 'permission' | 'failed';
  decision: string;
  words: string;
}

export class Notices {
  private readonly said = new Set<string>();
  private fresh: Wait[] = [];
  private due: NodeJS.Timeout | undefined;
  private readonly begun = Date.now() / 1000;

  constructor(
    private readonly tasks: Tasks,
    private readonly tree: TaskTree,
    private readonly outputs: Outputs,
  ) {
    tasks.onChange(task => task && this.changed(task));
    vscode.window.onDidChangeWindowState(state => state.focused && this.soon());
  }

  private changed(task: TaskView): void {
    const waits = waitsOf(task).filter(wait => !this.said.has(wait.key));
    if (waits.length === 0) return;
    for (const wait of waits) this.said.add(wait.key);
    const since = task.waiting_for?.since ?? 0;
    if (since < this.begun || !this.tasks.isHere(task)) return; // badge and status bar say what waited before
    this.openIt(task);
    this.fresh.push(...waits);
    this.soon();
  }

  private openIt(task: TaskView): void {
    const what = vscode.workspace.getConfiguration('promptside').get<string>('openOnWait', 'nothing');
    const at = { project: task.project, task: task.id };
    if (what === 'document') void vscode.window.showTextDocument(documentOf(task), { preserveFocus: true, preview: true }).then(undefined, () => undefined);
    if (what === 'panel') void vscode.commands.executeCommand('promptside.openPanel', { ...at, preserveFocus: true });
  }

  private soon(): void {
    if (this.fresh.length === 0 || this.due) return;
    this.due = setTimeout(() => {
      this.due = undefined;
      if (vscode.window.state.focused) this.say(); // else it is said when the person comes back
    }, TOGETHER_MS);
  }

  private say(): void {
    const fresh = this.fresh.filter(wait => this.waits(wait));
    this.fresh = [];
    if (this.visible() || !vscode.workspace.getConfiguration('promptside').get('notify.toasts', true)) return;
    const first = fresh[0];
    if (!first) return;
    if (fresh.length > 1) void this.several(fresh);
    else if (first.kind === 'permission') void this.permission(first);
    else if (first.kind === 'failed') void this.failed(first);
    else void this.one(first);
  }

  /** Whether the person has something of ours before them, where it is seen already. */
  private visible(): boolean {
    return (
      this.tree.view.visible ||
      this.outputs.visible ||
      vscode.window.tabGroups.all.some(({ activeTab }) => isPanel(activeTab)) ||
      vscode.window.visibleTextEditors.some(editor => this.tasks.ofDocument(editor.document.uri) !== undefined)
    );
  }

  private async one(wait: Wait): Promise<void> {
    const open = wait.kind === 'questions' ? 'Answer' : 'Open';
    if ((await vscode.window.showInformationMessage(unlinked(wait.words), open, 'Later')) === open) await this.open(wait);
  }

  private async several(waits: Wait[]): Promise<void> {
    const titles = [...new Set(waits.map(wait => `“${cut(wait.task.title, 40)}”`))];
    const more = titles.length > 3 ? ` and ${titles.length - 3} more` : '';
    const words = `${waits.length} things wait for you: ${titles.slice(0, 3).join(', ')}${more}.`;
    if ((await vscode.window.showInformationMessage(unlinked(words), 'Open', 'Later')) === 'Open') {
      await vscode.commands.executeCommand('promptside.next');
    }
  }

  private async permission(wait: Wait): Promise<void> {
    const at = { project: wait.task.project, task: wait.task.id, decision: wait.decision };
    const answer = await vscode.window.showInformationMessage(unlinked(wait.words), 'Once', 'Always…', 'Deny');
    if (answer === 'Once') await vscode.commands.executeCommand('promptside.allow', { ...at, scope: 'once' });
    if (answer === 'Always…') await vscode.commands.executeCommand('promptside.allow', at);
    if (answer === 'Deny') await vscode.commands.executeCommand('promptside.deny', { ...at, text: '' });
  }

  private async failed(wait: Wait): Promise<void> {
    const retry = wait.task.offers.some(offer => offer.command === 'promptside.retry' && offer.blocked === null);
    const answer = await vscode.window.showWarningMessage(unlinked(wait.words), 'Open', ...(retry ? ['Retry'] : []));
    if (answer === 'Open') await this.open(wait);
    if (answer === 'Retry') {
      await vscode.commands.executeCommand('promptside.retry', { project: wait.task.project, task: wait.task.id });
    }
  }

  private async open(wait: Wait): Promise<void> {
    await vscode.commands.executeCommand('promptside.openTask', { project: wait.task.project, task: wait.task.id });
  }

  private waits(wait: Wait): boolean {
    const now = this.tasks.task(wait.task.project, wait.task.id);
    return now !== undefined && waitsOf(now).some(one => one.key === wait.key);
  }
}

/** The panel, where it lies on top: one behind another tab shows nothing. */
function isPanel(tab: vscode.Tab | undefined): boolean {
  return tab?.input instanceof vscode.TabInputWebview && tab.input.viewType.endsWith('promptside.panel');
}

function waitsOf(task: TaskView): Wait[] {
  const waiting = task.waiting_for;
  if (!waiting) return [];
  const title = cut(task.title, 60);
  const now = stageOf(task);
  const stage = now?.name ?? waiting.stage;
  const key = `${keyOf(task)} ${waiting.stage}`;
  const found: Wait[] = waiting.decisions
    .filter(one => one.kind === 'permission')
    .map(one => ({
      key: `${key} ${one.id}`,
      task,
      kind: 'permission',
      decision: one.id,
      words: `${oneLine(one.text)} ${one.tool}: ${oneLine(one.what)}`,
    }));
  const questions = waiting.decisions.length - found.length;
  if (waiting.kind === 'decision') {
    const words = `The agent has ${several(questions, 'question')} about “${title}”. It waits.`;
    if (questions > 0) found.push({ key: `${key} questions ${waiting.since}`, task, kind: 'questions', decision: '', words });
  } else if (hasFailed(task)) {
    const words = `“${title}”: ${stage} failed: ${need(waiting)}. ${oneLine(now?.attempts.at(-1)?.hint ?? '')}`.trim();
    found.push({ key: `${key} failed ${waiting.since}`, task, kind: 'failed', decision: '', words });
  } else if (!now?.stopped) {
    const words = `“${title}” waits for you: ${stage}, ${need(waiting)}.`;
    found.push({ key: `${key} ${waiting.kind} ${waiting.since}`, task, kind: 'gate', decision: '', words });
  }
  return found;
}
