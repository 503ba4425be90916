// Markdown of an agent, or of a person, where a form has it.

import type { Ask } from '../ask';
import { icon, link, make } from '../dom';
import { refill } from '../element';

/** A title: its code, emphasis and links, but no block. */
export function inline(ask: Ask, text: string): HTMLElement {
  const drawn = ask.markdown(text);
  const [only] = drawn.children;
  const block = drawn.childElementCount !== 1 || !(only instanceof HTMLParagraphElement);
  return make('bdi', {}, ...(block ? [text] : only.childNodes));
}

/** Text with paragraphs, code and lists; drawn anew only when it is another. */
export class Prose {
  readonly element: HTMLElement;

  constructor(
    private readonly ask: () => Ask,
    more = '',
  ) {
    this.element = make('div', { class: `prose ${more}`.trim() });
  }

  show(text: string): void {
    refill(this.element, text, () => (text.trim() ? [this.ask().markdown(text)] : []));
    this.element.hidden = !text.trim();
  }
}

/** A place in the project, as a link. */
export function place(ask: Ask, path: string, line: number | null): HTMLElement {
  const words = line === null ? path : `${path}:${line}`;
  return link(words, () => ask.openFile(path, line ?? undefined), { class: 'link mono', title: `Open ${words}` });
}

/** What differs from the agent's words, line by line. */
export function difference(text: string): HTMLElement {
  const rows = text.split('\n').filter(line => !line.startsWith('---') && !line.startsWith('+++'));
  const drawn = rows.map(line => {
    const role = line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : line.startsWith('@@') ? 'muted' : '';
    return make('span', { class: role }, `${line}\n`);
  });
  return make(
    'details',
    { class: 'difference' },
    make('summary', {}, icon('edit', 'muted'), make('span', {}, 'Edited by you: show difference')),
    make('pre', { class: 'log', tabindex: 0, 'aria-label': 'What you changed' }, ...drawn),
  );
}
