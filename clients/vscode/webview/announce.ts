// One polite live region: what state a task came to, in a sentence, and at most one in two seconds.

const PAUSE_MS = 2000;

export class Announcer {
  private said: string | undefined;
  private wanted = '';
  private due: unknown;
  private last = -PAUSE_MS;

  constructor(
    private readonly say: (sentence: string) => void,
    private readonly now: () => number = () => performance.now(),
    private readonly later: (what: () => void, ms: number) => unknown = (what, ms) => setTimeout(what, ms),
  ) {}

  /** The state as it is; the first one is what the person opened, and is not said. */
  state(sentence: string): void {
    this.wanted = sentence;
    if (this.said === undefined) this.said = sentence;
    if (this.wanted === this.said || this.due !== undefined) return;
    this.due = this.later(() => {
      this.due = undefined;
      if (this.wanted === this.said) return; // it is again what was said
      this.said = this.wanted;
      this.last = this.now();
      this.say(this.said);
    }, Math.max(0, PAUSE_MS - (this.now() - this.last)));
  }
}
