// What a part of the panel can ask for; nothing in it acts by itself.

import type { Offer } from '../src/protocol';

export interface Ask {
  /** Settles when the daemon has the answer, or has refused it. */
  answer(item: string, value: unknown): void | Promise<void>;
  /** An offer was taken; `more` is what the person put in. */
  give(offer: Offer, more?: Record<string, unknown>): void;
  openFile(path: string, line?: number): void;
  markdown(text: string): DocumentFragment;
}
