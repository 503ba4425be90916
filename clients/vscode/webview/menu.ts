// A menu below a button, as the editor's own: arrows, first letters, Escape, and the focus goes back where it was.

import { refill } from './element';
import { make } from './dom';

export interface Entry {
  title: string;
  act: () => void;
  blocked?: string | null;
}

export class Menu {
  readonly element = make('div', { class: 'menu', role: 'menu', 'aria-label': 'More actions', hidden: true });
  private opener: HTMLElement | undefined;
  private entries: Entry[] = [];

  constructor() {
    this.element.addEventListener('keydown', event => this.key(event));
    this.element.addEventListener('focusout', event => {
      if (!this.element.contains(event.relatedTarget as Node | null) && event.relatedTarget !== this.opener) this.close(false);
    });
  }

  /** Groups of entries, with a line between them. */
  show(groups: Entry[][]): void {
    const full = groups.filter(group => group.length > 0);
    this.entries = full.flat();
    let at = 0;
    refill(this.element, full.map(group => group.map(({ title, blocked }) => [title, blocked])), () =>
      full.flatMap((group, index) => [
        index > 0 && make('div', { role: 'separator' }),
        ...group.map(entry => this.item(entry, at++)),
      ]),
    );
  }

  toggle(opener: HTMLElement): void {
    this.opener = opener;
    if (!this.element.hidden) return this.close(true);
    this.element.hidden = false;
    opener.setAttribute('aria-expanded', 'true');
    this.items[0]?.focus();
  }

  private get items(): HTMLElement[] {
    return [...this.element.querySelectorAll<HTMLElement>('[role=menuitem]')];
  }

  private item({ title, blocked }: Entry, at: number): HTMLElement {
    const act = (): void => {
      this.close(true);
      this.entries[at]?.act(); // as it was told last, not when it was drawn; what is blocked says why
    };
    const off = blocked ? { 'aria-disabled': 'true', title: blocked } : {};
    return make('button', { type: 'button', role: 'menuitem', tabindex: -1, 'data-key': `menu ${at} ${title}`, click: act, ...off }, title);
  }

  private close(back: boolean): void {
    if (this.element.hidden) return;
    this.element.hidden = true;
    this.opener?.setAttribute('aria-expanded', 'false');
    if (back) this.opener?.focus();
  }

  private key(event: KeyboardEvent): void {
    const { items } = this;
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key === 'Escape' || event.key === 'Tab') this.close(true);
    else if (to !== undefined) items.at(to % items.length)?.focus();
    else if (/^\S$/.test(event.key)) {
      const begins = (item: HTMLElement): boolean => (item.textContent ?? '').toLowerCase().startsWith(event.key.toLowerCase());
      [...items.slice(at + 1), ...items].find(begins)?.focus();
    } else return;
    if (event.key !== 'Tab') event.preventDefault();
    event.stopPropagation();
  }
}
