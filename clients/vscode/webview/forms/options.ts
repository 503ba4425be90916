// Options as cards; with one to be selected they are radio buttons, with more check boxes.

import type { FormItem } from '../../src/protocol';
import { describe, fresh, icon, make } from '../dom';
import { refill } from '../element';
import { inline, Prose } from './prose';
import { Said } from './said';
import type { Part, Sheet } from './sheet';

export function options(sheet: Sheet): HTMLElement {
  const { form } = sheet;
  const name = fresh();
  const element = make('fieldset', { role: form.most === 1 ? 'radiogroup' : 'group', class: 'cards' });
  element.append(make('legend', { class: 'hidden' }, form.title));
  for (const item of form.items) {
    const part = new Card(sheet, item, name);
    sheet.parts.set(item.id, part);
    element.append(part.element);
  }
  return element;
}

class Card implements Part {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement | undefined;
  private readonly title = make('h3', { id: fresh() });
  private readonly body: Prose;
  private readonly reasons = make('div', { class: 'two' });
  private readonly said: Said;

  constructor(
    private readonly sheet: Sheet,
    item: FormItem,
    name: string,
  ) {
    this.body = new Prose(() => sheet.ask);
    this.body.element.id = fresh();
    this.said = new Said(sheet);
    const content = make('div', { class: 'content' }, this.title, this.body.element, this.reasons, this.said.element);
    if (sheet.form.most < 1) {
      this.element = make('div', { class: 'card plain' }, content);
      return;
    }
    const { id } = item;
    const one = sheet.form.most === 1;
    this.input = make('input', { type: one ? 'radio' : 'checkbox', name, 'aria-labelledby': this.title.id });
    this.input.addEventListener('change', () => this.select(id, one));
    this.element = make('label', { class: 'card', click: event => selecting(event, this.element) }, this.input, content);
  }

  show(item: FormItem): void {
    const { ask } = this.sheet;
    refill(this.title, [item.title, item.recommended], () => [
      make('span', {}, `${item.id} · `, inline(ask, item.title)),
      item.recommended && make('span', { class: 'pill' }, 'recommended'),
    ]);
    this.body.show(item.body);
    refill(this.reasons, [item.pros, item.cons], () => [
      list('For', 'add', 'ok', item.pros, text => inline(ask, text)),
      list('Against', 'remove', 'bad', item.cons, text => inline(ask, text)),
    ]);
    this.reasons.hidden = item.pros.length + item.cons.length === 0;
    const described = this.said.show(item);
    if (!this.input) return;
    this.input.checked = item.answer === true;
    this.input.disabled = !this.sheet.open;
    describe(this.input, [this.body.element.id, ...described]);
  }

  private select(id: string, one: boolean): void {
    // Of two that exclude each other the other one gives way at once, as it does in the daemon.
    const others = this.sheet.form.items.filter(item => one && item.id !== id).map(item => [item.id, false]);
    this.sheet.answer(id, this.input?.checked ?? false, Object.fromEntries(others));
  }
}

function list(label: string, name: string, role: string, points: string[], draw: (text: string) => Node): HTMLElement {
  const rows = points.map(point => make('li', {}, icon(name, role), make('span', {}, draw(point))));
  return make('ul', { 'aria-label': label, hidden: points.length === 0 }, ...rows);
}

/** Text that is being marked in a card selects no option. */
function selecting(event: Event, card: HTMLElement): void {
  const marked = document.getSelection();
  const inside = marked && !marked.isCollapsed && marked.anchorNode && card.contains(marked.anchorNode);
  if (inside && !(event.target instanceof HTMLInputElement)) event.preventDefault();
}
