// Choices of a question or a field: one or any, with an answer of the person's own where it is taken.

import type { FormItem } from '../../src/protocol';
import { chosen } from './answers';
import { describe, fresh, make } from '../dom';
import { inline } from './prose';
import type { Sheet } from './sheet';
import { TextBox } from './textbox';

export class Choices {
  readonly element = make('div', { class: 'opts' });
  private readonly name = fresh();
  private readonly inputs = new Map<string, HTMLInputElement>();
  /** Takes back what is chosen of one; stands where the caller puts it, behind the choices. */
  readonly clear = make('button', { type: 'button', class: 'link muted clear', hidden: true }, 'Clear');
  private own: { tick: HTMLInputElement; box: TextBox; row: HTMLElement } | undefined;
  /** Whether the answer had words of the person's own. */
  private had = false;
  private pointed = false;
  /** That “Other” is ticked, before anything is written behind it. */
  private wanted = false;
  private item: FormItem;

  /** `give` is called with what is ticked whenever that changes. */
  constructor(
    private readonly sheet: Sheet,
    item: FormItem,
    private readonly give: (ids: string[], other: string) => void,
  ) {
    this.item = item;
    const type = item.input === 'any' ? 'checkbox' : 'radio';
    const offered = item.choices.length === 0 && item.input === 'yes_no' ? YES_NO : item.choices;
    for (const choice of offered) {
      const input = make('input', { type, name: this.name, value: choice.id, change: () => this.changed(choice.id) });
      this.inputs.set(choice.id, input);
      const more = make('div', { class: 'muted prose' });
      if (choice.description) more.append(this.sheet.ask.markdown(choice.description));
      this.element.append(
        make(
          'label',
          { class: 'opt' },
          input,
          make(
            'span',
            {},
            inline(this.sheet.ask, choice.title || choice.id),
            choice.recommended && make('span', { class: 'pill' }, 'recommended'),
            choice.description ? more : null,
          ),
        ),
      );
    }
    if (item.other) this.addOther(type);
    if (type === 'radio') this.clear.addEventListener('click', () => this.takeBack());
  }

  show(item: FormItem, described: string[]): void {
    this.item = item;
    const { ids, other } = chosen(item);
    const open = this.sheet.open;
    const left = this.had && !other && !this.element.contains(document.activeElement);
    this.had = other !== '';
    if (other) this.wanted = true;
    else if (left || (item.input !== 'any' && ids.length > 0)) this.wanted = false;
    for (const [id, input] of this.inputs) {
      input.checked = ids.includes(id);
      input.disabled = !open;
      describe(input, described);
    }
    const own = this.wanted || this.sheet.form.problems.some(problem => problem.item === item.id && problem.code === 'form-other');
    if (this.own) {
      this.own.tick.checked = own;
      this.own.tick.disabled = this.own.box.element.disabled = !open;
      this.own.row.hidden = !own;
      describe(this.own.box.element, described);
      this.own.box.show(other);
    }
    this.clear.hidden = item.input === 'any' || !open || !(ids.length > 0 || own);
  }

  private addOther(type: string): void {
    const tick = make('input', { type, name: this.name, value: '', change: () => this.changed() });
    const look = { paragraph: true, rows: 1, label: `Other answer to ${this.item.id}`, placeholder: 'Your answer' };
    const box = new TextBox(look, () => {
      this.changed();
      return true;
    });
    const row = make('div', { class: 'own', hidden: true }, box.element);
    this.own = { tick, box, row };
    this.element.append(make('label', { class: 'opt' }, tick, make('span', {}, 'Other')), row);
    this.element.addEventListener('pointerdown', () => (this.pointed = true));
    this.element.addEventListener('keydown', () => (this.pointed = false));
    this.element.addEventListener('focusout', event => {
      const still = !document.hasFocus() || this.element.contains(event.relatedTarget as Node | null);
      if (still || !this.wanted || box.text.trim()) return;
      this.wanted = false; // ticked, but nothing was written: the document has no such answer
      this.sheet.show(this.item.id);
    });
  }

  private changed(picked?: string): void {
    const any = this.item.input === 'any';
    this.wanted = this.own !== undefined && this.own.tick.checked && (any || picked === undefined);
    const ids = [...this.inputs].filter(([, input]) => input.checked).map(([id]) => id);
    this.give(ids, this.wanted ? (this.own?.box.text ?? '') : '');
    if (this.own && this.wanted && this.pointed && document.activeElement === this.own.tick) this.own.box.element.focus();
  }

  private takeBack(): void {
    this.wanted = false;
    this.give([], '');
    this.inputs.values().next().value?.focus();
  }
}

const YES_NO = ['Yes', 'No'].map(id => ({ id, title: id, description: '', recommended: false }));
