// A checklist: points by severity, each with a tick, its place in the source and a note.

import type { FormItem, FormView } from '../../src/protocol';
import { describe, fresh, icon, link, make } from '../dom';
import { refill } from '../element';
import { groups } from './answers';
import { inline, place, Prose } from './prose';
import { Said } from './said';
import type { Part, Sheet } from './sheet';
import { TextBox } from './textbox';

const ICONS: Record<string, [string, string]> = {
  critical: ['error', 'bad'],
  warning: ['warning', 'warn'],
  info: ['info', 'info'],
};

interface Tick {
  ticked: boolean;
  note: string;
}

export function checklist(sheet: Sheet): HTMLElement {
  const element = make('div', { class: 'checklist' });
  for (const [group, items] of groups(sheet.form.items)) {
    const id = fresh();
    const heading = make('h3', { class: 'sev', id });
    const section = make('section', { 'aria-labelledby': id }, heading);
    for (const item of items) {
      const part = new Point(sheet, item, () => count(heading, group, items.map(one => one.id), sheet));
      sheet.parts.set(item.id, part);
      section.append(part.element);
    }
    element.append(section);
  }
  return element;
}

/** “1 of 2”, with what was ticked just now. */
function count(heading: HTMLElement, group: string, ids: string[], sheet: Sheet): void {
  const points = ids.map(id => sheet.parts.get(id)).filter((part): part is Point => part instanceof Point);
  const ticked = points.filter(point => point.ticked).length;
  const severity = severityOf(sheet.form, ids[0]);
  const [name, role] = ICONS[severity] ?? ['circle-outline', 'muted'];
  const words = `${ticked} of ${points.length}`;
  refill(heading, `${group} ${words}`, () => [
    icon(name, role),
    make('span', {}, group),
    ' ',
    make('span', { class: 'pill' }, words, make('span', { class: 'hidden' }, ' reviewed')),
  ]);
}

function severityOf(form: FormView, id: string | undefined): string {
  return form.items.find(item => item.id === id)?.severity ?? '';
}

class Point implements Part {
  readonly element: HTMLElement;
  private readonly tick = make('input', { type: 'checkbox', id: fresh() });
  private readonly label = make('label', { for: this.tick.id });
  private readonly where = make('span', { class: 'where' });
  private readonly body: Prose;
  private readonly said: Said;
  private readonly note: TextBox;
  private readonly noteRow: HTMLElement;
  private readonly acts = make('div', { class: 'acts' });
  private readonly add: HTMLElement;
  private opened = false;

  constructor(
    private readonly sheet: Sheet,
    private readonly first: FormItem,
    private readonly counted: () => void,
  ) {
    const { id } = first;
    this.body = new Prose(() => sheet.ask, 'muted');
    this.body.element.id = fresh();
    this.said = new Said(sheet);
    this.note = new TextBox({ paragraph: true, rows: 1, label: `Note on ${id}`, placeholder: 'Your note' }, text => {
      sheet.answer(id, { ...this.now, note: text.trim() });
      return true;
    });
    this.note.element.addEventListener('blur', () => {
      this.opened = false;
      sheet.show(id);
    });
    this.noteRow = make('div', { class: 'note', hidden: true }, this.note.element);
    this.add = link('Add a note', () => this.open(), { class: 'link addnote', 'aria-label': `Add a note on ${id}` });
    this.tick.addEventListener('change', () => sheet.answer(id, { ...this.now, ticked: this.tick.checked }));
    const line = make('div', { class: 'line' }, this.label, ' ', this.where);
    const content = make('div', { class: 'content' }, line, this.body.element, this.noteRow, this.acts, this.said.element);
    this.element = make('div', { class: 'item' }, this.tick, content);
    this.now = tickOf(first);
  }

  /** The answer, with what was done here just now. */
  private now: Tick;

  get ticked(): boolean {
    return this.now.ticked;
  }

  show(item: FormItem): void {
    const { ask, open } = this.sheet;
    this.now = tickOf(item);
    refill(this.label, item.title, () => [make('span', { class: 'muted id' }, item.id), ' ', inline(ask, item.title)]);
    refill(this.where, `${item.path}:${item.path_line}`, () => [item.path !== '' && place(ask, item.path, item.path_line)]);
    this.body.show(item.body);
    this.tick.checked = this.now.ticked;
    this.tick.disabled = this.note.element.disabled = !open;
    this.element.classList.toggle('done', this.now.ticked);
    const described = this.said.show(item);
    describe(this.tick, [...(item.body ? [this.body.element.id] : []), ...described]);
    this.note.show(this.now.note);
    const noted = this.opened || this.now.note !== '';
    this.noteRow.hidden = !noted;
    const offers = open ? this.sheet.offers(item.id) : [];
    refill(this.acts, [open && !noted, offers], () => [
      open && !noted && this.add,
      ...offers.map(offer =>
        link(offer.title, () => !offer.blocked && ask.give(offer), {
          'aria-disabled': offer.blocked !== null,
          title: offer.blocked,
        }),
      ),
    ]);
    this.acts.hidden = this.acts.childElementCount === 0;
    this.counted();
  }

  private open(): void {
    this.opened = true;
    this.sheet.show(this.first.id);
    this.note.element.focus();
  }
}

function tickOf(item: FormItem): Tick {
  const { ticked, note } = (item.answer ?? {}) as Partial<Tick>;
  return { ticked: ticked ?? false, note: note ?? '' };
}
