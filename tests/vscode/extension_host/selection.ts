// What is selected in a source file goes along with a new task (ED-13); the server is the real one here.

import * as assert from 'node:assert/strict';
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { test, until } from './suite';
import { FOLDER } from './views';

test('a new task begins with what another program says is wrong there, at the light bulb and from the palette', async () => {
  const uri = vscode.Uri.file(path.join(FOLDER, 'wrong.py'));
  await fs.writeFile(uri.fsPath, 'first = 1\nsecond = first / 0\nthird = 3\n');
  const linter = vscode.languages.createDiagnosticCollection('a linter');
  linter.set(uri, [new vscode.Diagnostic(new vscode.Range(1, 9, 1, 18), 'Division by zero')]);
  try {
    const editor = await vscode.window.showTextDocument(uri);
    const at = new vscode.Position(1, 12);
    editor.selection = new vscode.Selection(at, at);
    const action = await until(async () => {
      const found = await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', uri, editor.selection);
      return found.find(one => one.title === 'New task from this');
    });
    assert.ok(action.command);
    const { command, arguments: given = [] } = action.command;
    for (const begin of [() => vscode.commands.executeCommand(command, ...given), () => vscode.commands.executeCommand('promptside.newTask')]) {
      await vscode.window.showTextDocument(editor.document, { selection: editor.selection });
      await begin();
      const draft = await until(() => drafted());
      assert.match(draft.getText(), /## Title \(required\)\n\nDivision by zero\n/);
      assert.match(draft.getText(), /second = first \/ 0/);
    }
  } finally {
    linter.dispose();
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
  }
});

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
  const draft = await until(() => drafted());
  assert.ok(draft.uri.fsPath.startsWith(FOLDER));
  assert.match(draft.getText(), /second = first \/ 0/);
  assert.doesNotMatch(draft.getText(), /third/);
  await vscode.commands.executeCommand('workbench.action.closeAllEditors');
});

function drafted(): vscode.TextDocument | undefined {
  const document = vscode.window.activeTextEditor?.document;
  return document?.uri.path.includes('/.promptside/drafts/') ? document : undefined;
}
