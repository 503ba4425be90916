// What the tests in the extension host have in common: they are collected here, and told one by one.

import * as vscode from 'vscode';
import { News, Refused } from '../../../clients/vscode/src/server';
import { Tasks } from '../../../clients/vscode/src/tasks';
import type { Refusal, TaskView } from '../../../clients/vscode/src/protocol';

const DEADLINE_MS = 40_000;
const LOOK_MS = 100;

type Test = () => void | Promise<void>;

const tests: [string, Test][] = [];

export function test(name: string, perform: Test): void {
  tests.push([name, perform]);
}

/** What became of each so far, of all there are: `ok`, or why not. */
export interface Results {
  of: number;
  results: Record<string, string>;
}

/** Performs one after the other, and tells after each. */
export async function performAll(tell: (so: Results) => Promise<void>): Promise<void> {
  const results: Record<string, string> = {};
  for (const [name, perform] of tests) {
    try {
      await perform();
      results[name] = 'ok';
    } catch (error) {
      results[name] = error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
    await tell({ of: tests.length, results });
  }
}

/** Tasks that are told as the server tells them, by the test; it takes what is ordered, or refuses it. */
export class Feed {
  state = 'running';
  mismatch = '';
  readonly ordered: [string, Record<string, unknown>][] = [];
  /** What is answered to the next request of ours. */
  answer: unknown;
  refusal: Refusal | undefined;
  readonly tasks: Tasks;
  private readonly listeners = new Map<string, (news: never) => void>();

  constructor() {
    this.tasks = new Tasks(this as unknown as ConstructorParameters<typeof Tasks>[0]);
  }

  on(method: string, listener: (news: never) => void): void {
    this.listeners.set(method, listener);
  }

  onState(): vscode.Disposable {
    return { dispose: () => undefined };
  }

  async order(name: string, given: Record<string, unknown>): Promise<unknown> {
    if (this.refusal) throw new Refused(this.refusal);
    this.ordered.push([name, given]);
    return Promise.resolve(null);
  }

  async request(): Promise<unknown> {
    return Promise.resolve(this.answer);
  }

  tell<K extends keyof News>(method: K, news: News[K]): void {
    this.listeners.get(method)?.(news as never);
  }

  task(view: TaskView): TaskView {
    this.tell('promptside/task', { project: view.project, seq: view.seq, task: view });
    return view;
  }
}

/** A part of the editor's API in another's place, as long as `perform` takes. */
export async function replaced<T extends object, K extends keyof T>(of: T, name: K, by: unknown, perform: () => Promise<void>): Promise<void> {
  const before = of[name];
  of[name] = by as T[K];
  try {
    await perform();
  } finally {
    of[name] = before;
  }
}

/** A setting of the person's, as long as `perform` takes. */
export async function set(name: string, value: unknown, perform: () => Promise<void>): Promise<void> {
  const settings = () => vscode.workspace.getConfiguration('promptside');
  await settings().update(name, value, vscode.ConfigurationTarget.Global);
  try {
    await perform();
  } finally {
    await settings().update(name, undefined, vscode.ConfigurationTarget.Global);
  }
}

/** What is there at last; looked for again and again. */
export async function until<T>(find: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const due = Date.now() + DEADLINE_MS;
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    if (Date.now() > due) throw new Error('it did not come to that');
    await new Promise(resolve => setTimeout(resolve, LOOK_MS));
  }
}
