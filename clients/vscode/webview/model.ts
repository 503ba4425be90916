// What the panel is about now, and what its parts may do.

import type { FromPage, Shown } from '../src/panel_messages';
import type { AttemptView, DocumentView, FormView, Offer, StageView, TaskView } from '../src/protocol';
import type { Ask } from './ask';

/** A push, with a task in it. */
export interface Model extends Shown {
  task: TaskView;
}

/** What the parts of the page do beside what a form does. */
export interface Page extends Ask {
  send(message: FromPage): void;
  /** A command of ours, for this task. */
  command(name: string, args?: Record<string, unknown>): void;
  /** What an attempt left as its document; null if there is none. */
  document(stage: string, attempt: number): Promise<DocumentView | null>;
  /** Shows a stage; empty: the current one, whichever it is. */
  choose(stage: string): void;
  /** The words that the person put into the feedback field of what failed. */
  feedback(): string;
}

/** Which picture the main part shows. */
export type Scene =
  | 'ready' | 'ahead' | 'running' | 'retry' | 'gate' | 'questions' | 'input' | 'failed' | 'stopped' | 'terminal' | 'paused' | 'expired' | 'done' | 'over' | 'record';

export function currentOf(task: TaskView): StageView | undefined {
  const id = task.waiting_for?.stage ?? task.current;
  return task.stages.find(stage => stage.id === id);
}

/** The stage that is drawn: the chosen one, else the current one; none when all is done. */
export function drawnStage(model: Model): StageView | undefined {
  return model.task.stages.find(stage => stage.id === model.state.stage) ?? currentOf(model.task);
}

export function lastOf(stage: StageView): AttemptView | undefined {
  return stage.attempts.at(-1);
}

export function sceneOf(model: Model): Scene {
  const { task } = model;
  const stage = drawnStage(model);
  const current = currentOf(task);
  if (stage && stage !== current) return stage.attempts.length > 0 || stage.status === 'approved' || stage.status === 'skipped' ? 'record' : 'ahead';
  if (task.terminal) return 'terminal';
  switch (task.state) {
    case 'completed':
      return 'done';
    case 'failed':
    case 'archived':
      return 'over';
    case 'paused':
    case 'expired':
      return task.state;
    case 'draft':
    case 'pending':
    case 'ready':
      return 'ready';
    case 'taken':
      break;
  }
  switch (task.waiting_for?.kind) {
    case 'gate':
      return 'gate';
    case 'decision':
      return task.waiting_for.decisions.some(one => one.kind !== 'permission') ? 'questions' : 'running';
    case 'input':
      return 'input';
    case 'person':
      return stage?.stopped ? 'stopped' : 'failed';
    case undefined:
      break;
  }
  if (stage && stage.retry_at !== null) return 'retry';
  return stage?.status === 'running' || stage?.status === 'checking' ? 'running' : 'ready';
}

/** Whether the form that was pushed is that of what is drawn. */
export function formOf(model: Model): FormView | undefined {
  const { form } = model;
  const stage = drawnStage(model);
  return form && form.waits && form.stage === stage?.id && stage === currentOf(model.task) ? form : undefined;
}

export function offerOf(task: TaskView, tag: string): Offer | undefined {
  return task.offers.find(offer => offer.command === `promptside.${tag}`);
}

export function tagOf(offer: Offer): string {
  return offer.command.replace('promptside.', '');
}
