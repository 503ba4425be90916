// Where the person is in a source file, as a new task and the words to an agent are told of it (ED-13).

import * as vscode from 'vscode';
import type { Given } from './here';

/** The cursor or selection, and what other programs say is wrong there: in the selection, else in the line. */
export function placeIn({ document, selection }: vscode.TextEditor): Given {
  const about = selection.isEmpty ? document.lineAt(selection.active.line).range : selection;
  const said = vscode.languages.getDiagnostics(document.uri).filter(one => one.source !== 'promptside' && one.range.intersection(about));
  const { start, end } = selection;
  return {
    uri: document.uri.toString(),
    range: { start: { line: start.line, character: start.character }, end: { line: end.line, character: end.character } },
    ...(said.length > 0 ? { diagnostics: said.map(one => one.message) } : {}),
  };
}
