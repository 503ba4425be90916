// Elements in one expression, and the few that all parts of the panel have in common.

type Child = Node | string | null | undefined | false;
/** Null, undefined and false leave one out. */
export type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

let count = 0;

/** An element; false, null and undefined leave an attribute or a child out, a function listens. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return element;
}

/** An id that no other element of the page has. */
export function fresh(): string {
  return `form-${++count}`;
}

export function icon(name: string, role = ''): HTMLElement {
  return make('span', { class: `codicon codicon-${name} ${role}`.trim(), 'aria-hidden': 'true' });
}

/** A button that looks like a link. */
export function link(title: string, act: () => void, more: Attributes = {}): HTMLButtonElement {
  return make('button', { type: 'button', class: 'link', 'data-key': title, click: act, ...more }, title);
}

export function button(title: string, act: () => void, more: Attributes = {}): HTMLButtonElement {
  return make('button', { type: 'button', class: 'btn s', 'data-key': title, click: act, ...more }, title);
}

/** Something to be known before anything else: what it is about is said by its icon, and by the colour of its edge. */
export function notice(name: string, role: string, ...children: Child[]): HTMLElement {
  return make('div', { class: `notice ${role}` }, icon(name, role), make('div', {}, ...children));
}

/** The same of sentences; the first is the one that counts. */
export function told(name: string, role: string, ...sentences: Child[]): HTMLElement {
  const drawn = sentences.filter((one): one is Node | string => Boolean(one));
  return notice(name, role, ...drawn.map((one, at) => make('p', { class: at > 0 ? 'muted' : '', dir: 'auto' }, one)));
}

/** Names what describes a control; none takes it away. */
export function describe(control: Element, ids: string[]): void {
  if (ids.length > 0) control.setAttribute('aria-describedby', ids.join(' '));
  else control.removeAttribute('aria-describedby');
}
