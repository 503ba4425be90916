// A tick in a form or a draft is set where it is clicked, which it looks like, and moves to where one is typed.

import * as vscode from 'vscode';

const TICK = /^ {0,3}[-*+] \[([ xX])\]/;
const TRIES = 5;
const APART_MS = 100;
/** What the server offers at an item: it knows which other tick gives way. */
const AT_ITEM = vscode.CodeActionKind.Refactor.append('promptside');

export function onClick(mayAct: () => boolean): vscode.Disposable {
  return vscode.window.onDidChangeTextEditorSelection(async ({ textEditor: { document }, kind, selections: [at] }) => {
    if (kind !== vscode.TextEditorSelectionChangeKind.Mouse || !at?.isEmpty || !document.uri.path.includes('/.promptside/')) return;
    const { line, character } = at.active;
    const found = TICK.exec(document.lineAt(line).text);
    const end = found?.[0].length ?? 0;
    if (!found || character > end || character < end - 3 || !mayAct()) return;
    const own = new vscode.WorkspaceEdit();
    own.replace(document.uri, new vscode.Range(line, end - 2, line, end - 1), found[1] === ' ' ? 'x' : ' ');
    await vscode.workspace.applyEdit((found[1] === ' ' && (await offered(document, at))) || own);
  });
}

/** Of ticks that exclude each other, the others give way to one that is typed. */
export function onTyped(mayAct: () => boolean): vscode.Disposable {
  return vscode.workspace.onDidChangeTextDocument(async ({ document, contentChanges, reason }) => {
    const [change] = contentChanges;
    if (reason !== undefined || contentChanges.length !== 1 || !change || !document.uri.path.includes('/.promptside/')) return;
    const { line, character } = change.range.start;
    const found = change.text.toLowerCase() === 'x' && TICK.exec(document.lineAt(line).text);
    if (!found || character !== found[0].length - 2 || !mayAct()) return;
    const { version } = document;
    const edit = await offered(document, new vscode.Selection(line, 0, line, 0));
    if (edit && document.version === version) await vscode.workspace.applyEdit(edit);
  });
}

/** The edit that ticks this line, and changes nothing but ticks. */
async function offered(document: vscode.TextDocument, at: vscode.Selection): Promise<vscode.WorkspaceEdit | undefined> {
  const { version } = document;
  let acts: vscode.CodeAction[] = [];
  // The editor sometimes answers with nothing while it asks the same for its light bulb.
  for (let tries = 0; acts.length === 0 && tries < TRIES && document.version === version; tries++) {
    if (tries > 0) await new Promise(resolve => setTimeout(resolve, APART_MS));
    acts = await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', document.uri, at, AT_ITEM.value);
  }
  const now = unticked(document.getText());
  return acts.find(({ edit }) => {
    const then = edit && edited(document, edit);
    return then !== undefined && unticked(then) === now && TICK.exec(then.split('\n')[at.active.line] ?? '')?.[1] === 'x';
  })?.edit;
}

function unticked(text: string): string {
  return text.replace(/^( {0,3}[-*+] \[)[xX](?=\])/gm, '$1 ');
}

function edited(document: vscode.TextDocument, edit: vscode.WorkspaceEdit): string {
  const last = [...edit.get(document.uri)].sort((a, b) => b.range.start.compareTo(a.range.start));
  return last.reduce((text, { range, newText }) => text.slice(0, document.offsetAt(range.start)) + newText + text.slice(document.offsetAt(range.end)), document.getText());
}
