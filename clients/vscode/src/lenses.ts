// What the editor adds to the server's answers: icons before the titles of lenses, and what the settings leave out.

import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';

const ICONS: Record<string, string> = {
  'promptside.approve': 'check',
  'promptside.send': 'send',
  'promptside.redo': 'debug-restart',
  'promptside.note': 'comment',
  'promptside.interrupt': 'comment',
  'promptside.run': 'play',
  'promptside.retry': 'debug-rerun',
  'promptside.stop': 'debug-stop',
  'promptside.pause': 'debug-pause',
  'promptside.resume': 'debug-continue',
  'promptside.takeBack': 'history',
  'promptside.goBack': 'discard',
  'promptside.showOutput': 'output',
  'promptside.openFile': 'go-to-file',
  'promptside.createTask': 'add',
  'promptside.allow': 'shield',
  'promptside.deny': 'circle-slash',
  'promptside.takeOver': 'terminal',
};

/** What the server said of each file, for when the settings change what is shown of it. */
const said = new Map<string, { diagnostics: vscode.Diagnostic[]; show: (diagnostics: vscode.Diagnostic[]) => void }>();

/** Shows what was said before as the settings have it now. */
export function showDiagnostics(): void {
  for (const [uri, { diagnostics, show }] of said) show(shown(vscode.Uri.parse(uri), diagnostics));
}

function shown(uri: vscode.Uri, diagnostics: vscode.Diagnostic[]): vscode.Diagnostic[] {
  const all = vscode.workspace.getConfiguration('promptside', uri).get('findings.inProblems', true);
  return all ? diagnostics : diagnostics.filter(one => one.source !== 'promptside' || one.code !== 'finding');
}

export const middleware: Middleware = {
  async provideCodeLenses(document, token, next) {
    if (!vscode.workspace.getConfiguration('promptside', document).get('lenses', true)) return [];
    const lenses = (await next(document, token)) ?? [];
    for (const lens of lenses) {
      const icon = lens.command && ICONS[lens.command.command];
      if (lens.command && icon) lens.command.title = `$(${icon}) ${lens.command.title}`;
    }
    return lenses;
  },
  handleDiagnostics(uri, diagnostics, next) {
    if (diagnostics.length > 0) said.set(uri.toString(), { diagnostics, show: some => next(uri, some) });
    else said.delete(uri.toString());
    next(uri, shown(uri, diagnostics));
  },
};
