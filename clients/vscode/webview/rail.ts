// The stages, in order: what became of each, and which one is drawn. Narrow panels show it as a strip.

import type { StageView, TaskView } from '../src/protocol';
import { passing, refill } from './element';
import { icon, make } from './dom';
import { currentOf, drawnStage, Model, Page } from './model';
import { isAtWork, isOver, stageLine } from './words';

export function stageIcon(task: TaskView, stage: StageView): HTMLElement {
  const here = stage === currentOf(task);
  if (here && task.terminal) return icon('terminal', 'info');
  if (here && task.state === 'paused') return icon('debug-pause', 'warn');
  if (here && task.state === 'expired') return icon('history', 'warn');
  if (here && isOver(task)) return task.state === 'failed' ? icon('error', 'bad') : icon('circle-slash', 'dim');
  switch (stage.status) {
    case 'approved':
      return stage.reason ? icon('warning', 'warn') : icon('pass-filled', 'ok');
    case 'running':
      return isAtWork(stage) ? icon('loading', 'info spin') : icon(stage.retry_at === null ? 'clock' : 'history', 'muted');
    case 'checking':
      return icon('loading', 'info spin');
    case 'waiting':
      return icon('bell-dot', 'warn');
    case 'failed':
      return stage.stopped ? icon('debug-stop', 'muted') : icon('error', 'bad');
    case 'skipped':
      return icon('circle-slash', 'dim');
    case 'current':
      return icon('circle-large-outline', 'muted');
    case 'future':
      return icon('circle-large-outline', 'dim');
  }
}

export class Rail {
  readonly element = make('nav', { class: 'rail', 'aria-label': 'Stages' });
  /** The one that was brought into sight; from then on the person scrolls. */
  private revealed: string | undefined;

  constructor() {
    new ResizeObserver(() => this.reveal()).observe(this.element); // a strip becomes a column
    this.element.addEventListener('keydown', event => this.key(event));
  }

  show(model: Model, page: Page): void {
    const { task } = model;
    this.element.hidden = task.stages.length < 2; // light work shows no ceremony
    const drawn = drawnStage(model);
    const key = [drawn?.id, task.state, task.terminal, task.current, task.waiting_for, task.stages.map(one => [one.id, one.name, one.status, one.reason, one.since, one.retry_at, one.attempts.at(-1)?.status, one.attempts.length])];
    refill(this.element, key, () => [make('ol', {}, ...task.stages.map((stage, at) => this.row(model, page, stage, at)))]);
    if (drawn?.id === this.revealed) return;
    this.revealed = drawn?.id;
    this.reveal();
  }

  /** One stop for Tab, however many stages there are; the arrows go from one to the next. */
  private key(event: KeyboardEvent): void {
    const rows = [...this.element.querySelectorAll<HTMLElement>('button')];
    const at = rows.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    rows[Math.max(0, Math.min(to, rows.length - 1))]?.focus();
    event.preventDefault();
  }

  private reveal(): void {
    this.element.querySelector('.on')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  private row(model: Model, page: Page, stage: StageView, at: number): HTMLElement {
    const { task } = model;
    const current = currentOf(task);
    const on = stage === drawnStage(model);
    const held = stage === current && (task.state === 'paused' || task.state === 'expired') && !task.terminal;
    const role = stage.status === 'waiting' || held ? 'warn' : stage.status === 'failed' && !stage.stopped ? 'bad' : 'muted';
    const line = stageLine(task, stage);
    const passes = stage.status === 'running' && stage === current;
    const words = passes ? passing(() => stageLine(task, stage), { class: `small ${role}` }) : line && make('small', { class: role }, line);
    const label = `Stage ${at + 1} of ${task.stages.length}, ${stage.name}${line ? `, ${line}` : ''}`;
    const button = make(
      'button',
      { type: 'button', tabindex: on || (at === 0 && !drawnStage(model)) ? 0 : -1, 'aria-label': label, title: stage.name, 'data-key': `stage ${stage.id}`, click: () => page.choose(stage === current ? '' : stage.id) },
      stageIcon(task, stage),
      make('span', { class: stage.status === 'future' ? 'name muted' : 'name', dir: 'auto' }, stage.name),
      words,
    );
    return make('li', { class: on ? 'on' : '', 'aria-current': stage === current ? 'step' : undefined }, button);
  }
}
