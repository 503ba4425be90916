// The language server `promptside lsp`: started, restarted, and spoken to. It is the only way to the daemon.

import * as vscode from 'vscode';
import {
  CloseAction,
  CodeLensRequest,
  DynamicFeature,
  ErrorAction,
  ErrorHandler,
  ExecuteCommandRequest,
  LanguageClient,
  Middleware,
  ResponseError,
  RevealOutputChannelOn,
  State,
  StaticFeature,
} from 'vscode-languageclient/node';
import type { ActivityNews, DaemonNews, FormNews, GoneNews, OutputNews, PageNews, TaskNews } from './ours';
import { findProgram } from './program';
import { DaemonView, PROTOCOL, Refusal } from './protocol';

export type ServerState = 'starting' | 'running' | 'missing' | 'failed';

export interface News {
  'promptside/task': TaskNews;
  'promptside/gone': GoneNews;
  'promptside/activity': ActivityNews;
  'promptside/daemon': DaemonNews;
  'promptside/output': OutputNews;
  'promptside/pageChanged': PageNews;
  'promptside/form': FormNews;
}

/** Why an order was not taken, in a sentence. */
export class Refused extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.message);
  }

  /** In one line: why, and what to do in its place. */
  get sentence(): string {
    const hint = this.refusal.hint.split('\n')[0] ?? '';
    if (!hint || hint.includes('{"') || hint.startsWith('promptside ')) return this.message; // for who types
    return /[.…?]$/.test(hint) ? `${this.message} ${hint}` : `${this.message} (${hint})`;
  }
}

/** languageclient would register each command of the server; they are ours, and there before the server is. */
class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const method = (feature as DynamicFeature<unknown>).registrationType?.method;
    if (method !== ExecuteCommandRequest.type.method) super.registerFeature(feature);
  }

  /** Into the log only: that it is not there is said in the view and the status bar. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** How often a server that ends by itself is started again within so long, without a word. */
const RESTARTS = 4;
const WITHIN_MS = 180_000;

const ANNOUNCE: StaticFeature = {
  fillClientCapabilities: capabilities => {
    capabilities.experimental = { ...capabilities.experimental, promptside: true };
  },
  initialize: () => undefined,
  getState: () => ({ kind: 'static' }),
  clear: () => undefined,
};

export class Server implements vscode.Disposable {
  state: ServerState = 'starting';
  /** Set when daemon and extension speak different versions: the person may read, not decide (M28). */
  mismatch = '';
  private readonly stateChanged = new vscode.EventEmitter<ServerState>();
  readonly onState = this.stateChanged.event;
  private readonly listeners: [string, (news: never) => void][] = [];
  private client: Client | undefined;
  private starting: Promise<void> = Promise.resolve();
  private wanted = '';

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly middleware: Middleware,
  ) {}

  /** The program that is used; by its name where none was found. */
  get program(): string {
    return this.wanted || 'promptside';
  }

  /** Listens to news of the server, of this one and of those that follow it. */
  on<K extends keyof News>(method: K, listener: (news: News[K]) => void): void {
    this.listeners.push([method, listener]);
  }

  /** Looks for the program and starts it; when another one is found than is running, that one. */
  start(again = false): Promise<void> {
    this.starting = this.starting.then(() => this.begin(again));
    return this.starting;
  }

  /** An order, or a command of the editor's; throws `Refused` with the sentence. */
  async order<R = unknown>(command: string, given: Record<string, unknown> = {}): Promise<R> {
    return this.request<R>('workspace/executeCommand', { command: `promptside.${command}`, arguments: [given] });
  }

  /** A method of ours. */
  async request<R>(method: string, params: unknown): Promise<R> {
    await this.starting;
    const client = this.client;
    if (!client || this.state !== 'running') throw new Refused(NOT_HERE[this.state]);
    try {
      return await client.sendRequest<R>(method, params);
    } catch (error) {
      if (error instanceof ResponseError && isRefusal(error.data)) throw new Refused(error.data);
      if (error instanceof Error) throw new Refused({ code: 'failed', message: error.message, hint: '', difference: '' });
      throw error;
    }
  }

  /** Tells a running server what the person has set. */
  async configure(): Promise<void> {
    await this.starting;
    if (this.state === 'running') await this.client?.sendNotification('workspace/didChangeConfiguration', { settings: settings() });
  }

  /** Has the lenses of every open document asked for again. */
  drawLenses(): void {
    const feature = this.client?.getFeature(CodeLensRequest.method);
    for (const document of vscode.workspace.textDocuments) feature?.getProvider(document)?.onDidChangeCodeLensEmitter.fire();
  }

  async dispose(): Promise<void> {
    this.stateChanged.dispose();
    await this.client?.dispose().catch(() => undefined);
  }

  private async begin(again: boolean): Promise<void> {
    const program = await findProgram(vscode.workspace.isTrusted);
    if (!again && (program ? this.state === 'running' && program.command === this.wanted : this.state === 'missing')) return;
    const before = this.client;
    this.client = undefined;
    this.wanted = program?.command ?? '';
    this.mismatch = '';
    if (before) await before.dispose(2000).catch((error: unknown) => this.log.warn(String(error)));
    if (!program) {
      this.log.warn('The program promptside was not found.');
      this.become('missing');
      return;
    }
    this.log.info(`${program.command}, from ${program.origin}`);
    this.become('starting');
    const client = new Client(
      'promptside',
      'Promptside',
      { command: program.command, args: ['lsp'] },
      {
        documentSelector: [{ scheme: 'file' }],
        outputChannel: this.log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        initializationFailedHandler: () => false,
        errorHandler: this.endings(),
        initializationOptions: settings(),
        uriConverters: { code2Protocol: address, protocol2Code: text => vscode.Uri.parse(text) },
        middleware: this.middleware,
      },
    );
    client.registerFeature(ANNOUNCE);
    for (const method of new Set(this.listeners.map(([name]) => name))) {
      client.onNotification(method, (news: unknown) => this.tell(method, news));
    }
    client.onDidChangeState(({ newState }) => {
      if (client !== this.client) return;
      if (newState === State.Running) this.become('running');
      else if (newState === State.Starting) this.become('starting');
      else this.become('failed');
    });
    this.client = client;
    try {
      await client.start();
      this.become('running');
    } catch (error) {
      this.log.error(`It could not be started: ${String(error)}`);
      this.become('failed');
    }
  }

  private endings(): ErrorHandler {
    const ended: number[] = [];
    return {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        ended.push(Date.now());
        const lately = ended.filter(at => Date.now() - at < WITHIN_MS).length;
        this.log.warn(`The language server has ended, ${lately} times within three minutes.`);
        if (lately <= RESTARTS) return { action: CloseAction.Restart, handled: true };
        this.become('failed');
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  private tell(method: string, news: unknown): void {
    for (const [name, listener] of this.listeners) if (name === method) (listener as (news: unknown) => void)(news);
    const client = this.client;
    if (method === 'promptside/daemon' && (news as DaemonNews).up && client) void this.compare(client);
  }

  /** Whether the two speak of the same things; asked whenever there is a daemon, which may be another one. */
  private async compare(client: Client): Promise<void> {
    try {
      const { protocol } = await client.sendRequest<DaemonView>('promptside/query', { type: 'status' });
      const before = this.mismatch;
      this.mismatch = mismatch(protocol);
      if (this.mismatch !== before) this.stateChanged.fire(this.state);
    } catch (error) {
      this.log.info(`The daemon's version could not be asked for: ${String(error)}`);
    }
  }

  private become(state: ServerState): void {
    if (state === this.state) return;
    this.state = state;
    this.stateChanged.fire(state);
  }
}

/** What keeps a person from deciding where the daemon speaks this version, if anything does (M28). */
export function mismatch(protocol: number): string {
  if (protocol === PROTOCOL) return '';
  const older = protocol > PROTOCOL ? 'the extension' : 'the program promptside';
  return `This extension speaks version ${PROTOCOL}, the daemon version ${protocol}. Update ${older}; until then you can read, not decide.`;
}

/** What the server is told of the settings; empty is not set. */
function settings(): { agent: { default: string }; pipeline: { default: string } } {
  const found = vscode.workspace.getConfiguration('promptside', null);
  return { agent: { default: found.get('agent.default', '') }, pipeline: { default: found.get('pipeline.default', '') } };
}

const NOT_HERE: Record<ServerState, Refusal> = {
  starting: refusal('starting', 'Promptside is being started.', 'Try again in a moment.'),
  running: refusal('starting', 'Promptside is being started.', 'Try again in a moment.'),
  missing: refusal('missing', 'The program promptside was not found.', ''),
  failed: refusal('failed-to-start', 'Promptside could not be started.', 'Its log says why.'),
};

/** An address as the server reads it; the editor would write the `=` of a query as `%3D`. */
function address(uri: vscode.Uri): string {
  if (uri.scheme !== 'promptside') return uri.toString();
  const [name, ...value] = uri.query.split('=');
  const query = name ? `?${name}=${encodeURIComponent(value.join('='))}` : '';
  return `${uri.with({ query: '' }).toString()}${query}`;
}

function refusal(code: string, message: string, hint: string): Refusal {
  return { code, message, hint, difference: '' };
}

function isRefusal(data: unknown): data is Refusal {
  return typeof data === 'object' && data !== null && 'code' in data && 'message' in data;
}
