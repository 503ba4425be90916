// Which attempt of a task is meant, and two of them beside each other.

import * as vscode from 'vscode';
import type { Given } from './here';
import type { TaskView } from './protocol';
import { newest } from './tasks';
import { plain } from './words';

/** The one that arguments name, else the last one. */
export function attemptOf(task: TaskView, at: Given): ReturnType<typeof newest> {
  const stage = typeof at['stage'] === 'string' ? at['stage'] : '';
  const of = task.stages.find(one => one.id === stage);
  const attempt = of?.attempts.find(one => one.n === at['attempt']);
  return of && attempt ? { stage: of, attempt } : newest(task, stage);
}

/** What changed in a stage's document from one attempt to another; the title it is shown under, if it is. */
export async function compare(task: TaskView, at: Given): Promise<string | undefined> {
  const stages = task.stages.filter(stage => stage.attempts.length > 1);
  const named = stages.find(stage => stage.id === at['stage']) ?? (stages.length === 1 ? stages[0] : undefined);
  const items = stages.map(stage => ({ label: plain(stage.name), description: `${stage.attempts.length} attempts`, stage }));
  const stage = named ?? (await vscode.window.showQuickPick(items, { title: 'Compare attempts of which stage?' }))?.stage;
  if (!stage) return undefined;
  const numbers = stage.attempts.map(attempt => attempt.n);
  let [left, right] = [numbers.at(-2), numbers.at(-1)];
  if (numbers.length > 2) {
    const choices = numbers.slice(0, -1).reverse().map(n => ({ label: `Attempt ${n}`, n }));
    left = (await vscode.window.showQuickPick(choices, { title: `Compare attempt ${right} of ${stage.name} with` }))?.n;
  }
  if (left === undefined || right === undefined) return undefined;
  const address = (n: number) =>
    vscode.Uri.parse(`promptside://${task.id}/${encodeURIComponent(stage.id)}/${n}?project=${encodeURIComponent(task.project)}`);
  const title = `${stage.name}: attempt ${left} ↔ ${right}`;
  await vscode.commands.executeCommand('vscode.diff', address(left), address(right), title);
  return title;
}
