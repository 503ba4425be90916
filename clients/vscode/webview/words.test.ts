import assert from 'node:assert/strict';
import test from 'node:test';
import type { AttemptView, StageView, TaskView } from '../src/protocol';
import { ago, due, sentence, stageLine, state } from './words';

const NOW = 1_760_000_000;

test('what comes soon is counted in seconds, what comes later has its time', () => {
  assert.equal(due(NOW + 20, NOW), 'in 20 s');
  assert.equal(due(NOW + 0.2, NOW), 'in 1 s');
  assert.equal(due(NOW - 3, NOW), 'now');
  assert.match(due(NOW + 3600, NOW), /^at \d\d:\d\d, in 1 h 0 min$/);
});

test('what is past is counted in steps', () => {
  assert.equal(ago(NOW - 4, NOW), 'now');
  assert.equal(ago(NOW - 9, NOW), '5 s ago');
  assert.equal(ago(NOW - 130, NOW), '2 min ago');
});

test('a remark becomes a sentence', () => {
  assert.equal(sentence('built on an older 01-work.md'), 'Built on an older 01-work.md.');
  assert.equal(sentence('Done?'), 'Done?');
  assert.equal(sentence(''), '');
});

test('a stage says what it is at, and who ended it', () => {
  const at = (stage: Partial<StageView>, status?: AttemptView['status'], more: Partial<TaskView> = {}): string => {
    const drawn = { id: 'work', name: 'Work', reason: '', retry_at: null, attempts: status ? [{ n: 1, status, started: NOW - 65 }] : [], ...stage } as unknown as StageView;
    const task = { title: 'A task', state: 'taken', current: 'work', waiting_for: null, terminal: null, stages: [drawn], ...more } as unknown as TaskView;
    return `${stageLine(task, drawn, NOW)} | ${state(task)}`;
  };
  assert.equal(at({ status: 'running' }, 'running'), 'Running · 1 min | Work is running.');
  assert.equal(at({ status: 'running' }), 'Queued | Work waits for its turn.');
  assert.match(at({ status: 'running', retry_at: NOW + 20 }, 'failed'), /^Next attempt in 20 s \| Work is tried again /);
  assert.equal(at({ status: 'failed' }, 'failed'), 'Failed | Work failed.');
  assert.equal(at({ status: 'failed', stopped: true }, 'stopped'), 'Stopped | Work was stopped.');
  const terminal = { words: 'You work on it in a terminal since 14:05.' } as TaskView['terminal'];
  assert.equal(at({ status: 'current' }, 'paused', { state: 'paused', terminal }), 'In a terminal | You work on it in a terminal since 14:05.');
  assert.equal(at({ status: 'waiting' }, 'done', { state: 'archived' }), ' | Work: archived.');
});
