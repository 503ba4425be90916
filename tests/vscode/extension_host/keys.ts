// What the palette and the menus show follows the offers of the task that is meant.

import * as assert from 'node:assert/strict';
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { Here } from '../../../clients/vscode/src/here';
import { Feed, replaced, test } from './suite';
import { FOLDER, offer, task } from './views';

test('the context keys follow the offers, of all tasks and of the one before the person', async () => {
  const feed = new Feed();
  const here = new Here(feed as unknown as ConstructorParameters<typeof Here>[0], feed.tasks);
  assert.equal(here.keys()['tasks'], 0);
  assert.equal(here.keys()['can.approve'], false);
  feed.task(task({ id: 1, directory: '.promptside/tasks/1-one', offers: [offer('approve', { blocked: 'Select 1 option.' })] }));
  feed.task(task({ id: 2, directory: '.promptside/tasks/2-two', waiting_for: null, stages: [], offers: [offer('run')] }));
  const both = here.keys();
  assert.deepEqual([both['waiting'], both['gate'], both['can.approve'], both['can.run'], both['attempts']], [1, 'options', true, true, true]);
  const file = path.join(FOLDER, '.promptside/tasks/2-two/task.md');
  await fs.mkdir(path.dirname(file), { recursive: true });
  await fs.writeFile(file, '# Two\n');
  await vscode.window.showTextDocument(vscode.Uri.file(file));
  const one = here.keys();
  assert.deepEqual([one['can.approve'], one['can.run'], one['attempts'], one['gate'], one['inForm']], [false, true, false, '', true]);
  await vscode.commands.executeCommand('workbench.action.closeAllEditors');
});

test('a command without arguments means the document\'s task, else the panel\'s, else the only one that waits, else which is chosen', async () => {
  const feed = new Feed();
  const here = new Here(feed as unknown as ConstructorParameters<typeof Here>[0], feed.tasks);
  feed.task(task({ id: 1 }));
  feed.task(task({ id: 2, waiting_for: null }));
  assert.equal((await here.target({}))?.id, 1);
  assert.equal((await here.target({ task: 2, project: FOLDER }))?.id, 2);
  here.panel = feed.tasks.task(FOLDER, 2);
  assert.equal((await here.target({}))?.id, 2);
  here.panel = undefined;
  feed.task(task({ id: 3, project: '/somewhere/else where', title: 'Three' }));
  const rows: vscode.QuickPickItem[] = [];
  const pick = async (items: vscode.QuickPickItem[]) => {
    rows.push(...items);
    return Promise.resolve(items.find(item => item.label === 'Three'));
  };
  await replaced(vscode.window, 'showQuickPick', pick, async () => assert.equal((await here.target({}))?.id, 3));
  assert.deepEqual(rows.map(row => row.description), [`#1 · ${path.basename(FOLDER)}`, '#3 · else where', `#2 · ${path.basename(FOLDER)}`]);
});
