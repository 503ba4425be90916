// Answers that were given here and are not in what was pushed yet: until they are, they are what is shown.

import { same } from './answers';

/** So long after an answer was taken, what is pushed holds, whatever it is: somebody else was there too. */
const GRACE_MS = 5000;

interface Given {
  value: unknown;
  taken: boolean;
}

export class Held {
  private readonly given = new Map<string, Given>();

  /** `changed` is called when an item may be shown as it was pushed again. */
  constructor(
    private readonly changed: (item: string) => void,
    private readonly later: (what: () => void, ms: number) => unknown = (what, ms) => setTimeout(what, ms),
  ) {}

  /** An answer is on its way; `taken` settles when the daemon has it or has refused it. */
  put(item: string, value: unknown, taken: Promise<unknown>): void {
    const given: Given = { value, taken: false };
    this.given.set(item, given);
    taken.then(
      () => {
        given.taken = true;
        this.later(() => this.release(item, given), GRACE_MS);
      },
      () => this.release(item, given),
    );
  }

  /** What is to be shown of an item whose pushed answer is this. */
  see(item: string, pushed: unknown): unknown {
    const given = this.given.get(item);
    if (!given) return pushed;
    if (!same(given.value, pushed)) return given.value;
    if (given.taken) this.given.delete(item); // else a push of before may still come
    return pushed;
  }

  private release(item: string, given: Given): void {
    if (this.given.get(item) !== given) return; // answered anew since
    this.given.delete(item);
    this.changed(item);
  }
}
