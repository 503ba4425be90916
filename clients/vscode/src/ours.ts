// The methods of the language server beside LSP's; server/promptside_server/ours.py is where they are defined.

import type { Activity, FormView, Offer, OutputEntry, Span, TaskView } from './protocol';

export interface TaskNews {
  project: string;
  seq: number;
  task: TaskView;
}

export interface GoneNews {
  project: string;
}

export interface ActivityNews {
  activity: Activity;
}

export interface DaemonNews {
  up: boolean;
  sentence: string;
}

export interface Followed {
  flow: number;
}

/** Entries of an attempt up to `cursor`, behind those of the last news of this flow; with `error` it has ended. */
export interface OutputNews {
  flow: number;
  project: string;
  task: number;
  stage: string;
  attempt: number;
  cursor: number;
  entries: OutputEntry[];
  ended?: boolean;
  error?: string;
}

export interface PageLine {
  spans: Span[];
  fold: string;
  ref: string;
  offers: Offer[];
  project: string;
  task: number;
  uri: string;
  line: number;
  page: string;
}

export interface PageShown {
  name: string;
  project: string;
  task: number;
  title: string;
  lines: PageLine[];
  stale: string;
}

export interface PageNews {
  name: string;
  project: string;
  task: number;
}

export interface FormNews {
  project: string;
  task: number;
  document: string;
  form: FormView | null;
}

export interface ChangedFile {
  path: string;
  kind: 'added' | 'modified' | 'deleted' | 'type';
  added: number | null;
  removed: number | null;
  before: string;
  after: string;
  uri: string;
}

export interface Changes {
  project: string;
  task: number;
  stage: string;
  attempt: number;
  running: boolean;
  files: ChangedFile[];
}

/** What a command of the server opened, or would have. */
export interface Shown {
  uri: string;
  shown: boolean;
}

/** How an attempt is gone on with in a terminal. */
export interface TakenOver {
  terminal: { title: string; command: string[]; cwd: string; env: Record<string, string> };
}
