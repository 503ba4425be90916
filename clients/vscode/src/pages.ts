// Pages of the server as read-only documents, drawn anew when they changed; what they offer is in tree and palette.

import * as vscode from 'vscode';
import type { PageShown } from './ours';
import { Refused, Server } from './server';

const SCHEME = 'promptside-page';

export class Pages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly parts: vscode.Disposable[];

  constructor(private readonly server: Server) {
    this.parts = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.onDidCloseTextDocument(document => {
        if (document.uri.scheme === SCHEME) void server.request('promptside/closePage', wish(document.uri)).catch(() => undefined);
      }),
    ];
    server.on('promptside/pageChanged', () => this.again());
    server.onState(state => state === 'running' && this.again());
  }

  async show(name: string, title: string, project = '', task = 0): Promise<void> {
    const query = new URLSearchParams({ name, project, task: String(task) }).toString();
    const document = await vscode.workspace.openTextDocument(vscode.Uri.from({ scheme: SCHEME, path: `/${title}`, query }));
    await vscode.languages.setTextDocumentLanguage(document, SCHEME);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    try {
      const zone = -new Date().getTimezoneOffset();
      const page = await this.server.request<PageShown>('promptside/page', { ...wish(uri), width: 100, zone_minutes: zone });
      const lines = page.lines.map(line => line.spans.map(span => span.text).join(''));
      return [...(page.stale ? [page.stale, ''] : []), ...lines, ''].join('\n');
    } catch (error) {
      return `${error instanceof Refused ? error.sentence : String(error)}\n`;
    }
  }

  dispose(): void {
    for (const part of this.parts) part.dispose();
  }

  private again(): void {
    for (const document of vscode.workspace.textDocuments) {
      if (document.uri.scheme === SCHEME) this.changed.fire(document.uri);
    }
  }
}

function wish(uri: vscode.Uri): { name: string; project: string; task: number } {
  const query = new URLSearchParams(uri.query);
  return { name: query.get('name') ?? '', project: query.get('project') ?? '', task: Number(query.get('task') ?? 0) };
}
