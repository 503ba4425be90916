// A form of the protocol as native controls. Everything that is done in them is an answer to the document behind it;
// everything that is shown is what was pushed of it.

import type { FormView } from '../../src/protocol';
import type { Ask } from '../ask';
import { checklist } from './checklist';
import { button, link, make, notice, told } from '../dom';
import { refill } from '../element';
import { fields, questions } from './fields';
import { options } from './options';
import { difference, Prose } from './prose';
import { noted } from './said';
import { Sheet } from './sheet';

interface Drawn {
  sheet: Sheet;
  frame: Frame;
  /** What the controls were made for; another form gets new ones. */
  shape: string;
}

export interface Suggestion {
  title: string;
  answers: Record<string, unknown>;
  act: () => void;
}

const drawn = new WeakMap<HTMLElement, Drawn>();

/** The form, to be kept current by `updateForm`. */
export function drawForm(form: FormView, ask: Ask): HTMLElement {
  const element = make('section', { class: `form ${form.kind}`, 'aria-label': form.title });
  begin(element, form, ask);
  return element;
}

/** Brings the form to what was pushed; focus, caret and what is being typed stay as they are. */
export function updateForm(element: HTMLElement, form: FormView, ask: Ask): void {
  const now = drawn.get(element);
  if (!now || now.shape !== shapeOf(form)) {
    begin(element, form, ask);
    return;
  }
  now.sheet.form = form;
  now.sheet.ask = ask;
  now.frame.show();
  now.sheet.show();
}

/** Says at the items what they lack, and goes to the first: for somebody who wanted to approve all the same. */
export function remind(element: HTMLElement): void {
  const now = drawn.get(element);
  if (!now) return;
  now.sheet.reminded = true;
  now.sheet.show();
  const { items } = now.sheet.form;
  const first = items.find(item => item.problem || item.lacks) ?? items[0];
  const part = first && now.sheet.parts.get(first.id);
  part?.element.querySelector<HTMLElement>('input:not([disabled]), textarea:not([disabled])')?.focus();
}

/** Answers that can be given by one button; those to questions stand where they are sent. */
export function suggestionsOf(element: HTMLElement): Suggestion[] {
  const now = drawn.get(element);
  return now ? suggested(now.sheet) : [];
}

function suggested(sheet: Sheet): Suggestion[] {
  if (!sheet.open) return [];
  return sheet.form.suggestions.map(({ title, answers }) => ({
    title,
    answers,
    act: () => {
      for (const [id, value] of Object.entries(answers)) sheet.answer(id, value);
    },
  }));
}

function begin(element: HTMLElement, form: FormView, ask: Ask): void {
  const sheet = new Sheet(form, ask);
  const frame = new Frame(sheet);
  drawn.set(element, { sheet, frame, shape: shapeOf(form) });
  element.className = `form ${form.kind}`;
  element.replaceChildren(frame.lead, frame.above, content(sheet, frame));
  frame.show();
  sheet.show();
}

function content(sheet: Sheet, frame: Frame): HTMLElement {
  switch (sheet.form.kind) {
    case 'text':
      return frame.text.element;
    case 'options':
      return options(sheet);
    case 'checklist':
      return checklist(sheet);
    case 'fields':
      return fields(sheet);
    case 'questions':
      return questions(sheet);
  }
}

/** Which controls there are. */
function shapeOf(form: FormView): string {
  const items = form.items.map(({ id, input, group, required, other, choices }) => [id, input, group, required, other, choices]);
  return JSON.stringify([form.project, form.task, form.document, form.attempt, form.round, form.kind, form.most, items]);
}

/** What stands above the items: what to do, what can't be read, notes, and answers to be given at once. */
class Frame {
  readonly lead = make('div', { class: 'lead' });
  readonly above = make('div', { class: 'above', 'aria-live': 'polite' });
  readonly text: Prose;

  constructor(private readonly sheet: Sheet) {
    this.text = new Prose(() => sheet.ask, 'document');
  }

  show(): void {
    const { form, ask } = this.sheet;
    const suggestions = form.kind === 'questions' ? [] : suggested(this.sheet);
    refill(this.lead, [form.sentence, form.waits, suggestions], () => [
      form.waits && make('p', { class: 'muted' }, ...sentence(form, ask)),
      ...suggestions.map(({ title, act }) => button(title, act)),
    ]);
    const errors = form.problems.filter(problem => problem.severity === 'error' && !problem.item && !atItem(form, problem.text));
    const warnings = form.problems.filter(problem => problem.severity === 'warning' && !problem.item);
    const mends = this.sheet.mends();
    const notes = form.notes.filter(note => !form.items.some(item => item.id === note.item));
    const removes = form.offers.filter(offer => offer.command === 'promptside.removeNotes');
    const key = [errors, warnings, mends, notes, removes, form.difference];
    refill(this.above, key, () => [
      errors.length + mends.length > 0 &&
        notice(
          'error',
          'bad',
          ...(errors.length > 0 ? errors : [{ text: below(form), line: 0 }]).map(({ text, line }) => {
            const go = link(`line ${line}`, () => ask.openFile(form.document, line), { class: 'link muted' });
            return make('p', {}, text, ' ', line > 0 && go);
          }),
          make('p', { class: 'mends' }, ...mends.map(offer => link(offer.title, () => ask.give(offer)))),
        ),
      ...warnings.map(({ text }) => told('warning', 'warn', text)),
      (notes.length > 0 || (form.notes.length > 0 && removes.length > 0)) &&
        notice(
          'comment',
          'info',
          notes.length > 0
            ? make('div', {}, ...notes.map(note => noted(this.sheet, note, false)))
            : make('p', {}, form.notes.length > 1 ? 'There are notes to the agent below.' : 'There is a note to the agent below.'),
          make('p', { class: 'mends' }, ...removes.map(offer => link(offer.title, () => ask.give(offer)))),
        ),
      form.edited && form.difference !== '' && difference(form.difference),
    ]);
    this.above.hidden = this.above.childElementCount === 0;
    if (form.kind === 'text') this.text.show(form.body);
  }
}

function below(form: FormView): string {
  const count = form.problems.filter(problem => problem.severity === 'error').length;
  return count > 1 ? `${count} lines can’t be read. They are marked below.` : 'A line can’t be read. It is marked below.';
}

function atItem(form: FormView, text: string): boolean {
  return form.items.some(item => item.problem === text);
}

/** What to do, without what only concerns who types in the document. */
function sentence(form: FormView, ask: Ask): (string | Node)[] {
  const said = inPanel(form);
  // A text is corrected where it can be written in, which is not here.
  const [before, after] = said.split('correct what you like');
  if (form.kind !== 'text' || after === undefined) return [said];
  return [`${before}correct what you like in `, link('its document', () => ask.openFile(form.document)), after];
}

function inPanel(form: FormView): string {
  if (form.kind === 'options') return form.sentence.replace(/: put an x in (its|their) brackets/, '');
  if (form.kind === 'fields') return form.sentence.replace('(required)', '*');
  if (form.kind === 'checklist') return form.sentence.replace(' A note goes behind "Note:".', '');
  return form.sentence;
}
