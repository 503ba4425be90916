// Times, durations, money and states in words, the same as everywhere else, and the icon of each state.

import * as vscode from 'vscode';
import { oneLine, several } from './amounts';
import type { GateView, StageView, TaskView, WaitingFor } from './protocol';
import { stageOf } from './tasks';

export { begun, clock, cut, duration, isolated, minutes, oneLine, plain, several, spent, unlinked } from './amounts';

export type Group = 'waiting' | 'running' | 'paused' | 'ready' | 'pending' | 'draft' | 'done' | 'failed' | 'archived';

export const GROUPS: [Group, string][] = [
  ['waiting', 'Waiting for You'],
  ['running', 'Running'],
  ['paused', 'Paused'],
  ['ready', 'Ready'],
  ['pending', 'Pending'],
  ['draft', 'Draft'],
  ['done', 'Done'],
  ['failed', 'Failed'],
  ['archived', 'Archived'],
];

export function groupOf(task: TaskView): Group {
  switch (task.state) {
    case 'taken':
      return task.waiting_for ? 'waiting' : 'running';
    case 'paused':
    case 'expired':
      return 'paused';
    case 'completed':
      return 'done';
    case 'ready':
    case 'pending':
    case 'draft':
    case 'failed':
    case 'archived':
      return task.state;
  }
}

/** Whether what waits is a stage that failed, which looks like a failure. */
export function hasFailed(task: TaskView): boolean {
  const stage = stageOf(task);
  return task.state === 'failed' || (stage !== undefined && stage.status === 'failed' && !stage.stopped);
}

/** What is wanted, in a few words: `select 1 of 3`, `2 questions`, `2 of 3 reviewed`. */
export function need(waiting: WaitingFor): string {
  switch (waiting.kind) {
    case 'gate':
      return waiting.gate ? gateNeed(waiting.gate) : 'your approval';
    case 'decision': {
      const asks = waiting.decisions.filter(one => one.kind === 'permission').length;
      const questions = waiting.decisions.length - asks;
      const words = [questions ? several(questions, 'question') : '', asks ? several(asks, 'permission') : ''];
      return words.filter(Boolean).join(', ') || 'your answer';
    }
    case 'input':
      return 'your input';
    case 'person':
      return oneLine(waiting.reason).replace(/\.$/, '') || 'you';
  }
}

function gateNeed(gate: GateView): string {
  switch (gate.type) {
    case 'require_approval':
      return 'your approval';
    case 'require_selection': {
      if (gate.selected.length > 0 && gate.lacks.length === 0) return `${gate.selected.join(', ')} selected`;
      const [low, high] = [gate.min ?? 0, gate.max ?? gate.options.length];
      return `select ${low === high ? low : `${low} to ${high}`} of ${gate.options.length}`;
    }
    case 'require_all_checked':
      return `${gate.items.filter(item => item.ticked).length} of ${gate.items.length} reviewed`;
    case 'require_fields':
      return gate.lacks.length > 0 ? `${several(gate.lacks.length, 'field')} to fill` : 'your approval';
    case 'sign_off':
      return 'your sign-off';
  }
}

const ICONS: Record<Group, vscode.ThemeIcon> = {
  waiting: icon('bell-dot', 'charts.yellow'),
  running: icon('loading~spin'),
  paused: icon('debug-pause'),
  ready: icon('circle-large-outline'),
  pending: icon('clock'),
  draft: icon('edit'),
  done: icon('pass-filled', 'charts.green'),
  failed: icon('error', 'charts.red'),
  archived: icon('archive'),
};

export function taskIcon(task: TaskView): vscode.ThemeIcon {
  if (task.state === 'expired') return icon('history');
  return ICONS[hasFailed(task) ? 'failed' : groupOf(task)];
}

const STAGES: Record<StageView['status'], vscode.ThemeIcon> = {
  future: icon('circle-large-outline', 'disabledForeground'),
  current: icon('circle-large-outline'),
  running: ICONS.running,
  checking: ICONS.running,
  waiting: ICONS.waiting,
  approved: ICONS.done,
  skipped: icon('circle-slash'),
  failed: ICONS.failed,
};

export function stageIcon(stage: StageView): vscode.ThemeIcon {
  return stage.stopped ? icon('circle-slash') : STAGES[stage.status];
}

const STATUS_WORDS: Record<StageView['status'], string> = {
  future: '',
  current: 'next',
  running: 'running',
  checking: 'being checked',
  waiting: 'waits for you',
  approved: 'approved',
  skipped: 'skipped',
  failed: 'failed',
};

export function stageWord(stage: StageView): string {
  return stage.stopped ? 'stopped' : STATUS_WORDS[stage.status];
}

export function attemptIcon(status: string): vscode.ThemeIcon {
  switch (status) {
    case 'running':
      return ICONS.running;
    case 'done':
      return icon('pass');
    case 'failed':
      return icon('error', 'charts.red');
    case 'paused':
    case 'parked':
      return ICONS.paused;
    default:
      return icon('circle-slash');
  }
}

function icon(id: string, color?: string): vscode.ThemeIcon {
  return color ? new vscode.ThemeIcon(id, new vscode.ThemeColor(color)) : new vscode.ThemeIcon(id);
}
