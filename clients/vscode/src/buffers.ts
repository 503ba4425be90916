// Buffers and what an agent writes: a file that changed below unsaved changes is said, once for each time (ED-11).

import * as path from 'node:path';
import * as vscode from 'vscode';
import type { TaskView } from './protocol';
import { unlinked } from './amounts';
import { isBelow, newest, real, running, Tasks } from './tasks';

/** The editor tells of a file a moment after it was written: by then the agent may wait, or have ended. */
const LATER_S = 5;

export class Buffers implements vscode.Disposable {
  private readonly watcher = vscode.workspace.createFileSystemWatcher('**/*', true, false, true);
  private readonly asking = new Set<string>();

  constructor(private readonly tasks: Tasks) {
    this.watcher.onDidChange(uri => void this.changed(uri));
  }

  dispose(): void {
    this.watcher.dispose();
  }

  private async changed(uri: vscode.Uri): Promise<void> {
    const document = vscode.workspace.textDocuments.find(one => one.uri.toString() === uri.toString());
    if (!document?.isDirty || this.asking.has(uri.toString())) return;
    const file = real(uri.fsPath);
    const busy = this.tasks.all.some(
      task => wasRunning(task) && isBelow(file, task.project) && !isBelow(file, path.join(task.project, '.promptside')),
    );
    if (!busy) return;
    this.asking.add(uri.toString());
    const [compare, theirs] = ['Compare', 'Take the File'];
    const words = `The agent has written to ${path.basename(uri.path)}, and you have unsaved changes in it. Your version is kept in the editor.`;
    const answer = await vscode.window.showWarningMessage(unlinked(words), compare, theirs);
    this.asking.delete(uri.toString());
    if (answer === undefined || document.isClosed) return;
    await vscode.window.showTextDocument(document);
    const command = answer === compare ? 'workbench.files.action.compareWithSaved' : 'workbench.action.files.revert';
    await vscode.commands.executeCommand(command);
  }
}

function wasRunning(task: TaskView): boolean {
  const since = task.waiting_for?.since ?? task.state_since;
  return running(task) || (newest(task) !== undefined && Date.now() / 1000 - since < LATER_S);
}
