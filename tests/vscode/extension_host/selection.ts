// What is selected in a source file goes along with a new task (ED-13); the server is the real one here.

import * as assert from 'node:assert/strict';
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { test, until } from './suite';
import { FOLDER } from './views';

test('a new task begins with what is selected, and is offered at the light bulb', async () => {
  const uri = vscode.Uri.file(path.join(FOLDER, 'sample.py'));
  await fs.writeFile(uri.fsPath, 'first = 1\nsecond = first / 0\nthird = 3\n');
  const editor = await vscode.window.showTextDocument(uri);
  editor.selection = new vscode.Selection(1, 0, 1, 18);
  const titles = await until(async () => {
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', uri, editor.selection);
    const found = actions.map(action => action.title);
    return found.includes('New task from this') ? found : undefined;
  });
  assert.ok(titles);
  await vscode.commands.executeCommand('promptside.newTask');
  const draft = await until(() => {
    const document = vscode.window.activeTextEditor?.document;
    return document?.uri.path.includes('/.promptside/drafts/') ? document : undefined;
  });
  assert.ok(draft.uri.fsPath.startsWith(FOLDER));
  assert.match(draft.getText(), /second = first \/ 0/);
  assert.doesNotMatch(draft.getText(), /third/);
  await vscode.commands.executeCommand('workbench.action.closeAllEditors');
});
