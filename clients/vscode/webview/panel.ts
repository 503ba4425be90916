// The page of a pipeline panel. It draws what it is told, whole, and sends on what the person does; it decides nothing.

import type { FromPage, PanelState, Shown, ToPage } from '../src/panel_messages';
import type { DocumentView, Offer } from '../src/protocol';
import { Announcer } from './announce';
import { tick } from './element';
import { Foot, offersOf } from './foot';
import { make } from './dom';
import { Head } from './head';
import { Main } from './main';
import { fragment } from './markdown';
import { formOf, Model, Page } from './model';
import { Rail } from './rail';
import { Centre, pictureOf } from './stages/centre';
import { state } from './words';

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void; getState(): unknown; setState(state: PanelState): void };

const TICK_MS = 1000;
/** How long an order waits for what was typed just before to have become part of the form. */
const SETTLE_MS = 1500;
/** These carry the hash of the form as the person saw it. */
const WITH_FORM = ['promptside.approve', 'promptside.send'];

class Panel {
  private readonly code = acquireVsCodeApi();
  private shown: Shown | undefined;
  private place: PanelState | undefined;
  /** Where the person was, until the page is long enough to be there again. */
  private returning = 0;
  private answers = 0;
  private entered = false;
  private readonly taking = new Map<number, { resolve: () => void; reject: (reason: Error) => void }>();
  private readonly reading = new Map<string, ((document: DocumentView | null) => void)[]>();
  private readonly waiting = new Set<() => void>();

  private readonly page: Page = {
    send: message => this.code.postMessage(message),
    command: (name, args = {}) => this.code.postMessage({ type: 'give', command: name.includes('.trust.') ? name : `promptside.${name}`, args }),
    answer: (item, value) => this.answer(item, value),
    give: (offer, more = {}) => void this.give(offer, more),
    openFile: (path, line = 0) => this.code.postMessage({ type: 'openFile', path, line }),
    markdown: text =>
      fragment(text, target => {
        if (target.kind === 'web') this.code.postMessage({ type: 'openLink', href: target.href });
        else this.code.postMessage({ type: 'openFile', path: target.path, line: target.line });
      }),
    document: (stage, attempt) =>
      new Promise(resolve => {
        const key = `${attempt} ${stage}`;
        this.reading.set(key, [...(this.reading.get(key) ?? []), resolve]);
        this.code.postMessage({ type: 'document', stage, attempt });
      }),
    choose: stage => {
      if (!this.place) return;
      this.place.stage = stage;
      this.place.scroll = 0;
      this.returning = 0;
      this.save();
      this.draw();
    },
    feedback: () => this.main.said,
  };

  private readonly head = new Head();
  private readonly rail = new Rail();
  private readonly foot = new Foot(this.page, () => this.main.remind(), () => this.main.suggestions);
  private readonly main = new Main(this.page, this.foot.element, () => this.draw());
  private readonly centre = new Centre();
  private readonly region = make('div', { class: 'hidden', 'aria-live': 'polite' });
  private readonly task = make('div', { class: 'ps', hidden: true }, this.head.element, this.rail.element, this.main.element);
  private readonly announcer = new Announcer(sentence => {
    this.region.textContent = sentence;
  });

  begin(): void {
    const before = this.code.getState();
    if (isState(before)) this.place = before;
    document.body.append(make('div', { class: 'host' }, this.task, this.centre.element), this.region);
    window.addEventListener('message', (event: MessageEvent<ToPage>) => this.hear(event.data));
    document.addEventListener('keydown', event => {
      // The editor would select all of the document that is open beside, and what is typed next would replace it.
      if (event.key === 'a' && (event.ctrlKey || event.metaKey) && (event.target as Element).matches('input, textarea')) {
        event.stopPropagation();
        return;
      }
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || this.task.hidden) return;
      event.preventDefault();
      this.flush();
      this.foot.enter();
    });
    window.addEventListener('focus', () => this.enter());
    const scroller = this.main.element;
    scroller.addEventListener('scroll', () => {
      if (this.returning > 0 || !this.place || this.task.hidden) return;
      this.place.scroll = scroller.scrollTop;
      this.save();
    });
    for (const touched of ['wheel', 'pointerdown', 'keydown']) scroller.addEventListener(touched, () => (this.returning = 0), { passive: true });
    setInterval(tick, TICK_MS);
    this.code.postMessage({ type: 'ready' });
  }

  private hear(message: ToPage): void {
    switch (message.type) {
      case 'shown':
        this.shown = message;
        if (this.place?.project !== message.state.project || this.place.task !== message.state.task) this.place = { ...message.state };
        if (!this.task.dataset['begun']) this.returning = this.place.scroll;
        this.save();
        this.draw();
        for (const settled of this.waiting) settled();
        return;
      case 'taken': {
        const wait = this.taking.get(message.answer);
        this.taking.delete(message.answer);
        if (message.ok) wait?.resolve();
        else wait?.reject(new Error('refused'));
        return;
      }
      case 'document': {
        const key = `${message.attempt} ${message.stage}`;
        for (const resolve of this.reading.get(key) ?? []) resolve(message.document);
        this.reading.delete(key);
      }
    }
  }

  private draw(): void {
    const { shown, place } = this;
    if (!shown || !place) return;
    const picture = pictureOf(shown);
    this.centre.show(picture, this.page);
    this.task.hidden = picture !== undefined; // what was typed in it is there again when the daemon is
    const { model } = this;
    if (picture || !model) return;
    this.task.dataset['begun'] = 'yes';
    const focused = this.task.contains(document.activeElement);
    this.task.classList.toggle('single', model.task.stages.length < 2);
    this.head.show(model, this.page, offersOf(model).others, offer => this.foot.act(offer));
    this.rail.show(model, this.page);
    this.main.show(model);
    this.foot.show(model);
    // What had focus may be no more; from here Tab goes on where the person was looking.
    if (focused && document.activeElement === document.body) this.main.element.focus({ preventScroll: true });
    this.enter();
    this.announcer.state(state(model.task));
    this.goBack();
  }

  /** However the person comes to the panel: the first Tab goes to what is to be decided, not to the tools above it. */
  private enter(): void {
    if (this.entered || this.task.hidden || !document.hasFocus()) return;
    this.entered = true;
    if (document.activeElement === document.body) this.main.element.focus({ preventScroll: true });
  }

  private get model(): Model | undefined {
    const { shown, place } = this;
    return shown?.task && place ? { ...shown, task: shown.task, state: place } : undefined;
  }

  private goBack(): void {
    if (this.returning === 0) return;
    const scroller = this.main.element;
    scroller.scrollTop = this.returning;
    requestAnimationFrame(() => {
      if (Math.abs(scroller.scrollTop - this.returning) < 2) this.returning = 0;
    });
  }

  private save(): void {
    if (this.place) this.code.setState(this.place);
  }

  private answer(item: string, value: unknown): Promise<void> {
    const form = this.model && formOf(this.model);
    if (!form) return Promise.reject(new Error('there is no form'));
    const answer = ++this.answers;
    this.code.postMessage({ type: 'answer', answer, item, value, version: form.version, attempt: form.attempt });
    return new Promise((resolve, reject) => this.taking.set(answer, { resolve, reject }));
  }

  private async give(offer: Offer, more: Record<string, unknown>): Promise<void> {
    if (!WITH_FORM.includes(offer.command) || offer.place !== '') {
      this.code.postMessage({ type: 'give', command: offer.command, args: { ...offer.args, ...more } });
      return;
    }
    await this.settled();
    const form = this.model && formOf(this.model);
    this.code.postMessage({ type: 'give', command: offer.command, args: { ...offer.args, ...(form ? { shown: form.shown } : {}), ...more } });
  }

  /** What is being typed is sent; it leaves the box as it is. */
  private flush(): void {
    document.activeElement?.dispatchEvent(new FocusEvent('blur'));
  }

  /** Waits until the form has what was answered here, so that what is approved is what is seen. */
  private async settled(): Promise<void> {
    if (this.taking.size === 0) return;
    const version = this.shown?.form?.version;
    const due = performance.now() + SETTLE_MS;
    const come = (): boolean => this.taking.size === 0 && this.shown?.form?.version !== version;
    await new Promise<void>(resolve => {
      const look = (): void => {
        if (!come() && performance.now() < due) return;
        this.waiting.delete(look);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(look, SETTLE_MS + 10);
      this.waiting.add(look);
      look();
    });
  }
}

function isState(given: unknown): given is PanelState {
  return typeof given === 'object' && given !== null && 'project' in given && 'stage' in given && 'scroll' in given;
}

new Panel().begin();
