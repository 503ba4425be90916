// Where everything is put together. Nothing is decided in this extension: it draws, asks, and hands on.

import * as vscode from 'vscode';
import { Agent } from './agent';
import { Buffers } from './buffers';
import { ChangedFiles } from './changes';
import { register } from './commands';
import { LineComments } from './comments';
import { Here } from './here';
import { middleware, showDiagnostics } from './lenses';
import { NewTasks } from './new_tasks';
import { Notices } from './notices';
import { Orders } from './orders';
import { Outputs } from './output';
import { Pages } from './pages';
import { Panels } from './panel';
import { PipelineFiles } from './pipelines';
import { onEnvironment } from './program';
import { Rules } from './rules';
import { Server } from './server';
import { StatusItem } from './status';
import { Tasks } from './tasks';
import { TaskTree } from './tree';
import { onClick, onTyped } from './ticks';
import { Trust } from './trust';

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('Promptside', { log: true });
  const running = (server = new Server(log, middleware));
  const tasks = new Tasks(running);
  const here = new Here(running, tasks);
  const orders = new Orders(running, tasks, here);
  const tree = new TaskTree(running, tasks);
  const outputs = new Outputs(running, tasks);
  const changes = new ChangedFiles(running, tasks, here, orders);
  const comments = new LineComments(changes, tasks, orders);
  const pages = new Pages(running);
  const panels = new Panels({ server: running, tasks, here, orders }, vscode.Uri.joinPath(context.extensionUri, 'dist'));
  const files = new PipelineFiles(running, here, orders);
  const trust = new Trust(running, tasks, orders);
  const newTasks = new NewTasks(running, tasks, here, orders, panels);
  const rules = new Rules(running, here, orders);
  const agent = new Agent(running, tasks, tree);
  new Notices(tasks, tree, outputs);
  context.subscriptions.push(
    log, tree.view, outputs, changes, comments, pages, panels, new StatusItem(running, tasks, agent), new Buffers(tasks),
    ...register({ server: running, tasks, here, orders, tree, outputs, changes, comments, pages, panels, files, trust, newTasks, rules, log, home: context.extensionUri }),
    vscode.workspace.onDidChangeConfiguration(event => {
      if (event.affectsConfiguration('promptside.daemon.path')) void running.start(true);
      else if (event.affectsConfiguration('promptside.agent') || event.affectsConfiguration('promptside.pipeline')) void running.configure();
      if (event.affectsConfiguration('promptside.lenses')) running.drawLenses();
      if (event.affectsConfiguration('promptside.findings')) showDiagnostics();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void running.start()),
    vscode.workspace.onDidOpenTextDocument(asMarkdown),
    onClick(() => vscode.workspace.isTrusted),
    onTyped(() => vscode.workspace.isTrusted),
    lookAgain(running),
  );
  void onEnvironment(() => void running.start()).then(part => part && context.subscriptions.push(part));
  void running.start(true);
}

export async function deactivate(): Promise<void> {
  await server?.dispose();
}

/** What is missing may be installed by now, in a terminal of this window or elsewhere; looking costs next to nothing. */
function lookAgain(of: Server): vscode.Disposable {
  const timer = setInterval(() => of.state === 'missing' && vscode.window.state.focused && void of.start(), 5000);
  return { dispose: () => clearInterval(timer) };
}

/** Documents and prompts of attempts are Markdown; their addresses have no ending that says so. */
function asMarkdown(document: vscode.TextDocument): void {
  const { scheme, authority } = document.uri;
  if (scheme !== 'promptside' || document.languageId === 'markdown') return;
  if (/^\d+$/.test(authority) || authority === 'prompt') void vscode.languages.setTextDocumentLanguage(document, 'markdown');
}
