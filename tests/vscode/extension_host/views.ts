// Views of tasks, made from the protocol's golden one: nothing in them is of a shape that the daemon would not send.

import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import type { AttemptView, StageView, TaskView } from '../../../clients/vscode/src/protocol';

/** The folder of the window, into which the test has put what it needs. */
export const FOLDER = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '';

export const GOLDEN = (JSON.parse(fs.readFileSync(path.join(FOLDER, 'golden.json'), 'utf8')) as { params: { task: TaskView } }).params.task;

const STAGE = GOLDEN.stages[0] as StageView;
const ATTEMPT = STAGE.attempts[0] as AttemptView;

export function attempt(more: Partial<AttemptView> = {}): AttemptView {
  return { ...ATTEMPT, ...more };
}

export function stage(more: Partial<StageView> = {}): StageView {
  return { ...STAGE, ...more };
}

export function task(more: Partial<TaskView> = {}): TaskView {
  return { ...GOLDEN, project: FOLDER, offers: [offer('approve')], ...more };
}

export function offer(tag: string, more: Partial<TaskView['offers'][number]> = {}): TaskView['offers'][number] {
  return { command: `promptside.${tag}`, title: tag, args: {}, place: '', primary: false, danger: false, needs_text: false, blocked: null, hint: '', ...more };
}
