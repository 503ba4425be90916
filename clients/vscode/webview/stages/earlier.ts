// What came before: earlier attempts and stages, a line each, with their documents when they are opened.

import type { AttemptView, StageView, TaskView } from '../../src/protocol';
import { several } from '../../src/amounts';
import { refill } from '../element';
import { link, make } from '../dom';
import type { Page } from '../model';
import { approvedBy, cost } from '../words';

export class Earlier {
  readonly element = make('div', { class: 'earlier' });
  /** By what they say: a line that is still the same stays open, or closed, as it is. */
  private lines = new Map<string, HTMLElement>();

  show(page: Page, task: TaskView, stage: StageView | undefined, attempts: AttemptView[], stages: StageView[]): void {
    const before = this.lines;
    this.lines = new Map();
    const add = (of: StageView, attempt: AttemptView | undefined, title: string, words: string): void => {
      const key = JSON.stringify([of.id, attempt?.n, title, words]);
      this.lines.set(key, before.get(key) ?? line(page, of, attempt, title, words));
    };
    if (stage) for (const attempt of attempts) add(stage, attempt, `Attempt ${attempt.n}`, outcome(task, attempt));
    for (const one of stages) add(one, one.attempts.at(-1), one.name, approvedBy(one));
    refill(this.element, [...this.lines.keys()], () => [...this.lines.values()]);
    this.element.hidden = this.lines.size === 0;
  }
}

function outcome(task: TaskView, attempt: AttemptView): string {
  const result = attempt.error ?? (attempt.status === 'done' ? '' : attempt.status);
  const files = attempt.changes.length > 0 ? `${several(attempt.changes.length, 'file')} changed` : '';
  return [result.split('\n')[0], ...cost(task, attempt), files].filter(Boolean).join(', ');
}

function line(page: Page, stage: StageView, attempt: AttemptView | undefined, title: string, words: string): HTMLElement {
  const inside = make('div', { class: 'form inside' });
  const summary = make('summary', { 'data-key': `earlier ${stage.id} ${attempt?.n ?? 0} ${title}` }, make('span', { class: 'title', dir: 'auto' }, title), make('span', { class: 'muted' }, words));
  const element = make('details', {}, summary, inside);
  element.addEventListener('toggle', () => {
    if (element.open && inside.childElementCount === 0) void fillIn(page, inside, stage, attempt);
  });
  return element;
}

/** An attempt as it is to be read: its document, else why there is none. */
export async function fillIn(page: Page, into: HTMLElement, stage: StageView, attempt: AttemptView | undefined): Promise<void> {
  if (!attempt) {
    into.replaceChildren(make('p', { class: 'muted' }, stage.reason || 'No attempt was made.'));
    return;
  }
  const found = await page.document(stage.id, attempt.n);
  const text = found?.text.trim() ?? '';
  const body = text.replace(/^# .*\n+/, '').replace(/^> [^\n]*(answers|then approve|Then approve|Correct what|Tick every)[^\n]*\n+/, '').replace(/<!-- promptside [^\n]*-->\s*$/, '');
  into.replaceChildren(
    ...(attempt.error ? [make('p', { class: 'bad' }, attempt.error)] : []),
    body.trim() ? make('div', { class: 'prose document' }, page.markdown(body)) : make('p', { class: 'muted' }, attempt.error ? 'It left no document.' : 'Its document is not there any more.'),
    make(
      'p',
      { class: 'links' },
      ...(body.trim() ? [link('Open this attempt’s document', () => page.command('showDocument', { stage: stage.id, attempt: attempt.n }))] : []),
      link('Open transcript', () => page.command('showTranscript', { stage: stage.id, attempt: attempt.n })),
      ...(attempt.changes.length > 0 ? [link('Show changes', () => page.command('showChanges', { stage: stage.id, attempt: attempt.n }))] : []),
    ),
  );
}
