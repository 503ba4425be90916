// What can be done here and now, the primary first. What is blocked says why, and keeps its place for the keyboard.

import type { FormView, Offer, StageView, TaskView } from '../src/protocol';
import { refill } from './element';
import type { Suggestion } from './forms/form';
import { fresh, icon, make } from './dom';
import { enterKey, Word } from './word';
import { currentOf, formOf, lastOf, Model, offerOf, Page, Scene, sceneOf, tagOf } from './model';

/** Which offers stand below which picture, beside the primary ones; all others are in the menu of the head. */
const BELOW: Record<Scene, string[]> = {
  ready: ['run', 'ready', 'takeBack'],
  ahead: [],
  running: ['interrupt', 'stop', 'approve'],
  retry: ['retry', 'stop'],
  gate: ['approve', 'redo', 'takeBack'],
  questions: ['send'],
  input: ['run', 'goBack', 'skip'],
  failed: ['retry', 'goBack', 'skip', 'undo'],
  stopped: ['retry', 'goBack', 'skip', 'undo'],
  terminal: ['giveBack'],
  paused: ['resume', 'abandon'],
  expired: ['resume', 'retry', 'goBack', 'abandon'],
  done: ['archive', 'takeBack', 'goBack'],
  over: ['archive'],
  record: [],
};

/** Where in an order the person's words stand, and what is asked. */
const WORDS: Record<string, { field: string; label: string; hint: string; optional?: true }> = {
  redo: { field: 'feedback', label: 'What should the agent do differently?', hint: 'Goes to the agent with the next attempt' },
  interrupt: { field: 'text', label: 'What should the agent know?', hint: 'It reads this before it goes on' },
  skip: { field: 'reason', label: 'Why is it left out?', hint: 'May be left empty', optional: true },
};

/** What is below the picture, and what is left for the menu. */
export function offersOf(model: Model): { below: Offer[]; others: Offer[] } {
  const { task } = model;
  const scene = sceneOf(model);
  if (scene === 'ahead' || scene === 'record') return { below: [], others: taskOffers(task) };
  const all = taskOffers(task).map(offer => ofForm(offer, formOf(model)));
  const wanted = BELOW[scene];
  const below = all
    .filter(offer => (offer.primary || wanted.includes(tagOf(offer))) && !(tagOf(offer) === 'takeBack' && offer.blocked !== null))
    .sort((a, b) => Number(b.primary) - Number(a.primary) || wanted.indexOf(tagOf(a)) - wanted.indexOf(tagOf(b)));
  return { below, others: all.filter(offer => !below.includes(offer)) };
}

/** Those of the task as a whole; those of an item stand beside it. */
function taskOffers(task: TaskView): Offer[] {
  return task.offers.filter(offer => offer.place === '' || task.stages.some(stage => stage.id === offer.place));
}

/** Whether a card above everything else wants an answer first. */
function asksLeave(task: TaskView): boolean {
  return task.offers.some(offer => offer.primary && task.decisions.some(one => one.id === offer.place));
}

/** The same as the form has it: there it is blocked also by what stands in the document. */
function ofForm(offer: Offer, form: FormView | undefined): Offer {
  return form?.offers.find(one => one.command === offer.command && one.place === offer.place) ?? offer;
}

export class Foot {
  private readonly buttons = make('div', { class: 'buttons' });
  private readonly state = make('span', { class: 'state muted', id: fresh() });
  private readonly word = new Word(inside => this.closed(inside));
  readonly element = make('footer', { class: 'bar', role: 'group', 'aria-label': 'Decide' }, this.word.element, this.buttons, this.state);
  /** The order that a word is being written for. */
  private asked = '';
  private primary: () => void = () => undefined;
  private model: Model | undefined;
  private tried = '';

  constructor(
    private readonly page: Page,
    /** Shows at the items what they lack. */
    private readonly remind: () => void,
    /** What can be answered at once, by one button. */
    private readonly suggestions: () => Suggestion[],
  ) {}

  show(model: Model): void {
    this.model = model;
    const scene = sceneOf(model);
    const { below, others } = offersOf(model);
    const said = this.page.feedback();
    const redo = said ? redoOf(model) : undefined;
    const titles = below.map(offer => (redo && tagOf(offer) === 'retry' ? 'Retry with this' : titled(offer, model)));
    const wanted = below.find(offer => offer.primary);
    // What is over wants nothing: the key that approved each stage must not put the task away. And what a permission
    // is asked for comes before everything else.
    const primary = scene === 'done' || asksLeave(model.task) ? undefined : wanted;
    this.primary = () => {
      if (primary) this.act(primary);
    };
    const current = currentOf(model.task);
    const suggestions = scene === 'questions' ? this.suggestions() : [];
    const key = [scene, below.map((offer, at) => [offer.command, offer.place, offer.blocked, offer === primary, titles[at]]), model.hindrance, formOf(model)?.kind, model.task.stages.map(changed), current?.id, current?.attempts.length, suggestions];
    refill(this.buttons, key, () => [
      ...below.map((offer, at) => this.button(offer, titles[at] ?? offer.title, offer === primary)),
      ...suggestions.map(({ title, act }) => this.plain(title, title, act)),
      (scene === 'running' || scene === 'retry') && current && lastOf(current) && this.plain('Show output', 'output', () => this.page.command('showOutput')),
      (scene === 'ahead' || scene === 'record') && this.plain(current ? `Back to ${current.name}` : 'Back to the summary', 'back', () => this.page.choose('')),
      scene === 'gate' && this.plain(formOf(model)?.kind === 'text' ? 'Edit document' : 'Open document', 'document', () => this.page.command('openDocument', { file: true })),
      scene === 'gate' && current && current.attempts.length > 1 && this.plain('Compare attempts', 'compare', () => this.page.command('compareAttempts', { stage: current.id })),
      (scene === 'done' || (scene === 'gate' && model.task.stages.some(changed))) && this.plain('Show changes', 'changes', () => this.page.command('showChanges', { whole: !changed(current) })),
      (scene === 'done' || scene === 'over') && this.plain('New task…', 'new', () => this.page.command('newTask')),
    ]);
    this.element.hidden = this.buttons.childElementCount === 0;
    if (![...below, ...others].some(offer => tagOf(offer) === this.asked)) this.word.close();
    this.status(model, scene, [...below, ...others], wanted);
  }

  /** Gives what is offered: with the words it needs, and only if it can be given. */
  act(offer: Offer): void {
    const { model } = this;
    if (!model) return;
    if (offer.blocked !== null || model.hindrance) {
      this.tried = offer.command;
      this.show(model);
      this.remind();
      return;
    }
    const tag = tagOf(offer);
    const said = this.page.feedback();
    const redo = redoOf(model);
    if (tag === 'retry' && said && redo) return this.page.give(redo, { feedback: said });
    if (tag === 'run' && sceneOf(model) === 'input') return this.page.give(offer, { input: said });
    // The title promises a choice; with a stage it would be made already.
    if (tag === 'goBack' && offer.place === '') return this.page.command('goBack');
    if (WORDS[tag] && offer.needs_text && !(tag === 'redo' && (formOf(model)?.notes.length ?? 0) > 0)) return this.ask(offer, tag);
    this.page.give(offer);
  }

  /** Ctrl+Enter. */
  enter(): void {
    this.primary();
  }

  private ask(offer: Offer, tag: string): void {
    const wanted = WORDS[tag];
    if (!wanted) return;
    if (this.asked === tag) return this.word.focus();
    this.asked = tag;
    const title = tag === 'redo' ? 'Redo with this' : offer.title.replace(/…$/, '');
    this.word.ask({ ...wanted, title, send: text => this.page.give(offer, { [wanted.field]: text }) });
    this.buttons.hidden = true;
    this.state.hidden = true;
  }

  private closed(inside: boolean): void {
    this.buttons.hidden = false;
    this.state.hidden = false;
    if (inside) this.buttons.querySelector<HTMLElement>(`[data-key="promptside.${this.asked} "]`)?.focus();
    this.asked = '';
  }

  private button(offer: Offer, title: string, primary: boolean): HTMLElement {
    const off = offer.blocked !== null || Boolean(this.model?.hindrance);
    const at = `${offer.command} ${offer.place}`;
    // Clicked, it does what was told last: the offer may be another one by then, under the same title.
    const click = (): void => {
      const { below } = this.model ? offersOf(this.model) : { below: [] };
      const now = below.find(one => `${one.command} ${one.place}` === at);
      if (now) this.act(now);
    };
    return make(
      'button',
      {
        type: 'button', class: primary ? 'btn p' : 'btn s', click, 'data-key': at,
        'aria-disabled': off ? 'true' : undefined, 'aria-describedby': off && offer.primary ? this.state.id : undefined,
        title: off ? (offer.blocked ?? this.model?.hindrance) : undefined,
        'aria-keyshortcuts': primary ? 'Control+Enter' : undefined,
      },
      title,
      primary && make('kbd', { 'aria-hidden': 'true' }, enterKey()),
    );
  }

  private plain(title: string, key: string, click: () => void): HTMLElement {
    return make('button', { type: 'button', class: 'btn s', 'data-key': key, click }, title);
  }

  private status(model: Model, scene: Scene, offers: Offer[], primary: Offer | undefined): void {
    const tried = offers.find(offer => offer.command === this.tried && offer.blocked !== null);
    const reason = model.hindrance || tried?.blocked || primary?.blocked?.replace(UNTRIED, '') || '';
    const [name, role, words] = reason ? ['warning', 'warn', reason] : said(model, scene);
    // What the agent does now changes by the second: it is there to be read, and not read out.
    if (scene === 'running' && !reason) this.state.removeAttribute('role');
    else this.state.setAttribute('role', 'status');
    this.state.title = words;
    refill(this.state, [name, words], () => (words ? [icon(name, role), make('span', { dir: 'auto' }, words)] : []));
  }
}

/** Whether there is more to be looked at than a document. */
function changed(stage: StageView | undefined): boolean {
  return ((stage && lastOf(stage))?.changes.length ?? 0) > 0;
}

/** With words of the person's, what failed is sent back with them, and not only tried again. */
function redoOf(model: Model): Offer | undefined {
  return ['failed', 'stopped'].includes(sceneOf(model)) ? offerOf(model.task, 'redo') : undefined;
}

/** Nobody has tried yet: what is lacking is said, and not that something was refused. */
const UNTRIED = /^Not (approved|sent): /;

function said(model: Model, scene: Scene): [string, string, string] {
  const form = formOf(model);
  switch (scene) {
    case 'running':
      return ['loading', 'info spin', model.activity?.line ?? ''];
    case 'failed':
      return ['circle-slash', 'muted', offerOf(model.task, 'retry') ? 'No more automatic retries' : ''];
    case 'gate':
    case 'questions':
      return form?.satisfied ? ['check', 'ok', satisfied(form)] : ['', '', ''];
    default:
      return ['', '', ''];
  }
}

function satisfied(form: FormView): string {
  switch (form.kind) {
    case 'options':
      return `${form.items.filter(item => item.answer === true).length} of ${form.most} selected`;
    case 'checklist':
      return 'All are reviewed';
    case 'questions':
      return form.items.some(item => item.required) ? 'All required questions are answered' : '';
    case 'fields':
      return 'All required fields are filled in';
    case 'text':
      return '';
  }
}

/** An approval names what it approves. */
function titled(offer: Offer, model: Model): string {
  const form = formOf(model);
  if (tagOf(offer) !== 'approve' || form?.kind !== 'options' || offer.blocked !== null) return offer.title;
  return [offer.title, form.items.filter(item => item.answer === true).map(item => item.id).join(', ')].join(' ').trim();
}
