// A form that is drawn: what was pushed last, what was answered here since, and the parts that show both.

import type { FormItem, FormView, Offer } from '../../src/protocol';
import type { Ask } from '../ask';
import { Held } from './held';

const RESTORE = 'promptside.restore';
/** What is offered at an item and drawn there already: as a tick, or beside what it mends. */
const NOT_AT_ITEMS = new Set([RESTORE, 'promptside.approve', 'promptside.send']);

/** What one item is drawn as; `show` brings it to what is so now and moves nothing else. */
export interface Part {
  element: HTMLElement;
  show(item: FormItem): void;
}

export class Sheet {
  readonly parts = new Map<string, Part>();
  /** Whether the person wanted to approve although something lacks: from then on that is said at the items. */
  reminded = false;
  private readonly held = new Held(item => this.show(item));

  constructor(
    public form: FormView,
    public ask: Ask,
  ) {}

  /** Whether the form can be answered. */
  get open(): boolean {
    return this.form.waits && !this.form.problems.some(problem => problem.code === 'form-conflict');
  }

  /** Whether what lacks is to be said as a warning. */
  get tried(): boolean {
    return this.reminded || this.form.problems.some(problem => problem.code === 'gate-lacks' && problem.severity === 'warning');
  }

  /** Gives an answer; `also` are answers that follow from it. */
  answer(item: string, value: unknown, also: Record<string, unknown> = {}): void {
    const taken = Promise.resolve(this.ask.answer(item, value));
    for (const [id, one] of Object.entries({ ...also, [item]: value })) {
      this.held.put(id, one, taken);
      this.show(id);
    }
  }

  /** One item, or all of them. */
  show(only?: string): void {
    for (const item of this.form.items) {
      if (only === undefined || item.id === only) {
        this.parts.get(item.id)?.show({ ...item, answer: this.held.see(item.id, item.answer) });
      }
    }
  }

  /** What mends an item; of the document without one. */
  mends(item = ''): Offer[] {
    return this.form.offers.filter(offer => offer.command === RESTORE && offer.place === item);
  }

  /** What else can be done with an item. */
  offers(item: string): Offer[] {
    return this.form.offers.filter(offer => offer.place === item && !NOT_AT_ITEMS.has(offer.command));
  }
}
