// The tree says what is so, in words as well as in icons, also of tasks that hurt (UX 3.2).

import * as assert from 'node:assert/strict';
import * as vscode from 'vscode';
import type { TaskView } from '../../../clients/vscode/src/protocol';
import { can, Node, TaskNodes } from '../../../clients/vscode/src/tree';
import { need } from '../../../clients/vscode/src/words';
import { Feed, test } from './suite';
import { attempt, FOLDER, GOLDEN, offer, stage, task } from './views';

const RIGHT_TO_LEFT = 'أضف تسجيل الدخول';
const STATES: TaskView['state'][] = ['draft', 'pending', 'ready', 'taken', 'paused', 'expired', 'completed', 'failed', 'archived'];

test('tasks are in the groups of their states, and empty groups are not there', () => {
  const feed = new Feed();
  STATES.forEach((state, number) => feed.task(task({ id: number + 1, state, waiting_for: state === 'failed' ? GOLDEN.waiting_for : null })));
  feed.task(task({ id: 100 }));
  const nodes = new TaskNodes(feed.tasks);
  const titles = nodes.getChildren().map(node => nodes.getTreeItem(node).label);
  assert.deepEqual(titles, ['Waiting for You', 'Running', 'Paused', 'Ready', 'Pending', 'Draft', 'Done', 'Failed', 'Archived']);
  const few = new Feed();
  few.task(task({ state: 'ready', waiting_for: null }));
  assert.equal(new TaskNodes(few.tasks).getChildren().length, 1);
});

test('200 tasks: what waits is first, longest first, and each row is one line', () => {
  const feed = new Feed();
  for (let number = 1; number <= 200; number++) {
    const waits = number % 4 === 0 && GOLDEN.waiting_for ? { ...GOLDEN.waiting_for, since: 2_000_000_000 - number } : null;
    const title = number % 3 === 0 ? RIGHT_TO_LEFT : `Line one\nline two ${'of a long title '.repeat(13)}`;
    feed.task(task({ id: number, title, waiting_for: waits }));
  }
  const nodes = new TaskNodes(feed.tasks);
  const [waiting, running] = nodes.getChildren();
  assert.ok(waiting && running);
  const rows = nodes.getChildren(waiting);
  assert.deepEqual([rows.length, nodes.getChildren(running).length], [50, 150]);
  assert.equal(rows[0]?.kind === 'task' && rows[0].task.id, 200);
  for (const row of rows) {
    const item = nodes.getTreeItem(row);
    assert.doesNotMatch(String(item.label), /\n/);
    assert.match(item.accessibilityInformation?.label ?? '', /waits for you/);
  }
  const ids = new Set([...rows, ...nodes.getChildren(running)].map(row => nodes.getTreeItem(row).id));
  assert.equal(ids.size, 200);
});

test('a task says in words what its icon shows', () => {
  const item = itemOf(task({ title: 'Add login' }));
  assert.equal(item.accessibilityInformation?.label, 'Add login, waits for you, High-Level Approaches, select 1 of 1');
  assert.equal(item.description, 'select 1 of 1');
  assert.equal((item.iconPath as vscode.ThemeIcon).id, 'bell-dot');
  assert.deepEqual((item.iconPath as vscode.ThemeIcon).color, new vscode.ThemeColor('charts.yellow'));
});

test('a stage says its attempt and its cost, an attempt what it changed', () => {
  const feed = new Feed();
  const of = stage({ attempts: [attempt(), attempt({ n: 2, id: '2', cost_usd: 0.09 })] });
  const one = feed.task(task({ stages: [of] }));
  const nodes = new TaskNodes(feed.tasks);
  const [first] = nodes.getChildren({ kind: 'task', task: one });
  assert.ok(first);
  assert.equal(nodes.getTreeItem(first).description, 'waits for you, attempt 2, $0.09');
  const [newest, before] = nodes.getChildren(first);
  assert.ok(newest && before);
  assert.equal(nodes.getTreeItem(newest).label, 'Attempt 2');
  assert.match(String(nodes.getTreeItem(before).description), /^done · 2 min · \$0\.01 · 1 file/);
});

test('what a person stopped waits for them, and is no failure; a breach is one all the same', () => {
  const stopped = stage({ status: 'failed', stopped: true, attempts: [attempt({ status: 'stopped', proof: null })] });
  const waits = { ...GOLDEN.waiting_for!, kind: 'person' as const, gate: null, decisions: [], reason: 'Stopped by you.' };
  const looks = [stopped, { ...stopped, stopped: false }].map(one => {
    const feed = new Feed();
    const nodes = new TaskNodes(feed.tasks);
    const node: Node = { kind: 'task', task: feed.task(task({ stages: [one], waiting_for: waits })) };
    const [row, item] = [nodes.getTreeItem(nodes.getChildren(node)[0]!), nodes.getTreeItem(node)];
    return [(item.iconPath as vscode.ThemeIcon).id, item.description, (row.iconPath as vscode.ThemeIcon).id, row.description];
  });
  assert.deepEqual(looks[0]?.slice(0, 3), ['bell-dot', 'Stopped by you', 'circle-slash']);
  assert.match(String(looks[0]?.[3]), /^stopped, attempt 1/);
  assert.deepEqual([looks[1]?.[0], looks[1]?.[2]], ['error', 'error']);
});

test('menus are made of offers, blocked ones too, and of nothing else', () => {
  const offers = [offer('approve', { blocked: 'Select 1 option.' }), offer('redo', { needs_text: true })];
  const item = itemOf(task({ offers }));
  assert.match(item.contextValue ?? '', /^waiting;task;.*;approve;|^waiting;task;approve;/);
  assert.match(item.contextValue ?? '', /;redo;/);
  assert.doesNotMatch(item.contextValue ?? '', /;(run|stop|abandon|takeOver);/);
  assert.deepEqual(can(task({ offers: [], stages: [] })), []);
});

test('the project is named where there are several, and only there', () => {
  const feed = new Feed();
  const here = feed.task(task());
  const nodes = new TaskNodes(feed.tasks);
  assert.doesNotMatch(String(nodes.getTreeItem({ kind: 'task', task: here }).description), /elsewhere|project/);
  const other = feed.task(task({ id: 2, project: '/somewhere/elsewhere' }));
  assert.match(String(nodes.getTreeItem({ kind: 'task', task: other }).description), / · elsewhere$/);
  assert.match(String(nodes.getTreeItem({ kind: 'task', task: here }).description), new RegExp(` · ${FOLDER.split('/').at(-1)}$`));
});

test('two projects of one name are told apart by where they are', () => {
  const feed = new Feed();
  const [one, two] = [feed.task(task({ project: '/old/app' })), feed.task(task({ id: 2, project: '/new/app' }))];
  assert.deepEqual([feed.tasks.projectName(one), feed.tasks.projectName(two)], ['old/app', 'new/app']);
});

test('tasks of other projects are there only while they wait (ED-16)', () => {
  const feed = new Feed();
  feed.task(task({ id: 2, project: '/somewhere/elsewhere', waiting_for: null }));
  assert.equal(feed.tasks.all.length, 0);
  feed.task(task({ id: 2, project: '/somewhere/elsewhere' }));
  feed.task(task({ id: 3 }));
  assert.deepEqual(feed.tasks.waiting.map(one => one.id), [3, 2]);
  feed.tell('promptside/gone', { project: '/somewhere/elsewhere' });
  assert.deepEqual(feed.tasks.all.map(one => one.id), [3]);
});

test('what is needed is said in a few words', () => {
  const waits = GOLDEN.waiting_for;
  assert.ok(waits?.gate);
  const gate = { ...waits.gate, selected: [], lacks: ['1'] };
  const words = [
    need({ ...waits, gate }),
    need({ ...waits, gate: { ...gate, type: 'require_all_checked' } }),
    need({ ...waits, gate: { ...gate, type: 'require_fields' } }),
    need({ ...waits, gate: { ...gate, type: 'require_approval' } }),
    need({ ...waits, kind: 'decision' }),
    need({ ...waits, kind: 'input' }),
    need({ ...waits, kind: 'person', reason: 'It failed.' }),
  ];
  assert.deepEqual(words, ['select 1 of 1', '1 of 1 reviewed', '1 field to fill', 'your approval', '1 permission', 'your input', 'It failed']);
});

function itemOf(view: TaskView): vscode.TreeItem {
  const feed = new Feed();
  const node: Node = { kind: 'task', task: feed.task(view) };
  return new TaskNodes(feed.tasks).getTreeItem(node);
}
