// A pipeline of one's own: copied from another one, opened, and its prompts opened.

import * as vscode from 'vscode';
import type { Orders } from './orders';
import type { PipelineList, PipelineStageView, PipelineView, Path } from './protocol';
import type { Server } from './server';
import { isBelow, real, Tasks } from './tasks';
import { cut, oneLine, plain, several } from './words';

const WHERE: (vscode.QuickPickItem & { to: 'project' | 'user' })[] = [
  { label: 'In this project', description: '.promptside/pipelines, for everybody who works at it', to: 'project' },
  { label: 'For me', description: 'in all projects of mine', to: 'user' },
];

export class PipelineFiles {
  constructor(
    private readonly server: Server,
    private readonly tasks: Tasks,
    private readonly orders: Orders,
  ) {}

  /** Opens a pipeline; of one that is shipped a copy is made first. */
  async edit(): Promise<void> {
    const chosen = await this.choose('Edit which pipeline?');
    const own = chosen && (await this.own(chosen, `Edit ${chosen.title}`));
    if (own) await open(own);
  }

  /** A new one begins as the copy of another. */
  async create(): Promise<void> {
    if (!this.orders.mayAct()) return;
    const from = await this.choose('New pipeline: which one does it begin as?');
    if (!from) return;
    const name = await vscode.window.showInputBox({
      title: `New pipeline from ${from.title}`,
      prompt: 'Its name, and the name of its file',
      value: `my-${from.name}`,
      ignoreFocusOut: true,
    });
    if (!name) return;
    const made = await this.copy(from, `Where is ${name} kept?`, name);
    if (made) await open(made);
  }

  /** Opens what a stage's agent is told, as a file. */
  async prompt(): Promise<void> {
    const chosen = await this.choose('Edit a prompt of which pipeline?');
    if (!chosen) return;
    const items = chosen.stages.map(stage => ({ label: plain(stage.name), description: plain(oneLine(stage.description)), stage }));
    const stage = (await vscode.window.showQuickPick(items, { title: `Edit the prompt of which stage of ${chosen.title}?` }))?.stage;
    const own = stage && (await this.own(chosen, `Edit the prompt of ${stage.name}`));
    if (own && stage) await this.openPrompt(own, stage);
  }

  private async choose(title: string): Promise<PipelineView | undefined> {
    const project = this.project();
    const listed = await this.orders.ask(() =>
      this.server.request<PipelineList>('promptside/query', { type: 'pipelines', ...(project ? { project } : {}) }));
    const items = (listed?.pipelines ?? []).map(one => ({
      label: plain(one.title),
      description: [one.name, several(one.stages.length, 'stage'), one.origin].join(' · '),
      detail: plain(cut(one.stages.map(stage => stage.name).join(' → '), 200)),
      one,
    }));
    return items.length <= 1 ? items[0]?.one : (await vscode.window.showQuickPick(items, { title }))?.one;
  }

  /** The file of a pipeline that the person may change. */
  private async own(pipeline: PipelineView, title: string): Promise<string | undefined> {
    if (pipeline.origin !== 'shipped') return pipeline.path;
    return this.orders.mayAct() ? this.copy(pipeline, `${title}: where is your copy kept?`) : undefined;
  }

  private async copy(from: PipelineView, title: string, as = ''): Promise<string | undefined> {
    const project = this.project();
    const to = (await vscode.window.showQuickPick(WHERE, { title }))?.to;
    if (!to) return undefined;
    const order = { name: from.name, to, ...(project ? { project } : {}), ...(as ? { as } : {}) };
    return (await this.orders.ask(() => this.server.order<Path>('copyPipeline', order)))?.path;
  }

  /** The project before the person, if tasks of it are known; else the folder that is open. */
  private project(): string | undefined {
    const editor = vscode.window.activeTextEditor?.document.uri;
    const file = editor?.scheme === 'file' ? real(editor.fsPath) : '';
    const here = this.tasks.all.filter(task => this.tasks.isHere(task)).map(task => task.project);
    return here.find(project => isBelow(file, project)) ?? here[0] ?? vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  }

  /** Where the pipeline's file names the prompt, the server knows which file it is. */
  private async openPrompt(pipeline: string, stage: PipelineStageView): Promise<void> {
    const uri = vscode.Uri.file(pipeline);
    const lines = (await vscode.workspace.openTextDocument(uri)).getText().split('\n');
    const begins = lines.findIndex(line => /^\s*id\s*=/.test(line) && line.includes(`"${stage.id}"`));
    const at = lines.findIndex((line, number) => number > begins && /^\s*prompt\s*=/.test(line));
    const column = (lines[at]?.indexOf('"') ?? 0) + 2;
    const found = at < 0 ? [] : await vscode.commands.executeCommand<(vscode.Location | vscode.LocationLink)[]>(
      'vscode.executeDefinitionProvider', uri, new vscode.Position(at, column));
    const first = found[0];
    if (first) await open(('targetUri' in first ? first.targetUri : first.uri).fsPath);
    else await vscode.window.showTextDocument(uri, { selection: new vscode.Range(Math.max(0, begins), 0, Math.max(0, begins), 0) });
  }
}

async function open(file: string): Promise<void> {
  await vscode.window.showTextDocument(vscode.Uri.file(file));
}
