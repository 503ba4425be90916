// A word to the agent that goes with an order: a box for it, what is ordered, and a way back.

import { button, fresh, make } from './dom';

export interface Wanted {
  /** What is asked. */
  label: string;
  hint: string;
  /** What is ordered with it. */
  title: string;
  optional?: boolean;
  send: (text: string) => void;
}

export class Word {
  readonly element = make('div', { class: 'say', hidden: true });
  private box: HTMLTextAreaElement | undefined;

  /** `closed` is called when it was sent or taken back; `inside` is whether the person was in it. */
  constructor(private readonly closed: (inside: boolean) => void) {}

  ask({ label, hint, title, optional, send }: Wanted): void {
    const box = make('textarea', { id: fresh(), rows: 3, dir: 'auto', placeholder: hint });
    const give = (): void => {
      const text = box.value.trim();
      if (!text && !optional) return box.focus();
      send(text);
      this.close();
    };
    box.addEventListener('keydown', event => {
      if (event.key === 'Escape') this.close();
      else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        event.stopPropagation(); // elsewhere these keys are for what is primary
        give();
      }
    });
    const sure = button(title, give, { class: 'btn p' });
    sure.append(make('kbd', { 'aria-hidden': 'true' }, enterKey()));
    const back = button('Cancel', () => this.close());
    this.element.replaceChildren(make('label', { for: box.id }, label), box, make('div', { class: 'buttons' }, sure, back));
    this.element.hidden = false;
    this.box = box;
    box.focus();
  }

  focus(): void {
    this.box?.focus();
  }

  close(): void {
    if (this.element.hidden) return;
    const inside = this.element.contains(document.activeElement);
    this.element.hidden = true;
    this.element.replaceChildren();
    this.closed(inside);
  }
}

export function enterKey(): string {
  return navigator.platform.startsWith('Mac') ? '⌘↩' : 'Ctrl+Enter';
}
