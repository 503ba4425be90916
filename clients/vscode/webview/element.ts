// What is drawn anew in a push: focus stays where the person put it, and what did not change is not touched.

type Children = (Node | string | null | undefined | false)[];

/**
 * Puts children in if `key` is another than last time.
 *
 * What has focus is found again by its `data-key`, so that a push never moves it.
 */
export function refill(element: HTMLElement, key: unknown, children: () => Children): void {
  const drawn = JSON.stringify(key);
  if (element.dataset['drawn'] === drawn) return;
  element.dataset['drawn'] = drawn;
  const focused = document.activeElement;
  const before = focused instanceof HTMLElement && element.contains(focused) ? focused.dataset['key'] : undefined;
  element.replaceChildren(...children().filter((child): child is Node | string => Boolean(child)));
  if (before === undefined) return;
  element.querySelector<HTMLElement>(`[data-key="${CSS.escape(before)}"]`)?.focus({ preventScroll: true });
}

/** A time that passes, in words; `ticking` keeps it current without a push. */
export function passing(words: () => string, more: Record<string, string> = {}): HTMLElement {
  const element = document.createElement('time');
  for (const [name, value] of Object.entries(more)) element.setAttribute(name, value);
  element.textContent = words();
  clocks.set(element, words);
  live.add(new WeakRef(element));
  return element;
}

const clocks = new WeakMap<HTMLElement, () => string>();
const live = new Set<WeakRef<HTMLElement>>();

/** Brings all times that pass up to date. */
export function tick(): void {
  for (const one of live) {
    const element = one.deref();
    const words = element && clocks.get(element);
    if (!element?.isConnected || !words) {
      live.delete(one);
      continue;
    }
    const now = words();
    if (element.textContent !== now) element.textContent = now;
  }
}
