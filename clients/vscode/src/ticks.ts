// A tick in a form or a draft is set where it is clicked: it looks as if it could be.

import * as vscode from 'vscode';

const TICK = /^ {0,3}[-*+] \[([ xX])\]/;
/** What the server offers at an item: it knows which other tick gives way. */
const AT_ITEM = vscode.CodeActionKind.Refactor.append('promptside');

export function onClick(mayAct: () => boolean): vscode.Disposable {
  return vscode.window.onDidChangeTextEditorSelection(async ({ textEditor: { document }, kind, selections: [at] }) => {
    if (kind !== vscode.TextEditorSelectionChangeKind.Mouse || !at?.isEmpty || !document.uri.path.includes('/.promptside/')) return;
    const found = TICK.exec(document.lineAt(at.active).text);
    const end = found?.[0].length ?? 0;
    if (!found || at.active.character > end || at.active.character < end - 3 || !mayAct()) return;
    const acts = found[1] === ' ' ? await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', document.uri, at, AT_ITEM.value) : [];
    const edit = acts.find(act => act.edit && AT_ITEM.contains(act.kind ?? vscode.CodeActionKind.Empty))?.edit ?? new vscode.WorkspaceEdit();
    if (edit.size === 0) edit.replace(document.uri, new vscode.Range(at.active.line, end - 2, at.active.line, end - 1), found[1] === ' ' ? 'x' : ' ');
    await vscode.workspace.applyEdit(edit);
  });
}
