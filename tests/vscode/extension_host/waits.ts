// What opens when a task begins to wait, and what a new one is offered; tasks and agent are real here.

import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import { set, test, until } from './suite';
import { FOLDER } from './views';

test('openOnWait: nothing, the document beside what the person does, or the panel', async () => {
  await close();
  const names: string[] = [];
  for (const what of ['nothing', 'document', 'panel']) {
    await set('openOnWait', what, async () => {
      const id = await begin(`Opens ${what}`);
      const document = await until(async () => (await view(id)).waiting_for?.document ?? undefined);
      names.push(document);
      if (what === 'document') await until(() => tabs().find(tab => tab === document));
      if (what === 'panel') await until(() => tabs().find(tab => tab.includes('promptside.panel')));
    });
  }
  assert.deepEqual(tabs().filter(tab => names.includes(tab)), [names[1]]);
  await close();
});

test('a new task has the pipeline and the agent that the settings say', async () => {
  await set('agent.default', 'rehearsal', () => set('pipeline.default', 'short', async () => {
    await vscode.commands.executeCommand('promptside.newTask', { uri: vscode.Uri.file(FOLDER).toString() });
    const draft = await until(() => vscode.workspace.textDocuments.find(one => one.getText().includes('\n- [x] short\n')));
    const lines = draft.getText().split('\n');
    const edit = new vscode.WorkspaceEdit();
    for (const [field, words] of [['Title', 'As I set it'], ['Description', 'Words.']]) {
      edit.insert(draft.uri, new vscode.Position(lines.indexOf(`## ${field} (required)`) + 2, 0), `${words}\n`);
    }
    await vscode.workspace.applyEdit(edit);
    await vscode.commands.executeCommand('promptside.createTask', { uri: draft.uri.toString() });
  }));
  const made = (await views()).find(task => task.title === 'As I set it');
  assert.deepEqual([made?.pipeline, made?.agent], ['short', 'rehearsal']);
  await close();
});

interface Shown {
  id: number;
  title: string;
  pipeline: string;
  agent: string;
  waiting_for: { document: string | null } | null;
}

async function begin(title: string): Promise<number> {
  await promptside('task', 'new', title, '--description', 'Words.', '--agent', 'rehearsal-fast');
  const id = (await views()).find(task => task.title === title)?.id;
  assert.ok(id);
  await promptside('run', String(id), '--detach');
  return id;
}

async function views(): Promise<Shown[]> {
  return JSON.parse(await promptside('task', 'list', '--json')) as Shown[];
}

async function view(id: number): Promise<Shown> {
  return JSON.parse(await promptside('task', 'show', String(id), '--json')) as Shown;
}

async function promptside(...words: string[]): Promise<string> {
  return (await promisify(execFile)('promptside', words, { cwd: FOLDER })).stdout;
}

/** The files that are open, as the project names them, and the kinds of the other tabs. */
function tabs(): string[] {
  return vscode.window.tabGroups.all.flatMap(group => group.tabs).map(({ input }) => {
    if (input instanceof vscode.TabInputText) return vscode.workspace.asRelativePath(input.uri, false);
    return input instanceof vscode.TabInputWebview ? input.viewType : '';
  });
}

async function close(): Promise<void> {
  await vscode.commands.executeCommand('workbench.action.closeAllEditors');
}
