// Pictures that are a notice and little more: failed, to be retried, paused, expired, done, ahead, and the like.

import { clock, oneLine, several } from '../../src/amounts';
import type { PipelineStageView } from '../../src/protocol';
import { passing, refill } from '../element';
import { fresh, icon, make } from '../forms/dom';
import { drawnStage, lastOf, Model, offerOf, Page, Scene } from '../model';
import { FORMATS, lines } from '../words';
import { link } from './earlier';

type Drawn = (Node | string | null | false)[];

export function notice(name: string, role: string, ...paragraphs: (Node | string | null | false)[]): HTMLElement {
  const drawn = paragraphs.filter((one): one is Node | string => Boolean(one));
  return make('div', { class: `notice ${role}` }, icon(name, role), make('div', {}, ...drawn.map((one, at) => make('p', { class: at > 0 ? 'muted' : '', dir: 'auto' }, one))));
}

/** One of these pictures; a field in it keeps what is written there. */
export class Said {
  private readonly words = make('div');
  private readonly field: HTMLElement | null;
  readonly element: HTMLElement;
  readonly box: HTMLTextAreaElement | undefined;

  constructor(
    private readonly scene: Scene,
    model: Model,
    onInput: () => void,
  ) {
    const asked = scene === 'failed' ? ['What should the agent do differently?', 'Goes into the next attempt, with the failure above'] : scene === 'input' ? ['What should the stage know?', 'May be left empty'] : null;
    this.field = null;
    if (asked && (scene === 'input' || offerOf(model.task, 'redo'))) {
      this.box = make('textarea', { id: fresh(), rows: 3, dir: 'auto', placeholder: asked[1] ?? '' });
      this.box.addEventListener('input', onInput);
      this.field = make('div', { class: 'form field-only' }, make('div', { class: 'field' }, make('label', { for: this.box.id }, asked[0] ?? ''), this.box));
    }
    this.element = make('div', {}, this.words, this.field);
  }

  show(model: Model, page: Page): void {
    const { task } = model;
    const stage = drawnStage(model);
    const key = [task.state, task.state_since, task.error, task.reason, task.waiting_for, stage, task.decisions.length, task.metrics, Boolean(model.pipeline), task.branch];
    refill(this.words, key, () => this.draw(model, page).filter(Boolean));
  }

  private draw(model: Model, page: Page): Drawn {
    const { task } = model;
    const stage = drawnStage(model);
    const last = stage && lastOf(stage);
    switch (this.scene) {
      case 'failed': {
        const why = oneLine(stage?.reason || task.waiting_for?.reason || last?.error || 'The stage failed.');
        const attempts = stage?.attempts.length ?? 0;
        const where = last && last.changes.length > 0 ? 'its changes are in the files' : 'no file was changed';
        const rest = `The agent has stopped after ${several(attempts, 'attempt')}; ${where}.`;
        const log = last?.error && oneLine(last.error) !== why ? last.error : '';
        return [
          notice('error', 'bad', why, attempts > 0 && rest, last?.hint ?? null),
          log ? make('pre', { class: 'log', tabindex: 0 }, log) : null,
        ];
      }
      case 'retry':
        return [notice('history', 'warn', stage?.reason || 'The next attempt follows by itself.', last?.error && !(stage?.reason ?? '').includes(last.error) ? last.error : null)];
      case 'input':
        return [task.waiting_for?.reason ? make('p', { class: 'lead muted' }, task.waiting_for.reason) : null];
      case 'paused':
        return [
          notice(
            'debug-pause',
            'warn',
            `Paused since ${clock(task.state_since)}. The conversation is kept for ${KEPT_HOURS} hours; `,
            'After that the task expires: your files stay as they are, only the agent’s memory of the conversation ends.',
          ),
        ].map(one => {
          one.querySelector('p')?.append(passing(() => remaining(task.state_since)));
          return one;
        });
      case 'expired':
        return [notice('history', 'warn', `The pause ended at ${clock(task.state_since)}. Files and branch${task.branch ? ` ${task.branch}` : ''} are as you left them; the conversation is gone.`)];
      case 'done':
        return done(model, page);
      case 'over':
        return [notice(task.state === 'failed' ? 'error' : 'archive', task.state === 'failed' ? 'bad' : '', task.error ?? task.reason ?? (task.state === 'archived' ? 'This task is archived.' : 'This task was given up.'), task.branch && `Branch ${task.branch} and the files stay.`)];
      case 'ready':
      case 'ahead':
        return ahead(model);
      default:
        return [];
    }
  }
}

const KEPT_HOURS = 24;

function remaining(since: number): string {
  const minutes = Math.max(0, Math.floor((since + KEPT_HOURS * 3600 - Date.now() / 1000) / 60));
  return minutes >= 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min are left.` : `${minutes} min are left.`;
}

/** What a stage will do, when it comes to it. */
function ahead(model: Model): Drawn {
  const { task, pipeline } = model;
  const stage = drawnStage(model);
  if (!stage) return [];
  const known = pipeline?.stages.find(one => one.id === stage.id);
  const at = task.stages.indexOf(stage);
  const before = task.stages[at - 1];
  const lead = known?.description || '';
  const rows: [string, string][] = [
    ['Comes after', before?.name ?? ''],
    ['Hands over', FORMATS[stage.format] ?? stage.format],
    ['Its gate', gate(known)],
    ['The agent', stage.rule],
    ['Document', known?.artifact ?? ''],
  ];
  return [
    task.description && at === 0 && task.state !== 'taken' ? make('p', { class: 'described', dir: 'auto' }, task.description) : null,
    lead ? make('p', { class: 'lead muted' }, lead) : null,
    make('dl', { class: 'table' }, ...rows.filter(([, words]) => words).flatMap(([name, words]) => [make('dt', { class: 'muted' }, name), make('dd', {}, words)])),
  ];
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
  const yours = [several(approvals.length, 'approval'), redone ? several(redone, 'further attempt') : '', settled.length ? several(settled.length, 'answer') : ''];
  const rows: [string, Node | string][] = [
    ...(files > 0 ? [['Files', `${files} changed`] as [string, string], ['Lines', span(added, removed)] as [string, Node]] : []),
    ['Your decisions', yours.filter(Boolean).join(', ')],
  ];
  const decided = [
    ...approvals.map(stage => ({ at: stage.approval?.at ?? 0, name: 'pass', words: `${stage.name} approved`, more: stage.approval?.note ?? '' })),
    ...settled.map(one => ({ at: one.answered ?? 0, name: one.kind === 'permission' ? 'shield' : 'comment', words: oneLine(one.text || one.what), more: oneLine(one.answer || one.status) })),
  ].sort((a, b) => a.at - b.at);
  return [
    notice('pass-filled', 'good', task.branch ? `All stages are done. The work is on ${task.branch}.` : 'All stages are done. The work is in the files of this folder.', null),
    make('dl', { class: 'table' }, ...rows.flatMap(([name, words]) => [make('dt', { class: 'muted' }, name), make('dd', {}, words)])),
    decided.length > 0 && make('h3', { class: 'sev muted' }, 'What you decided'),
    decided.length > 0 &&
      make(
        'ul',
        { class: 'act' },
        ...decided.map(one => make('li', {}, icon(one.name, 'muted'), make('span', { class: 'what', dir: 'auto' }, one.words, one.more && (/[.?!]$/.test(one.words) ? ' ' : ': '), one.more && make('b', {}, one.more)), make('time', { class: 'muted' }, clock(one.at)))),
      ),
    files > 0 && make('p', { class: 'links' }, link('Show changes', () => page.command('showChanges'))),
  ];
}

function span(added: number, removed: number): HTMLElement {
  return make('span', {}, make('span', { class: 'ok' }, `+${added}`), ' ', make('span', { class: 'bad' }, `−${removed}`));
}
