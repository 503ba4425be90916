// What goes along with an order, and what is said of one that was refused.

import * as assert from 'node:assert/strict';
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { ChangedFiles } from '../../../clients/vscode/src/changes';
import { Here } from '../../../clients/vscode/src/here';
import { Orders } from '../../../clients/vscode/src/orders';
import { Feed, replaced, test } from './suite';
import { FOLDER, offer, task } from './views';

type Server = ConstructorParameters<typeof Orders>[0];

test('where the person is in a file of the project goes along with run, redo and say (ED-13)', async () => {
  const { feed, orders } = made();
  const given = { project: FOLDER, task: 1 };
  feed.task(task({ id: 1, offers: [offer('redo'), offer('interrupt'), offer('run'), offer('stop')] }));
  const uri = await open('selected.py', 'first = 1\nsecond = 2\n', new vscode.Selection(0, 0, 1, 0));
  const selected = { uri, range: { start: { line: 0, character: 0 }, end: { line: 1, character: 0 } } };
  await orders.task('redo', { ...given, feedback: 'Shorter.' });
  await orders.task('interrupt', { ...given, text: 'Look.' });
  await orders.task('run', given);
  await orders.task('stop', given);
  const expected = [
    ['redo', { ...given, feedback: 'Shorter.', ...selected }],
    ['interrupt', { ...given, text: 'Look.', ...selected }],
    ['run', { ...given, ...selected }],
    ['stop', given],
  ];
  assert.deepEqual(feed.ordered.splice(0), expected);
  await open('.promptside/DESK.md', 'Words.\n', new vscode.Selection(0, 0, 0, 3));
  await orders.task('redo', { ...given, feedback: 'Longer.' });
  assert.deepEqual(feed.ordered, [['redo', { ...given, feedback: 'Longer.' }]]);
  await vscode.commands.executeCommand('workbench.action.closeAllEditors');
});

test('a refusal leads into the document only where the document can be mended', async () => {
  const { feed, orders } = made();
  feed.task(task({ id: 1 }));
  const said: unknown[][] = [];
  const say = async (...words: unknown[]) => {
    said.push(words);
    return Promise.resolve(undefined);
  };
  await replaced(vscode.window, 'showWarningMessage', say, async () => {
    for (const code of ['approved', 'gate-lacks']) {
      feed.refusal = { code, message: `It was ${code}.`, hint: '', difference: '' };
      await orders.task('approve', { project: FOLDER, task: 1 });
    }
  });
  assert.deepEqual(said, [['It was approved.'], ['It was gate-lacks.', 'Go There']]);
});

test('a file whose name would be an icon is shown and taken back by its name', async () => {
  const { feed, here, orders } = made();
  const given = { project: FOLDER, task: 1, stage: 'work', attempt: 1 };
  feed.task(task({ id: 1, offers: [offer('undo')] }));
  feed.answer = { ...given, running: false, files: ['plain.py', '$(bell).py'].map(name => ({ path: name, kind: 'modified', added: 1, removed: 0, uri: '', before: '', after: '' })) };
  const changes = new ChangedFiles(feed as unknown as Server, feed.tasks, here, orders);
  const labels: string[] = [];
  const pick = async (items: { label: string }[]) => {
    labels.push(...items.map(item => item.label));
    return Promise.resolve(items);
  };
  await replaced(vscode.window, 'showQuickPick', pick, () => changes.undo(given));
  assert.deepEqual(labels, ['plain.py', '\\$(bell).py']);
  assert.deepEqual(feed.ordered, [['undo', { ...given, paths: ['plain.py', '$(bell).py'] }]]);
  changes.dispose();
});

function made(): { feed: Feed; here: Here; orders: Orders } {
  const feed = new Feed();
  const here = new Here(feed as unknown as Server, feed.tasks);
  return { feed, here, orders: new Orders(feed as unknown as Server, feed.tasks, here) };
}

async function open(name: string, text: string, selection: vscode.Selection): Promise<string> {
  const uri = vscode.Uri.file(path.join(FOLDER, name));
  await fs.mkdir(path.dirname(uri.fsPath), { recursive: true });
  await fs.writeFile(uri.fsPath, text);
  (await vscode.window.showTextDocument(uri)).selection = selection;
  return uri.toString();
}
