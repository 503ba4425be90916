// Permissions that an agent asks for: a card each, with the exact words, and what can be answered (UX 9).

import type { DecisionView, Offer, TaskView } from '../../src/protocol';
import type { Ask } from '../ask';
import { button, fresh, make, notice } from '../dom';
import { refill } from '../element';
import { Word } from '../word';
import { inline } from './prose';

const cards = new WeakMap<HTMLElement, Map<string, Card>>();

/** The cards of all permissions that a task waits for; hidden while there are none. */
export function drawPermissions(task: TaskView, ask: Ask): HTMLElement {
  const element = make('div', { class: 'form permissions', 'aria-live': 'polite' });
  updatePermissions(element, task, ask);
  return element;
}

/** The same, when the task changed; a word that is being typed stays. */
export function updatePermissions(element: HTMLElement, task: TaskView, ask: Ask): void {
  const before = cards.get(element) ?? new Map<string, Card>();
  const asked = task.decisions.filter(one => one.kind === 'permission' && (one.status === 'open' || one.status === 'parked'));
  const now = new Map(asked.map(one => [one.id, before.get(one.id) ?? new Card()]));
  cards.set(element, now);
  for (const [id, card] of before) if (!now.has(id)) card.element.remove();
  asked.forEach((one, at) => {
    const card = now.get(one.id);
    if (!card) return;
    const offers = task.offers.filter(offer => offer.place === one.id);
    card.show(one, task.stages.find(stage => stage.id === one.stage)?.name ?? one.stage, offers, ask);
    if (element.children[at] !== card.element) element.insertBefore(card.element, element.children[at] ?? null);
  });
  element.hidden = asked.length === 0;
}

class Card {
  private readonly id = fresh();
  private readonly title = make('h3', { id: this.id });
  private readonly what = make('pre', { class: 'log what', tabindex: 0 });
  private readonly why = make('p', { class: 'muted' });
  private readonly acts = make('div', { class: 'acts' });
  private readonly word = new Word(inside => {
    this.acts.hidden = false;
    if (inside) this.acts.querySelector<HTMLElement>('button:last-of-type')?.focus();
  });
  readonly element: HTMLElement;

  constructor() {
    const body = notice('shield', 'warn', this.title, this.what, this.why, this.acts, this.word.element);
    this.element = make('section', { class: 'permission', 'aria-labelledby': this.id }, body);
  }

  show(asked: DecisionView, stage: string, offers: Offer[], ask: Ask): void {
    const sentence = asked.text || `The agent wants to use ${asked.tool} in ${stage}.`;
    refill(this.title, sentence, () => [inline(ask, sentence)]);
    this.what.hidden = sentence.includes(`\`${asked.what}\``); // nobody reads it twice
    refill(this.what, asked.what, () => [asked.what]);
    this.what.setAttribute('aria-label', `${asked.tool}, exactly`);
    const why = [asked.tool, asked.why].filter(Boolean).join(' · ');
    refill(this.why, why, () => [why]);
    refill(this.acts, offers, () =>
      offers.map(offer => {
        const act = (): void => {
          if (offer.blocked !== null) return;
          if (offer.needs_text) this.deny(offer, ask);
          else ask.give(offer);
        };
        const blocked = { 'aria-disabled': offer.blocked !== null ? 'true' : undefined, title: offer.blocked };
        return button(offer.title, act, { class: offer.primary ? 'btn p' : 'btn s', ...blocked });
      }),
    );
  }

  private deny(offer: Offer, ask: Ask): void {
    const title = offer.title.replace(/…$/, '');
    this.word.ask({ ...DENIAL, title, send: text => ask.give(offer, { text }) });
    this.acts.hidden = true;
  }
}

const DENIAL = { label: 'What should the agent do in its place?', hint: 'May be left empty', optional: true };
