// Gives an order of the person to the server: asks for the words that it needs, and says why it was refused.

import * as path from 'node:path';
import * as vscode from 'vscode';
import type { FormNews } from './ours';
import type { TaskView } from './protocol';
import { confirmed, IN_DOCUMENT, inWords, Wanted, whichPermission, whichScope, whichStage } from './asking';
import { Given, Here } from './here';
import { Refused, Server } from './server';
import { placeIn } from './place';
import { documentOf, isBelow, real, stageOf, Tasks } from './tasks';
import { can } from './tree';
import { begun, cut, oneLine, plain, unlinked } from './words';

/** Where in an order the words of the person stand, and what to ask for. */
const WORDS: Record<string, Wanted & { field: string }> = {
  redo: { field: 'feedback', title: 'Redo with feedback', hint: 'What should the agent do differently?', document: true },
  interrupt: { field: 'text', title: 'Interrupt with feedback', hint: 'What should the agent know?', document: true },
  deny: { field: 'text', title: 'Deny', hint: 'What should the agent do in its place? (may be left empty)', optional: true },
  skip: { field: 'reason', title: 'Skip the stage', hint: 'Why is it left out? (may be left empty)', optional: true },
};
/** Refusals for what stands, or does not stand, in the document that waits. */
const IN_THE_DOCUMENT = ['answer', 'form-grammar', 'gate-lacks', 'no-text', 'notes', 'too-many', 'unknown-item'];
/** An attempt is what was ordered also if its clock is a little behind ours. */
const SOONER_S = 2;
/** How long it is said what follows from an order. */
const SAID_MS = 8000;
/** What has room beside the status bar's other items, in characters. */
const SAID = 70;
/** Orders along with which goes where the person is in the source (ED-13). */
const PLACED = ['run', 'redo', 'interrupt'];
/** Others that ask the person before they are sent. */
const ASKED_FIRST = ['goBack', 'abandon'];

export class Orders {
  private readonly given = new vscode.EventEmitter<{ tag: string; task: TaskView; at: number }>();
  /** An order was taken. */
  readonly onGiven = this.given.event;
  /** Comments on lines that go along with the next words to an agent. */
  comments: (task: TaskView) => { comments: unknown[]; sent: () => void } = () => ({ comments: [], sent: () => undefined });

  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
    private readonly here: Here,
  ) {}

  /** One of the protocol's orders, for the task that is meant. */
  async task(tag: string, given: Given): Promise<void> {
    const task = await this.here.target(given, one => can(one).includes(tag));
    if (!task) {
      if (this.tasks.all.length === 0) this.say('There is no task here yet.', ['New Task', 'promptside.newTask']);
      return;
    }
    const order: Given = { ...this.offered(task, tag, given), ...given, project: task.project, task: task.id };
    const why = this.blocked(tag, task, order);
    if (why) {
      this.say(why);
      return;
    }
    const sent = await this.complete(tag, task, order);
    if (!sent) return;
    const at = Date.now() / 1000 - SOONER_S;
    if (await this.give(tag, order, task)) {
      sent();
      this.took(tag, task, at);
    }
  }

  /** Tells that an order was taken, given at this time. */
  took(tag: string, task: TaskView, at = task.created): void {
    this.given.fire({ tag, task, at });
  }

  /** Sends an order, and says why it was refused; whether it was taken. */
  async give(tag: string, order: Given, task?: TaskView): Promise<boolean> {
    if (!this.mayAct()) return false;
    try {
      this.tell(await this.server.order<{ said?: string } | null>(tag, order));
      return true;
    } catch (error) {
      return this.refused(error, tag, order, task);
    }
  }

  /** What follows from an order, where that is more than can be seen. */
  private tell(answer: { said?: string } | null): void {
    if (answer?.said) vscode.window.setStatusBarMessage(`$(check) ${plain(begun(answer.said, SAID))}`, SAID_MS);
  }

  /** A command of the server that only shows something, or a read; undefined if it was refused, which is said. */
  async ask<R>(what: () => Promise<R>): Promise<R | undefined> {
    try {
      return await what();
    } catch (error) {
      await this.refused(error, '', {});
      return undefined;
    }
  }

  /** Whether orders may be given here: not in a folder that is not trusted, not to a daemon of another version. */
  mayAct(): boolean {
    if (!vscode.workspace.isTrusted) {
      this.say('This folder is not trusted. Tasks are shown; nothing is run.', ['Manage Trust', 'workbench.trust.manage']);
      return false;
    }
    if (this.server.mismatch) this.say(this.server.mismatch);
    return !this.server.mismatch;
  }

  /** A line for the person, with at most one thing to do. */
  say(message: string, action?: [string, string, ...unknown[]]): void {
    const titles = action ? [action[0]] : [];
    void vscode.window.showWarningMessage(unlinked(message), ...titles).then(title => {
      if (title && action) void vscode.commands.executeCommand(action[1], ...action.slice(2));
    });
  }

  /** Puts in what is missing; undefined if the person thought better of it, else what to do when it was taken. */
  private async complete(tag: string, task: TaskView, order: Given): Promise<(() => void) | undefined> {
    let sent: () => void = () => undefined;
    if ((tag === 'allow' || tag === 'deny') && !(await this.permission(tag, task, order))) return undefined;
    if (tag === 'goBack' && order['stage'] === undefined && !(await this.stage(task, order))) return undefined;
    if (!(await confirmed(tag, task, order))) return undefined;
    if (tag === 'redo' || tag === 'interrupt') {
      const collected = this.comments(task);
      if (collected.comments.length > 0) {
        order['comments'] = collected.comments;
        ({ sent } = collected);
      }
    }
    const place = PLACED.includes(tag) ? this.place(task, order) : {};
    const wanted = WORDS[tag];
    if (wanted && order[wanted.field] === undefined && !order['comments'] && !order['fresh']) {
      if (wanted.document && (await this.noted(task))) return sent;
      const words = await inWords(wanted, task, along(place));
      if (words === undefined) return undefined;
      if (words === IN_DOCUMENT) return sent; // where they can name a place themselves
      order[wanted.field] = words;
    }
    if (tag === 'run' && task.waiting_for?.kind === 'input' && order['input'] === undefined) {
      const reason = oneLine(task.waiting_for.reason);
      const hint = { title: stageOf(task)?.name ?? 'Run', hint: reason || 'What should the stage know?', optional: true };
      const words = await inWords(hint, task, along(place));
      if (words === undefined) return undefined;
      order['input'] = words;
    }
    Object.assign(order, place);
    return sent;
  }

  private offered(task: TaskView, tag: string, given: Given): Given {
    if (tag === 'goBack' || tag === 'allow' || tag === 'deny' || tag === 'undo') return {};
    const offers = task.offers.filter(offer => offer.command === `promptside.${tag}`);
    const here = offers.find(offer => offer.place === given['place']) ?? offers[0];
    return here ? { ...here.args } : {};
  }

  /** Why an order that asks the person for something would be refused: nobody writes words in vain. */
  private blocked(tag: string, task: TaskView, order: Given): string {
    if (!(tag in WORDS || ASKED_FIRST.includes(tag)) || tag === 'deny') return '';
    const offers = task.offers.filter(offer => offer.command === `promptside.${tag}`);
    const meant = offers.filter(offer => Object.entries(offer.args).every(([name, value]) => order[name] === undefined || order[name] === value));
    const possible = meant.length > 0 ? meant : offers;
    return possible.every(offer => offer.blocked !== null) ? (possible[0]?.blocked ?? '') : '';
  }

  private async permission(tag: string, task: TaskView, order: Given): Promise<boolean> {
    const asked = task.waiting_for?.decisions.filter(one => one.kind === 'permission') ?? [];
    if (asked.length === 0) this.say(`“${cut(task.title, 60)}” asks for no permission.`);
    const named = asked.find(one => one.id === order['decision']);
    const decision = named ?? (await whichPermission(asked));
    if (!decision) return false;
    if (named && tag === 'allow') order['scope'] ??= 'once'; // what is offered of one permission says so, if it goes further
    order['decision'] = decision.id;
    if (tag === 'allow') order['scope'] ??= await whichScope(task, decision);
    return tag === 'deny' || order['scope'] !== undefined;
  }

  private async stage(task: TaskView, order: Given): Promise<boolean> {
    const last = task.stages.findIndex(stage => stage.id === task.current);
    const earlier = task.stages.slice(0, last < 0 ? undefined : last);
    if (earlier.length === 0) this.say(`“${cut(task.title, 60)}” is at its first stage.`);
    else order['stage'] = await whichStage(earlier);
    return order['stage'] !== undefined;
  }

  /** Where the person is in the source goes along, if that is of the task's project. */
  private place(task: TaskView, order: Given): Given {
    const editor = vscode.window.activeTextEditor;
    if (order['uri'] !== undefined || order['comments'] !== undefined || editor?.document.uri.scheme !== 'file') return {};
    const file = real(editor.document.uri.fsPath);
    return isBelow(file, task.project) && !isBelow(file, path.join(task.project, '.promptside')) ? placeIn(editor) : {};
  }

  /** Whether the document has notes for the agent: these are the words then, and the server takes them. */
  private async noted(task: TaskView): Promise<boolean> {
    if (!task.waiting_for?.document) return false;
    try {
      // Asked for by its document: what a panel has open of the task stays open.
      const at = { uri: documentOf(task).toString() };
      const { form } = await this.server.request<FormNews>('promptside/openForm', at);
      await this.server.request('promptside/closeForm', at);
      return (form?.notes.length ?? 0) > 0;
    } catch {
      return false; // a task that waits with no form has no notes
    }
  }

  private async refused(error: unknown, tag: string, order: Given, task?: TaskView): Promise<boolean> {
    if (!(error instanceof Refused)) {
      void vscode.window.showErrorMessage(unlinked(error instanceof Error ? error.message : String(error)));
      return false;
    }
    switch (error.refusal.code) {
      case 'unsaved':
        return this.unsaved(error, tag, order, task);
      case 'missing':
        this.say(error.sentence, ['How to Install', 'promptside.install']);
        return false;
      case 'failed-to-start':
        this.say(error.sentence, ['Show Log', 'promptside.daemonLog']);
        return false;
      case 'other-bytes':
      case 'changed-elsewhere':
        this.say(error.sentence, ['Show Difference', 'promptside.showDifference', { uri: task && documentOf(task).toString() }]);
        return false;
      case 'untrusted':
        this.say(error.sentence, ['Show', 'promptside.trust', { project: order['project'] }]);
        return false;
      default:
        this.say(error.sentence, this.lack(error.refusal.code, task));
        return false;
    }
  }

  /** Where that is mended for which an order was refused: in the document, if that is what is wrong, and it still waits. */
  private lack(code: string, task?: TaskView): [string, string, unknown] | undefined {
    const now = task && this.tasks.task(task.project, task.id);
    if (!now?.waiting_for?.document || !IN_THE_DOCUMENT.includes(code)) return undefined;
    return ['Go There', 'promptside.showLack', { uri: documentOf(now).toString() }];
  }

  /** M14: a stage that may write to what is unsaved here is not started unsaid. */
  private async unsaved(error: Refused, tag: string, order: Given, task?: TaskView): Promise<boolean> {
    const [save, anyway] = ['Save and Run', 'Run Anyway'];
    const answer = await vscode.window.showWarningMessage(unlinked(error.message), save, anyway, 'Cancel');
    if (answer === anyway) return this.give(tag, { ...order, anyway: true }, task);
    if (answer !== save) return false;
    const project = String(order['project'] ?? '');
    for (const document of vscode.workspace.textDocuments) {
      const inside = document.uri.scheme === 'file' && isBelow(real(document.uri.fsPath), project);
      if (document.isDirty && inside && !(await document.save())) return false;
    }
    return this.give(tag, order, task);
  }
}

function along(place: Given): string {
  return place['uri'] !== undefined && vscode.window.activeTextEditor?.selection.isEmpty === false ? 'Your selection goes along.' : '';
}
