// Pictures that are a notice and little more: failed, to be retried, paused, expired, done, ahead, and the like.

import { clock, oneLine, several } from '../../src/amounts';
import type { AttemptView, PipelineStageView, TaskView } from '../../src/protocol';
import { passing, refill } from '../element';
import { fresh, icon, make, told } from '../dom';
import { inline } from '../forms/prose';
import { drawnStage, lastOf, Model, offerOf, Page, Scene } from '../model';
import { due, FORMATS, lines, sentence } from '../words';

type Drawn = (Node | string | null | false)[];

/** Where the person can say something at once, and what is asked. */
const ASKED: Partial<Record<Scene, { label: string; hint: string }>> = {
  failed: { label: 'What should the agent do differently?', hint: 'Goes into the next attempt, with the failure above' },
  stopped: { label: 'What should the agent do differently?', hint: 'Goes into the next attempt' },
  input: { label: 'What should the stage know?', hint: 'May be left empty' },
};

/** One of these pictures; a field in it keeps what is written there. */
export class Said {
  private readonly words = make('div');
  private readonly field: HTMLElement | undefined;
  readonly element: HTMLElement;
  readonly box: HTMLTextAreaElement | undefined;

  constructor(
    private readonly scene: Scene,
    model: Model,
    onInput: () => void,
  ) {
    const asked = ASKED[scene];
    if (asked && (scene === 'input' || offerOf(model.task, 'redo'))) {
      this.box = make('textarea', { id: fresh(), rows: 3, dir: 'auto', placeholder: asked.hint });
      this.box.addEventListener('input', onInput);
      this.field = make('div', { class: 'field' }, make('label', { for: this.box.id }, asked.label), this.box);
    }
    this.element = make('div', {}, this.words, this.field);
  }

  show(model: Model, page: Page): void {
    const { task } = model;
    const stage = drawnStage(model);
    const key = [task.state, task.state_since, task.terminal, task.error, task.reason, task.waiting_for, stage, task.decisions.length, task.metrics, Boolean(model.pipeline), task.branch];
    refill(this.words, key, () => this.draw(model, page).filter(Boolean));
  }

  private draw(model: Model, page: Page): Drawn {
    const { task } = model;
    const stage = drawnStage(model);
    const last = stage && lastOf(stage);
    switch (this.scene) {
      case 'failed': {
        const why = oneLine(task.waiting_for?.reason || stage?.reason || last?.error || 'The stage failed.');
        const attempts = stage?.attempts.length ?? 0;
        const rest = `The agent has stopped after ${several(attempts, 'attempt')}; ${whatIsLeft(last)}.`;
        const log = last?.error && oneLine(last.error) !== why ? last.error : '';
        return [told('error', 'bad', why, attempts > 0 && rest, last?.hint), log ? make('pre', { class: 'log', tabindex: 0 }, log) : null];
      }
      case 'stopped':
        return [told('debug-stop', '', oneLine(task.waiting_for?.reason || 'It was stopped.'), `${sentence(whatIsLeft(last))} ${last?.hint ?? ''}`)];
      case 'retry': {
        const at = stage?.retry_at ?? 0;
        return [told('history', 'warn', passing(() => `Attempt ${(last?.n ?? 0) + 1} starts ${due(at)}.`), stage?.reason)];
      }
      case 'input':
        return [about(model), task.waiting_for?.reason].map(words => (words ? make('p', { class: 'lead muted' }, words) : null));
      case 'terminal':
        return [told('terminal', 'info', task.terminal?.words, 'Leaving the agent’s program there gives it back; until then no agent goes on with this task.')];
      case 'paused':
        return [told('debug-pause', 'warn', `Paused since ${clock(task.state_since)}.`, stage?.status === 'current' ? 'Resuming goes on with the same conversation. Your files stay as they are meanwhile.' : 'Resuming brings back what waited for you. Nothing is lost meanwhile.')];
      case 'expired':
        return [told('history', 'warn', `The pause ended at ${clock(task.state_since)}. Files and branch${task.branch ? ` ${task.branch}` : ''} are as you left them; the conversation is gone.`)];
      case 'done':
        return done(model, page);
      case 'over':
        return [over(task)];
      case 'ready':
      case 'ahead':
        return ahead(model);
      default:
        return [];
    }
  }
}

function whatIsLeft(last: AttemptView | undefined): string {
  return last && last.changes.length > 0 ? 'its changes are in the files' : 'no file was changed';
}

function over(task: TaskView): HTMLElement {
  const stay = task.branch ? `Branch ${task.branch} and the files stay.` : 'The files stay as they are.';
  if (task.state === 'failed') return told('error', 'bad', sentence(task.error ?? task.reason ?? 'This task failed'), stay);
  if (task.reason === ABANDONED) return told('circle-slash', '', 'This task was abandoned.', stay);
  return told('archive', '', sentence(task.reason ?? 'This task is archived'), stay);
}

/** The reason of a task that was put away before it was done. */
export const ABANDONED = 'abandoned';

/** What a stage will do, when it comes to it. */
function ahead(model: Model): Drawn {
  const { task, pipeline } = model;
  const stage = drawnStage(model);
  if (!stage) return [];
  const known = pipeline?.stages.find(one => one.id === stage.id);
  const lead = about(model);
  const at = task.stages.indexOf(stage);
  const before = task.stages[at - 1];
  const rows: [string, string][] = [
    ['Comes after', before?.name ?? ''],
    ['Hands over', FORMATS[stage.format] ?? stage.format],
    ['Its gate', gate(known)],
    ['The agent', stage.rule],
    ['Document', known?.artifact ?? ''],
  ];
  return [
    task.state === 'draft' && make('p', { class: 'lead muted' }, 'A draft: nothing runs before it is marked as ready.'),
    task.description && at === 0 && task.state !== 'taken' ? make('p', { class: 'described', dir: 'auto' }, task.description) : null,
    lead ? make('p', { class: 'lead muted' }, lead) : null,
    make('dl', { class: 'table' }, ...rows.filter(([, words]) => words).flatMap(([name, words]) => [make('dt', { class: 'muted' }, name), make('dd', {}, words)])),
  ];
}

/** What a stage is for, as its pipeline says. */
function about(model: Model): string {
  const stage = drawnStage(model);
  return model.pipeline?.stages.find(one => one.id === stage?.id)?.description ?? '';
}

function gate(stage: PipelineStageView | undefined): string {
  if (!stage) return '';
  const { type, min, max } = (stage.gate ?? {}) as { type?: string; min?: number; max?: number };
  switch (type) {
    case 'require_approval':
      return 'you approve it';
    case 'require_selection':
      return `you select ${min === max || max === undefined ? (min ?? 1) : `${min ?? 1} to ${max}`}`;
    case 'require_all_checked':
      return 'you tick every item';
    case 'require_fields':
      return 'you fill in what is required';
    default:
      return 'none: it goes on by itself';
  }
}

function done(model: Model, page: Page): Drawn {
  const { task } = model;
  const changes = task.stages.flatMap(stage => lastOf(stage)?.changes ?? []);
  const files = new Set(changes.map(change => change.path)).size;
  const { added, removed } = task.metrics.loc_added !== null ? { added: task.metrics.loc_added, removed: task.metrics.loc_removed ?? 0 } : lines(changes);
  const settled = task.decisions.filter(one => one.status === 'answered' || one.status === 'denied');
  const approvals = task.stages.filter(stage => stage.approval !== null);
  const redone = task.stages.reduce((sum, stage) => sum + Math.max(0, stage.attempts.length - 1), 0);
  const permissions = settled.filter(one => one.kind === 'permission').length;
  const counts: [number, string][] = [[approvals.length, 'approval'], [redone, 'further attempt'], [settled.length - permissions, 'answer'], [permissions, 'permission']];
  const rows: [string, Node | string][] = [
    ...(files > 0 ? [['Files', `${files} changed`] as [string, string], ['Lines', span(added, removed)] as [string, Node]] : []),
    ['Your decisions', counts.filter(([count]) => count > 0).map(([count, name]) => several(count, name)).join(', ') || 'none'],
  ];
  const decided = [
    ...approvals.map(stage => ({ at: stage.approval?.at ?? 0, name: 'pass', words: `${stage.name} approved${stage.approval?.edited ? ' with your changes' : ''}`, more: [stage.approval?.selected.join(', '), stage.approval?.note].filter(Boolean).join(' · ') })),
    ...task.stages.filter(stage => stage.input).map(stage => ({ at: stage.attempts[0]?.started ?? 0, name: 'comment', words: `For ${stage.name}`, more: oneLine(stage.input) })),
    ...task.stages.flatMap(stage => stage.attempts.filter(one => one.feedback).map(one => ({ at: one.started ?? 0, name: 'debug-restart', words: `${stage.name} sent back`, more: oneLine(one.feedback) }))),
    ...settled.map(one => ({ at: one.answered ?? 0, name: one.kind === 'permission' ? 'shield' : 'comment', words: oneLine(one.text || one.what), more: one.kind === 'permission' ? sentence(one.answer || one.status) : oneLine(one.answer || one.status) })),
  ].sort((a, b) => a.at - b.at);
  return [
    told('pass-filled', 'ok', task.branch ? `All stages are done. The work is on ${task.branch}.` : 'All stages are done. The work is in the files of this folder.'),
    make('dl', { class: 'table' }, ...rows.flatMap(([name, words]) => [make('dt', { class: 'muted' }, name), make('dd', {}, words)])),
    decided.length > 0 && make('h3', { class: 'sev muted' }, 'What you decided'),
    decided.length > 0 &&
      make(
        'ul',
        { class: 'act decided' },
        ...decided.map(one => make('li', {}, icon(one.name, 'muted'), make('span', { class: 'what', dir: 'auto', title: one.words }, inline(page, one.words), one.more && (/[.?!]$/.test(one.words) ? ' ' : ': '), one.more && make('b', {}, one.more)), make('time', { class: 'muted' }, clock(one.at)))),
      ),
  ];
}

function span(added: number, removed: number): HTMLElement {
  return make('span', {}, make('span', { class: 'ok' }, `+${added}`), ' ', make('span', { class: 'bad' }, `−${removed}`));
}
