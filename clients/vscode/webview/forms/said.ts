// What is said of an item below it: what can't be read there, what it lacks, and the notes to the agent.

import type { FormItem, FormNote, FormView } from '../../src/protocol';
import { fresh, icon, link, make } from '../dom';
import { refill } from '../element';
import type { Sheet } from './sheet';

export class Said {
  private readonly id = fresh();
  /** Read out when it changes. */
  readonly element = make('div', { class: 'said', id: this.id, 'aria-live': 'polite' });

  constructor(private readonly sheet: Sheet) {}

  /** Shows it, with what is wrong only here; the ids that describe the item's controls. */
  show(item: FormItem, local = '', quiet = true): string[] {
    const { form, tried } = this.sheet;
    const problems = problemsOf(form, item);
    const lacks = (tried || !quiet) && !local && problems.length === 0 ? item.lacks : '';
    const notes = form.notes.filter(note => note.item === item.id);
    const mends = problems.some(([severity]) => severity === 'error') ? this.sheet.mends(item.id) : [];
    const key = [problems, local, lacks, tried, notes, mends];
    refill(this.element, key, () => [
      ...problems.map(([severity, text]) => hint(severity, text)),
      local && hint('error', local),
      mends.length > 0 &&
        make('p', { class: 'hint mends' }, ...mends.map(offer => link(offer.title, () => this.sheet.ask.give(offer)))),
      lacks && (tried ? hint('warning', lacks) : make('p', { class: 'hint muted' }, lacks)),
      ...notes.map(note => noted(this.sheet, note)),
    ]);
    return this.element.childElementCount > 0 ? [this.id] : [];
  }
}

/** What is wrong with an item, the worst first. */
function problemsOf(form: FormView, item: FormItem): ['error' | 'warning', string][] {
  const found: ['error' | 'warning', string][] = [];
  for (const severity of ['error', 'warning'] as const) {
    for (const problem of form.problems) {
      const here = problem.item === item.id && problem.severity === severity && !problem.code.startsWith('gate-');
      if (here && !found.some(([, text]) => text === problem.text)) found.push([severity, problem.text]);
    }
  }
  if (item.problem && !found.some(([, text]) => text === item.problem)) found.unshift(['error', item.problem]);
  return found;
}

export function hint(severity: 'error' | 'warning', text: string): HTMLElement {
  const role = severity === 'error' ? 'bad' : 'warn';
  return make('p', { class: `hint ${role}` }, icon(severity, role), make('span', {}, text));
}

/** A note to the agent, as it stands in the document. */
export function noted(sheet: Sheet, note: FormNote, marked = true): HTMLElement {
  const go = link(`line ${note.line}`, () => sheet.ask.openFile(sheet.form.document, note.line), { class: 'link muted' });
  return make('p', { class: 'hint noted' }, marked && icon('comment', 'info'), make('span', {}, 'To the agent: ', note.text || '(empty)', ' ', go));
}
