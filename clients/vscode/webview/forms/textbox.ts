// A box for text. It sends 400 ms after the last key and when it is left; what is pushed never touches it meanwhile.

import { make } from '../dom';

const PAUSE_MS = 400;

export interface Look {
  /** Of one line; a box of several grows with its text. */
  line?: boolean;
  /** One paragraph that may be long: Enter sends. */
  paragraph?: boolean;
  rows?: number;
  class?: string;
  label?: string;
  placeholder?: string;
}

export class TextBox {
  readonly element: HTMLInputElement | HTMLTextAreaElement;
  private due: ReturnType<typeof setTimeout> | undefined;
  private focused = false;
  /** The text that the form has. */
  private known = '';
  private unsent = false;

  /** `send` gives the text, and says whether it could be given. */
  constructor(
    look: Look,
    private readonly send: (text: string) => boolean,
  ) {
    const { label, placeholder, rows = 2 } = look;
    const more = { dir: 'auto', class: look.class, 'aria-label': label, placeholder, spellcheck: look.class?.includes('mono') ? 'false' : 'true' };
    this.element = look.line ? make('input', { type: 'text', ...more }) : make('textarea', { rows, ...more });
    this.element.addEventListener('focus', () => (this.focused = true));
    this.element.addEventListener('input', () => this.typed());
    this.element.addEventListener('change', () => this.flush());
    this.element.addEventListener('blur', () => this.left());
    this.element.addEventListener('keydown', event => {
      const { key, ctrlKey, metaKey, isComposing } = event as KeyboardEvent;
      if (key !== 'Enter' || isComposing) return;
      if (ctrlKey || metaKey) this.flush(); // in front of the approval that these keys are for
      else if (look.line || look.paragraph) {
        event.preventDefault();
        this.flush();
      }
    });
  }

  get text(): string {
    return this.element.value;
  }

  show(text: string): void {
    this.known = text;
    if (!this.focused && !this.unsent && this.element.value !== text) this.element.value = text;
  }

  /** Sends what was typed, if anything was. */
  flush(): void {
    clearTimeout(this.due);
    this.due = undefined;
    if (!this.unsent) return;
    const text = this.element.value;
    this.unsent = false;
    if (text === this.known) return;
    const before = this.known;
    this.known = text;
    if (this.send(text)) return;
    this.known = before;
    this.unsent = true;
  }

  private typed(): void {
    this.unsent = true;
    clearTimeout(this.due);
    this.due = setTimeout(() => this.flush(), PAUSE_MS);
  }

  private left(): void {
    this.focused = document.hasFocus() && document.activeElement === this.element; // it may only be asked to send
    this.flush();
    this.show(this.known);
  }
}
