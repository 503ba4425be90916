// What the extension and the page of its panel say to each other.

import type { Activity, DocumentView, FormView, PipelineView, TaskView } from './protocol';
import type { ServerState } from './server';

/** What is kept of a panel when its page is gone: enough to draw the same again. */
export interface PanelState {
  project: string;
  task: number;
  /** The stage that the person chose; empty: the current one, whichever it is. */
  stage: string;
  scroll: number;
}

/** Everything that is drawn, whole. */
export interface Shown {
  type: 'shown';
  state: PanelState;
  server: ServerState;
  up: boolean;
  /** What was said of the daemon last. */
  sentence: string;
  trusted: boolean;
  /** Why nothing can be decided here, in a sentence. */
  hindrance: string;
  /** Whether tasks were told at all: before that, none is missing. */
  told: boolean;
  task: TaskView | null;
  activity: Activity | null;
  form: FormView | null;
  pipeline: PipelineView | null;
}

export interface DocumentNews {
  type: 'document';
  stage: string;
  attempt: number;
  document: DocumentView | null;
}

/** The answer with this number was taken, or refused. */
export interface Taken {
  type: 'taken';
  answer: number;
  ok: boolean;
}

export type ToPage = Shown | DocumentNews | Taken;

export type FromPage =
  | { type: 'ready' }
  | { type: 'give'; command: string; args: Record<string, unknown> }
  | { type: 'answer'; answer: number; item: string; value: unknown; version: number; attempt: number }
  | { type: 'openFile'; path: string; line: number }
  | { type: 'openLink'; href: string }
  | { type: 'document'; stage: string; attempt: number };
