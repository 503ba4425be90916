// Title and facts of a task, and the few things that are always at hand.

import { duration, money } from '../src/amounts';
import type { Offer } from '../src/protocol';
import { passing, refill } from './element';
import { Attributes, icon, make } from './dom';
import { Menu } from './menu';
import { lastOf, Model, drawnStage, offerOf, Page } from './model';

/** A title of more characters may be cut. */
const LONG = 100;
/** These are about the attempt that is drawn. */
const ATTEMPT = ['showTranscript', 'showPrompt', 'showChanges'];

export class Head {
  private readonly words = make('div', { class: 'words' });
  private readonly tools = make('div', { class: 'tools', role: 'group', 'aria-label': 'Task' });
  private readonly menu = new Menu();
  private model: Model | undefined;
  readonly element = make('header', { class: 'head' }, this.words, this.tools);

  show(model: Model, page: Page, others: Offer[], act: (offer: Offer) => void): void {
    this.model = model;
    const { task } = model;
    const attempted = task.stages.some(stage => stage.attempts.length > 0);
    const { input_tokens: read, output_tokens: written, cost_usd: cost } = task.metrics;
    refill(this.words, [task.title, task.id, task.pipeline, task.branch, read, written, cost, task.state, task.metrics.duration_s, task.metrics.recorded, attempted], () => [
      make('h1', { dir: 'auto', class: task.title.length > LONG ? 'long' : '', title: task.title }, make('span', { class: 'title' }, task.title), ' ', make('bdi', { class: 'no muted', dir: 'ltr' }, `#${task.id}`)),
      make(
        'div',
        { class: 'facts muted' },
        fact('list-ordered', task.pipeline, 'Pipeline'),
        task.branch && fact('git-branch', task.branch, 'Branch'),
        read + written > 0 && fact('symbol-numeric', `${tokens(read + written)} tokens`, `${read.toLocaleString()} read, ${written.toLocaleString()} written`),
        task.metrics.recorded
          ? fact('record', 'recorded', 'A recording is played: what is done is of another task, tokens are those of the recording, and nothing is paid')
          : cost > 0 && fact('credit-card', money(cost), 'What the agents cost'),
        attempted && fact('watch', passing(() => time(this.model ?? model)), 'Time the agents worked'),
      ),
    ]);
    const drawn = (): Record<string, unknown> => {
      const stage = drawnStage(this.model ?? model);
      const attempt = stage && lastOf(stage);
      return attempt ? { stage: stage.id, attempt: attempt.n } : {};
    };
    const pause = offerOf(task, 'resume') ?? offerOf(task, 'pause');
    const resume = pause?.command === 'promptside.resume';
    refill(this.tools, [attempted, pause, model.hindrance], () => [
      tool('go-to-file', 'Open the document', 'document', () => page.command('openDocument', { file: true })),
      attempted && tool('output', 'Show the agent’s output beside', 'output', () => page.command('showOutput', drawn())),
      pause && tool(resume ? 'debug-continue' : 'debug-pause', resume ? 'Resume this task' : 'Pause this task', 'pause', () => act(pause), blockedBy(pause)),
      tool('ellipsis', 'More actions', 'more', event => this.menu.toggle(event.currentTarget as HTMLElement), { 'aria-haspopup': 'menu', 'aria-expanded': 'false' }),
      this.menu.element,
    ]);
    const changed = task.stages.some(stage => stage.attempts.some(one => one.changes.length > 0));
    const compare = task.stages.some(stage => stage.attempts.length > 1);
    const look = (title: string, name: string) => ({ title, act: () => page.command(name, ATTEMPT.includes(name) ? drawn() : {}) });
    this.menu.show([
      others.filter(offer => offer !== pause).map(offer => ({ title: offer.title, blocked: offer.blocked, act: () => act(offer) })),
      [
        ...(attempted ? [look('Open transcript', 'showTranscript'), look('Open the prompt as sent', 'showPrompt')] : []),
        ...(changed ? [look('Show changes', 'showChanges')] : []),
        ...(compare ? [look('Compare attempts…', 'compareAttempts')] : []),
        look('Show decisions', 'history'),
      ],
      task.branch ? [look('Copy branch name', 'copyBranch')] : [],
    ]);
  }
}

function time(model: Model): string {
  const { task } = model;
  const running = task.stages.flatMap(stage => stage.attempts).find(one => one.status === 'running' && one.started !== null);
  const now = running?.started ? Date.now() / 1000 - running.started : 0;
  return duration(task.metrics.duration_s + Math.max(0, now));
}

export function tokens(count: number): string {
  return count < 1000 ? String(count) : `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`;
}

function fact(name: string, words: string | HTMLElement, title: string): HTMLElement {
  return make('span', { title }, icon(name), make('span', { class: 'hidden' }, `${title}: `), make('span', { class: 'value' }, words));
}

function tool(name: string, title: string, key: string, click: (event: Event) => void, more: Attributes = {}): HTMLElement {
  return make('button', { type: 'button', class: 'tool', title, 'aria-label': title, 'data-key': key, click, ...more }, icon(name));
}

function blockedBy({ blocked }: Offer): Attributes {
  return blocked === null ? {} : { 'aria-disabled': 'true', title: blocked };
}
