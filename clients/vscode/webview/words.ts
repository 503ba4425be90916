// What the panel says of stages and attempts.

import { clock, duration, minutes, oneLine, several, spent } from '../src/amounts';
import type { AttemptView, Change, StageView, TaskView } from '../src/protocol';

export const FORMATS: Record<string, string> = {
  text: 'a text',
  options: 'a choice of options',
  checklist: 'a checklist',
  structured: 'fields',
  fields: 'fields',
};

/** `1 min 40 s`, as precise as a person wants it of what is over. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [m, s] = [Math.floor(whole / 60), whole % 60];
  return m > 0 && m < 10 && s > 0 ? `${m} min ${s} s` : duration(whole);
}

/** In steps of five seconds: a list in which every line counts is no rest for the eye. */
export function ago(at: number, now = Date.now() / 1000): string {
  const seconds = Math.floor(Math.max(0, now - at) / 5) * 5;
  return seconds === 0 ? 'now' : `${duration(seconds)} ago`;
}

/** When something begins by itself: counted down when that is soon, else by the clock too. */
export function due(at: number, now = Date.now() / 1000): string {
  const seconds = Math.ceil(at - now);
  if (seconds <= 0) return 'now';
  return seconds < 60 ? `in ${seconds} s` : `at ${clock(at)}, in ${duration(seconds)}`;
}

/** Whether an agent is at it; else what is called running waits for a free one, or for its next attempt. */
export function isAtWork(stage: StageView): boolean {
  return stage.attempts.at(-1)?.status === 'running';
}

/** A remark of the daemon's as a sentence. */
export function sentence(words: string): string {
  const line = oneLine(words);
  return line && line.charAt(0).toUpperCase() + line.slice(1) + (/[.?!…]$/.test(line) ? '' : '.');
}

/** What an attempt took, in grey: `58 s · $0.08`. */
export function cost(task: TaskView, attempt: AttemptView): string[] {
  return [attempt.duration_s !== null ? span(attempt.duration_s) : '', spent(task, attempt.cost_usd)].filter(Boolean);
}

export function proof(attempt: AttemptView): string {
  switch (attempt.proof?.verdict) {
    case 'proved':
      return 'read-only, proved';
    case 'breach':
      return 'read-only, broken';
    case 'meanwhile':
      return 'read-only; files changed meanwhile';
    default:
      return '';
  }
}

/** The second line of a stage in the rail. */
export function stageLine(task: TaskView, stage: StageView, now = Date.now() / 1000): string {
  const last = stage.attempts.at(-1);
  const attempt = last && last.n > 1 ? ` · attempt ${last.n}` : '';
  const here = stage.id === (task.waiting_for?.stage ?? task.current);
  if (here && task.terminal) return 'In a terminal';
  if (here && task.state === 'paused') return 'Paused';
  if (here && task.state === 'expired') return 'Pause ended';
  if (here && isOver(task)) return '';
  switch (stage.status) {
    case 'approved':
      return stage.reason ? 'Approval is void' : last ? cost(task, last).join(' · ') : '';
    case 'running':
      if (stage.retry_at !== null) return `Next attempt ${due(stage.retry_at, now)}`;
      return isAtWork(stage) ? ['Running', minutes(last?.started ?? null, now)].filter(Boolean).join(' · ') : 'Queued';
    case 'checking':
      return 'Being checked';
    case 'waiting': {
      const asked = task.waiting_for?.decisions.filter(one => one.kind !== 'permission').length ?? 0;
      return here && asked > 0 ? `${several(asked, 'question')} for you` : 'Waits for you';
    }
    case 'failed':
      return `${stage.stopped ? 'Stopped' : 'Failed'}${attempt}`;
    case 'skipped':
      return 'Skipped';
    case 'current':
      return task.state === 'ready' || task.state === 'draft' ? 'Next' : '';
    case 'future':
      return '';
  }
}

/** `added` and `removed` over all files; null where nobody counted. */
export function lines(changes: Change[]): { added: number; removed: number } {
  return changes.reduce((sum, one) => ({ added: sum.added + (one.added ?? 0), removed: sum.removed + (one.removed ?? 0) }), { added: 0, removed: 0 });
}

/** Whether nothing is to come any more, although not every stage was passed. */
export function isOver(task: TaskView): boolean {
  return task.state === 'failed' || task.state === 'archived';
}

/** What a task is doing, in one sentence, for who listens. */
export function state(task: TaskView): string {
  const stage = task.stages.find(one => one.id === (task.waiting_for?.stage ?? task.current));
  const name = stage?.name ?? oneLine(task.title);
  if (task.state === 'completed') return `${oneLine(task.title)} is done.`;
  if (task.terminal) return task.terminal.words;
  if (task.state !== 'taken') return `${name}: ${task.state}.`;
  if (stage?.status === 'failed') return `${name} ${stage.stopped ? 'was stopped' : 'failed'}.`;
  if (stage && stage.retry_at !== null) return `${name} is tried again ${due(stage.retry_at)}.`;
  if (task.waiting_for) {
    const asks = task.waiting_for.decisions.filter(one => one.kind === 'permission').length;
    return asks > 0 ? `${name} asks for a permission.` : `${name} waits for you.`;
  }
  return `${name} ${stage?.status === 'running' && !isAtWork(stage) ? 'waits for its turn' : 'is running'}.`;
}

export function approvedBy(stage: StageView): string {
  if (stage.status === 'skipped') return stage.reason ? `skipped: ${oneLine(stage.reason)}` : 'skipped';
  if (!stage.approval) return stage.status === 'approved' ? 'passed' : '';
  const { client, at, all_at_once: all } = stage.approval;
  return `approved${all ? ', all at once,' : ''} ${clock(at)}${client ? ` in ${client}` : ''}`;
}
