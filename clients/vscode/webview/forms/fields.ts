// Fields that the agent has filled in and the person corrects, and questions: what is asked, and one control for it.

import type { FormItem } from '../../src/protocol';
import { asText, fieldValue, finding, fromText, groups, reply } from './answers';
import { Choices } from './choices';
import { describe, fresh, icon, make } from '../dom';
import { refill } from '../element';
import { inline, place, Prose } from './prose';
import { Said } from './said';
import type { Part, Sheet } from './sheet';
import { Look, TextBox } from './textbox';

const TICKED = new Set(['one', 'any', 'yes_no']);
const BOXES: Record<string, Look & { help?: string }> = {
  line: { line: true },
  text: { rows: 3 },
  long_text: { rows: 6 },
  bullets: { rows: 3, help: 'One entry on each line.' },
  files: { rows: 2, class: 'mono', placeholder: 'src/…', help: 'One path on each line, from the project’s directory.' },
  code: { rows: 4, class: 'mono' },
  json: { rows: 4, class: 'mono', help: 'JSON.' },
};

export function fields(sheet: Sheet): HTMLElement {
  const element = make('div', { class: 'fields' });
  for (const item of sheet.form.items) {
    const part = new Field(sheet, item, false);
    sheet.parts.set(item.id, part);
    element.append(part.element);
  }
  return element;
}

export function questions(sheet: Sheet): HTMLElement {
  const element = make('div', { class: 'questions' });
  const found = groups(sheet.form.items);
  for (const [topic, items] of found) {
    const parts = items.map(item => {
      const part = new Field(sheet, item, true);
      sheet.parts.set(item.id, part);
      return part.element;
    });
    if (found.length === 1) element.append(...parts);
    else {
      const id = fresh();
      const heading = make('h3', { class: 'group', id }, topic || 'Other questions');
      element.append(make('section', { 'aria-labelledby': id }, heading, ...parts));
    }
  }
  return element;
}

/** A field, or with `asked` a question, which is named by its id and has a text. */
class Field implements Part {
  readonly element: HTMLElement;
  private readonly title = make('span', { class: 'title' });
  private readonly place = make('p', { class: 'hint where' });
  private readonly body: Prose;
  private readonly said: Said;
  private readonly help: HTMLElement | undefined;
  private readonly choices: Choices | undefined;
  private readonly box: TextBox | undefined;
  /** Why what is typed can't be sent. */
  private wrong = '';

  constructor(
    private readonly sheet: Sheet,
    item: FormItem,
    private readonly asked: boolean,
  ) {
    const { id } = item;
    this.body = new Prose(() => sheet.ask, 'muted');
    this.body.element.id = fresh();
    this.said = new Said(sheet);
    const more = [this.place, this.body.element];
    if (TICKED.has(item.input)) {
      this.choices = new Choices(sheet, item, (ids, other) => {
        sheet.answer(id, asked ? reply({ ids, other }) : fieldValue(item, ids));
      });
      const one = item.input !== 'any';
      const legend = make('legend', {}, this.title);
      const role = { role: one ? 'radiogroup' : 'group', 'aria-required': one && item.required ? 'true' : undefined };
      this.element = make('fieldset', { class: 'field', ...role }, legend, ...more, this.choices.element, this.choices.clear, this.said.element);
      return;
    }
    const { help, ...look } = BOXES[item.input] ?? { rows: 3, help: undefined };
    this.box = new TextBox(asked ? { placeholder: 'Your answer', ...look } : look, text => this.typed(id, text));
    this.box.element.id = fresh();
    if (item.required) this.box.element.setAttribute('aria-required', 'true');
    const words = [item.lang, help].filter(Boolean).join(' · ');
    if (words) this.help = make('p', { class: 'hint muted', id: fresh() }, words);
    const label = make('label', { for: this.box.element.id }, this.title);
    this.element = make('div', { class: 'field' }, label, ...more, this.box.element, this.help ?? '', this.said.element);
  }

  show(item: FormItem): void {
    const { ask } = this.sheet;
    refill(this.title, [item.title, item.required], () => [
      make('span', {}, this.asked ? `${item.id} · ` : '', this.asked ? inline(ask, item.title) : item.title),
      item.required && make('span', { class: 'req', 'aria-hidden': 'true', title: 'required' }, ' *'),
      item.required && make('span', { class: 'hidden' }, ' required'),
    ]);
    const found = this.asked ? finding(item.body) : undefined;
    refill(this.place, found ?? null, () => [
      found && found.path !== '' && place(ask, found.path, found.line),
      found && found.impact !== '' && make('span', { class: 'impact' }, icon(...impact(found.impact)), `Impact: ${found.impact}`),
    ]);
    this.place.hidden = !found;
    this.body.show(this.asked ? (found ? found.rest : item.body) : '');
    const described = this.said.show(item, this.wrong, this.asked);
    if (this.body.element.hidden === false) described.unshift(this.body.element.id);
    if (this.help) described.push(this.help.id);
    this.element.classList.toggle('lack', this.wrong !== '' || (item.lacks !== '' && this.sheet.tried) || item.problem !== '');
    this.choices?.show(item, described);
    if (!this.box) return;
    describe(this.box.element, described);
    this.box.element.disabled = !this.sheet.open;
    const invalid = this.wrong !== '' || item.problem !== '' || (item.lacks !== '' && this.sheet.tried);
    this.box.element.setAttribute('aria-invalid', String(invalid));
    this.box.show(asText(item));
  }

  private typed(id: string, text: string): boolean {
    const item = this.sheet.form.items.find(one => one.id === id);
    const read = item ? fromText(item, text) : { value: text };
    this.wrong = 'problem' in read ? read.problem : '';
    if ('value' in read) this.sheet.answer(id, read.value);
    else this.sheet.show(id);
    return 'value' in read;
  }
}

function impact(words: string): [string, string] {
  if (/^crit/i.test(words)) return ['error', 'bad'];
  return /^(maj|warn|high)/i.test(words) ? ['warning', 'warn'] : ['info', 'info'];
}
