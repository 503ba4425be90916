// All commands, registered at once: a lens or a key works also before the server is there.

import * as vscode from 'vscode';
import { attemptOf, compare } from './attempts';
import type { ChangedFiles } from './changes';
import type { LineComments } from './comments';
import { Given, given, Here } from './here';
import type { NewTasks } from './new_tasks';
import type { FormNews, TakenOver } from './ours';
import type { Orders } from './orders';
import type { Outputs } from './output';
import type { Pages } from './pages';
import type { Panels } from './panel';
import type { PipelineFiles } from './pipelines';
import type { DaemonView, TaskView } from './protocol';
import type { Rules } from './rules';
import type { Server } from './server';
import { documentOf, fileOf, keyOf, newest, Tasks } from './tasks';
import { can, Node, TaskTree } from './tree';
import type { Trust } from './trust';
import { cut, oneLine, plain } from './words';

export interface Parts {
  server: Server;
  tasks: Tasks;
  here: Here;
  orders: Orders;
  tree: TaskTree;
  outputs: Outputs;
  changes: ChangedFiles;
  comments: LineComments;
  pages: Pages;
  files: PipelineFiles;
  trust: Trust;
  newTasks: NewTasks;
  rules: Rules;
  panels: Panels;
  log: vscode.LogOutputChannel;
  /** Where the extension's own files are. */
  home: vscode.Uri;
}

/** Orders that need nothing but their task. */
const ORDERS = [
  'run', 'approve', 'send', 'redo', 'retry', 'interrupt', 'stop', 'pause', 'resume', 'skip', 'goBack', 'takeBack',
  'ready', 'abandon', 'archive', 'allow', 'deny', 'answer', 'giveBack',
];
/** Commands of the server that open something, or change only what is in the editor. */
const SHOWS = ['showLack', 'openFile', 'showDifference', 'takeMine', 'takeTheirs', 'note', 'editDraft', 'showTranscript', 'showPrompt', 'showDocument'];
const ATTEMPTS = ['showTranscript', 'showPrompt', 'showDocument'];
const CHANGES_A_DRAFT = ['takeMine', 'takeTheirs', 'note', 'editDraft'];
/** After these a stage is at work, whose output may be looked at. */
const STARTS = ['run', 'retry', 'redo', 'resume', 'approve', 'skip'];
/** These answer what was to be looked at. */
const DECIDES = ['approve', 'redo', 'goBack'];
/** Of these, those that leave the attempt before behind, however lately it began. */
const ENDS = ['retry', 'redo', 'approve', 'skip'];

export function register(parts: Parts): vscode.Disposable[] {
  const { server, tasks, here, orders, tree, outputs, changes, comments, pages, panels, files, trust, newTasks, rules, log, home } = parts;
  const made: vscode.Disposable[] = [];
  const command = (name: string, perform: (...given: unknown[]) => unknown) => {
    made.push(vscode.commands.registerCommand(`promptside.${name}`, perform));
  };
  const withTask = async (argument: unknown, fits: (task: TaskView) => boolean, perform: (task: TaskView, at: Given) => unknown) => {
    const at = given(argument);
    const task = await here.target(at, fits);
    if (task) await perform(task, at);
  };

  for (const tag of ORDERS) command(tag, argument => orders.task(tag, given(argument)));
  for (const name of SHOWS) {
    command(name, async argument => {
      let at = given(argument);
      if (CHANGES_A_DRAFT.includes(name) && !orders.mayAct()) return;
      if (ATTEMPTS.includes(name) && at['task'] === undefined) {
        const task = await here.target(at, one => can(one).includes('attempts'));
        if (!task) return;
        at = { project: task.project, task: task.id };
      }
      await orders.ask(() => server.order(name, at));
    });
  }

  // --- going where something is ---------------------------------------------------------------------------------
  command('next', async () => {
    const waiting = tasks.waiting;
    const at = waiting.findIndex(task => task === here.active);
    const task = waiting[(at + 1) % Math.max(1, waiting.length)];
    if (task && keyOf(task) === (here.panel && keyOf(here.panel))) panels.show(task); // there it is already
    else if (task) await openDocument(task);
    else orders.say('Nothing waits for you.');
  });
  command('openTask', async argument => {
    const task = here.named(given(argument)) ?? (await here.pick(tasks.all));
    if (task) await openDocument(task);
  });
  const clicks = { key: '', at: 0, opening: Promise.resolve() };
  command('openDocument', async argument => {
    const node = argument as Node | undefined;
    if (node?.kind === 'stage' && node.stage.artifact) {
      await open(fileOf(node.task, node.stage.artifact));
      return;
    }
    if (given(argument)['file'] === true) {
      await withTask(argument, () => true, task => open(documentOf(task)));
      return;
    }
    await withTask(argument, () => true, async task => {
      const key = `${task.project} ${task.id}`;
      const again = clicks.key === key && Date.now() - clicks.at < DOUBLE_CLICK_MS;
      const { opening } = clicks;
      Object.assign(clicks, { key, at: Date.now() });
      if (!again) await (clicks.opening = openDocument(task));
      else {
        await opening; // what the first of two clicks opens must not come to lie over the panel
        await vscode.commands.executeCommand('promptside.openPanel', argument);
      }
    });
  });
  command('tree.gate', argument => withTask(argument, task => task.waiting_for !== null, openDocument));
  command('tree.open', async () => withTask(await tree.focused(), () => true, openDocument));
  command('tree.panel', () => tree.focused().then(node => vscode.commands.executeCommand('promptside.openPanel', node)));
  command('tree.newTask', () => newTasks.draft({}));
  command('tree.abandon', () => tree.focused().then(node => vscode.commands.executeCommand('promptside.abandon', node)));
  command('primary', async () => {
    const task = here.active;
    const offer = task?.offers.find(one => one.primary) ?? undefined;
    if (task && offer) await vscode.commands.executeCommand(offer.command, { project: task.project, task: task.id, ...offer.args });
    else orders.say('Nothing is to be decided in this document now.');
  });

  // --- tasks ----------------------------------------------------------------------------------------------------
  command('newTask', argument => newTasks.draft(given(argument)));
  command('createTask', argument => newTasks.create(given(argument)));
  command('createAndRun', () => newTasks.create({ run: true }));
  command('rehearse', () => newTasks.rehearse());
  command('copyBranch', argument => withTask(argument, task => task.branch !== null, task => vscode.env.clipboard.writeText(task.branch ?? '')));

  // --- deciding -------------------------------------------------------------------------------------------------
  command('select', argument => withTask(argument, takesOptions, async task => {
    const gate = task.waiting_for?.gate;
    if (!gate || gate.type !== 'require_selection') {
      orders.say(`“${cut(task.title, 60)}” has no options to select from now.`);
      return;
    }
    const items = gate.options.map(option => ({
      label: plain(`${option.id} · ${option.title}`),
      description: option.recommended ? 'recommended' : '',
      detail: plain(oneLine(option.description)),
      picked: gate.selected.includes(option.id),
      id: option.id,
    }));
    const title = `Select for “${cut(task.title, 60)}”`;
    const many = gate.max !== 1;
    const chosen = many
      ? await vscode.window.showQuickPick(items, { title, canPickMany: true })
      : await vscode.window.showQuickPick(items, { title }).then(one => one && [one]);
    if (!chosen || !orders.mayAct()) return;
    const answers = Object.fromEntries(gate.options.map(option => [option.id, chosen.some(one => one.id === option.id)]));
    await orders.ask(() => server.request('promptside/answer', { project: task.project, task: task.id, answers, version: gate.version }));
  }));
  command('takeRecommended', argument => withTask(argument, task => can(task).includes('send'), async task => {
    if (!orders.mayAct()) return;
    // Asked for by its document: what a panel has open of the task stays open.
    const at = { uri: documentOf(task).toString() };
    const news = await orders.ask(() => server.request<FormNews>('promptside/openForm', at));
    if (!news) return;
    const found = news.form?.suggestions.find(one => one.title.startsWith('Tick the recommended'));
    const answers = { project: task.project, task: task.id, answers: found?.answers, version: news.form?.version };
    if (found) await orders.ask(() => server.request('promptside/answer', answers));
    else orders.say('No open question has a recommended answer.');
    await server.request('promptside/closeForm', at).catch(() => undefined);
  }));
  command('takeOver', argument => withTask(argument, task => can(task).includes('takeOver'), async task => {
    const offer = task.offers.find(one => one.command === 'promptside.takeOver');
    if (offer?.blocked) orders.say(offer.blocked);
    if (offer?.blocked || !orders.mayAct()) return;
    const begun = await orders.ask(() => server.order<TakenOver | null>('takeOver', { project: task.project, task: task.id, ...offer?.args }));
    if (!begun?.terminal) return;
    const { title, command: [shellPath = server.program, ...shellArgs], cwd, env } = begun.terminal;
    const made = vscode.window.createTerminal({ name: title, shellPath, shellArgs, cwd, env, location: vscode.TerminalLocation.Editor, isTransient: true });
    made.show();
  }));
  command('undo', argument => changes.undo(given(argument)));
  command('takeFileBack', (...resources) => changes.undoFiles(resources.flat()));

  // --- looking --------------------------------------------------------------------------------------------------
  command('showOutput', argument => withTask(argument, task => can(task).includes('attempts'), (task, at) => {
    const found = attemptOf(task, at);
    if (found) outputs.show(task, found.stage, found.attempt, at['preserveFocus'] !== true);
    else orders.say(`No stage of “${cut(task.title, 60)}” has run yet.`);
  }));
  command('showChanges', argument => changes.show(given(argument)));
  command('openChange', argument => changes.open(argument));
  command('compareAttempts', argument => withTask(argument, task => can(task).includes('compare'), async (task, at) => {
    const title = await compare(task, at);
    if (title) changes.lookedAt(task, title);
  }));
  command('comment', () => comments.begin());
  command('comment.add', reply => comments.add(reply as vscode.CommentReply));
  command('comment.delete', note => comments.remove(note as Parameters<typeof comments.remove>[0]));
  command('sendComments', () => comments.send());
  command('history', argument => withTask(argument, () => true, task => pages.show('history', `Decisions of #${task.id}`, task.project, task.id)));
  command('pipelines', async () => {
    const project = await here.project('The pipelines of which project?');
    if (project !== undefined) await pages.show('pipelines', 'Pipelines', project);
  });
  command('editPipeline', () => files.edit());
  command('newPipeline', () => files.create());
  command('editPrompt', () => files.prompt());
  command('doctor', () => pages.show('doctor', 'Set-up'));

  // --- the project and the machine ------------------------------------------------------------------------------
  command('rules', () => rules.show());
  command('trust', argument => trust.show(String(given(argument)['project'] ?? '')));
  command('daemonStart', async () => {
    if (server.state === 'running') await orders.ask(() => server.order('daemonStart'));
    else await server.start(true);
  });
  command('daemonLog', async () => {
    const status = tasks.up && server.state === 'running'
      ? await server.request<DaemonView>('promptside/query', { type: 'status' }).catch(() => undefined)
      : undefined;
    if (status?.log) await open(vscode.Uri.file(status.log)).catch(() => log.show());
    else log.show();
  });
  command('restart', () => server.start(true));
  command('install', () => vscode.commands.executeCommand('markdown.showPreview', vscode.Uri.joinPath(home, 'install.md')));
  for (const name of ['addProject', 'removeRule', 'renameProject', 'revokeTrust']) {
    command(name, argument => orders.give(name, given(argument)));
  }

  command('openPanel', async argument => {
    const at = given(argument);
    const task = tasks.all.length > 0 ? await here.target(at) : undefined;
    if (task || tasks.all.length === 0) panels.show(task, at['preserveFocus'] === true); // without a task it says how to begin
  });

  made.push(orders.onGiven(({ tag, task, at }) => {
    if (tag === 'approve') {
      void vscode.commands.executeCommand('setContext', 'promptside.approved', true);
      void done(task);
    }
    // What was looked at is decided on: the panel says what follows; after its own document, to whom has it open.
    const before = DECIDES.includes(tag) && changes.isBefore(task);
    const document = vscode.window.activeTextEditor?.document.uri.toString();
    if (before || (tag === 'approve' && panels.has(task) && document === documentOf(task).toString())) panels.show(task);
    if (tag === 'run') void vscode.commands.executeCommand('setContext', 'promptside.ran', true);
    if (STARTS.includes(tag)) void onRun(task, at, ENDS.includes(tag) ? newest(task) : undefined);
  }));
  return made;

  /** The last approval of all is answered in a sentence, unless the panel shows it: nothing else tells that it was the last. */
  async function done(ordered: TaskView): Promise<void> {
    const task = await tasks.comes(() => {
      const now = tasks.task(ordered.project, ordered.id);
      return now && now.seq > ordered.seq ? now : undefined;
    });
    if (task?.state !== 'completed' || (here.panel && keyOf(here.panel) === keyOf(task))) return;
    const words = `“${cut(task.title, 60)}” has gone through all its stages. Its changes are in your files.`;
    const answer = await vscode.window.showInformationMessage(words, 'Show Changes', 'Open Panel');
    const at = { project: task.project, task: task.id };
    if (answer) await vscode.commands.executeCommand(answer === 'Open Panel' ? 'promptside.openPanel' : 'promptside.showChanges', at);
  }

  /** The output opens beside the code where the settings say so, once there is an attempt. */
  async function onRun(ordered: TaskView, at: number, before: ReturnType<typeof newest>): Promise<void> {
    if (vscode.workspace.getConfiguration('promptside').get('output.open', 'onRun') !== 'onRun') return;
    const begun = await tasks.comes(() => {
      const task = tasks.task(ordered.project, ordered.id);
      const found = task && newest(task);
      const over = found?.stage.id === before?.stage.id && found?.attempt.n === before?.attempt.n;
      return task && found && !over && (found.attempt.started ?? 0) >= at ? { task, ...found } : undefined;
    });
    if (begun) outputs.show(begun.task, begun.stage, begun.attempt, false);
  }
}

const DOUBLE_CLICK_MS = 400;
function takesOptions(task: TaskView): boolean {
  return task.waiting_for?.gate?.type === 'require_selection';
}

/** The document that waits; where none does, the panel has what can be decided. */
async function openDocument(task: TaskView): Promise<void> {
  const panel = () => vscode.commands.executeCommand('promptside.openPanel', { project: task.project, task: task.id });
  if (task.waiting_for?.document) await open(documentOf(task)).catch(panel);
  else await panel();
}

async function open(uri: vscode.Uri): Promise<void> {
  await vscode.window.showTextDocument(uri, { preview: true });
}
