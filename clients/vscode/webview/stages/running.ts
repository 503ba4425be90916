// A stage at work: how far it is, and what the agent did last.

import type { StageView, Step } from '../../src/protocol';
import { several } from '../../src/amounts';
import { passing, refill } from '../element';
import { icon, make } from '../dom';
import { drawnStage, lastOf, Model, Page } from '../model';
import { ago, isAtWork, lines } from '../words';

const ICONS: [RegExp, string][] = [
  [/^(edit|write|wrote|notebook|multiedit)/i, 'edit'],
  [/^(ran|run|bash|\$)/i, 'terminal'],
  [/^(search|find|grep|glob|list|ls)/i, 'search'],
  [/^(read)/i, 'book'],
  [/^(fetch|web)/i, 'globe'],
  [/^(ask|question)/i, 'question'],
  [/^(task|agent)/i, 'person'],
  [/^(todo|plan)/i, 'checklist'],
];

export class Running {
  private readonly lead = make('p', { class: 'lead muted' });
  private readonly meter = make('div', { class: 'meter', role: 'progressbar', 'aria-label': 'Steps of the agent’s list', 'aria-valuemin': 0 }, make('i'));
  private readonly last = make('div');
  readonly element = make('div', {}, this.lead, this.meter, this.last);

  show(model: Model, page: Page): void {
    const { activity } = model;
    const stage = drawnStage(model);
    const attempt = stage && lastOf(stage);
    const { added, removed } = lines(attempt?.changes ?? []);
    const changed = attempt?.changes.length ?? 0;
    const steps = activity && activity.steps > 0 ? activity : null;
    const facts = [activity === null, attempt?.session, activity?.step, activity?.steps, changed, added, removed, activity?.context_percent, stage?.status, stage?.reason, stage && isAtWork(stage), model.task.waiting_for !== null];
    refill(this.lead, facts, () => [
      stage?.status === 'checking' ? 'The checks are running. ' : '',
      !activity && stage?.status !== 'checking' && !model.task.waiting_for ? beginning(stage) : '',
      steps ? `Step ${Math.min(steps.step + 1, steps.steps)} of ${steps.steps}. ` : '',
      changed > 0 && `${several(changed, 'file')} changed, `,
      changed > 0 && make('span', { class: 'ok' }, `+${added}`),
      changed > 0 && ' ',
      changed > 0 && make('span', { class: 'bad' }, `−${removed}`),
      changed > 0 && '. ',
      typeof activity?.context_percent === 'number' ? `Context ${Math.round(activity.context_percent)} % full.` : '',
    ]);
    this.lead.hidden = !this.lead.textContent;
    this.meter.hidden = !steps;
    if (steps) {
      this.meter.setAttribute('aria-valuenow', String(steps.step));
      this.meter.setAttribute('aria-valuemax', String(steps.steps));
      this.meter.querySelector('i')?.style.setProperty('width', `${(100 * steps.step) / steps.steps}%`);
    }
    const done = [...(activity?.last ?? [])].sort((a, b) => b.at - a.at).slice(0, 5);
    refill(this.last, done, () => (done.length > 0 ? [make('h3', { class: 'sev muted' }, 'Last actions'), make('ul', { class: 'act' }, ...done.map(step => this.row(step, page)))] : []));
  }

  private row(step: Step, page: Page): HTMLElement {
    const name = ICONS.find(([words]) => words.test(step.text))?.[1] ?? (step.role === 'text' ? 'comment' : 'tools');
    const [verb, rest] = parted(step);
    const where = `${step.path}${step.line ? `:${step.line}` : ''}`;
    const open = step.path && make('button', { type: 'button', class: 'link', 'data-key': `step ${step.at} ${step.path}`, title: `Open ${where}`, click: () => page.openFile(step.path, step.line ?? undefined) }, step.path);
    const words = [verb, ' ', open || (rest && (step.role === 'tool' ? make('code', {}, rest) : rest)), step.ok === false && make('span', { class: 'bad' }, ' failed')];
    return make('li', {}, icon(name, 'muted'), make('span', { class: 'what', title: step.text }, ...words), passing(() => ago(step.at), { class: 'muted' }));
  }
}

/** What there is to say before the agent has done anything. */
function beginning(stage: StageView | undefined): string {
  if (!stage || !isAtWork(stage)) return stage?.reason ?? '';
  return lastOf(stage)?.session ? 'The agent is at work. ' : 'The agent is starting. ';
}

/** The word that says what was done, and what with. */
function parted(step: Step): [string, string] {
  const text = step.text.replace(/\s+/g, ' ').trim();
  if (step.role === 'text') return [text, ''];
  const at = text.indexOf(' ');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
