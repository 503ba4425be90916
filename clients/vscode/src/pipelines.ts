// A pipeline of one's own: copied from another one, opened, and its prompts opened.

import * as vscode from 'vscode';
import type { Here } from './here';
import type { Orders } from './orders';
import type { PipelineList, PipelineStageView, PipelineView, Path } from './protocol';
import type { Server } from './server';
import { cut, oneLine, plain, several } from './words';

const WHERE: (vscode.QuickPickItem & { to: 'project' | 'user' })[] = [
  { label: 'In this project', description: '.promptside/pipelines, for everybody who works at it', to: 'project' },
  { label: 'For me', description: 'in all projects of mine', to: 'user' },
];

/** A pipeline, and the project that it was listed for, as an order names it. */
interface Chosen {
  pipeline: PipelineView;
  of: { project?: string };
}

export class PipelineFiles {
  constructor(
    private readonly server: Server,
    private readonly here: Here,
    private readonly orders: Orders,
  ) {}

  /** Opens a pipeline; of one that is shipped a copy is made first. */
  async edit(): Promise<void> {
    const chosen = await this.choose('Edit which pipeline?');
    const own = chosen && (await this.own(chosen, `Edit ${chosen.pipeline.title}`));
    if (own) await open(own);
  }

  /** A new one begins as the copy of another. */
  async create(): Promise<void> {
    if (!this.orders.mayAct()) return;
    const from = await this.choose('New pipeline: which one does it begin as?');
    if (!from) return;
    const name = await vscode.window.showInputBox({
      title: `New pipeline from ${from.pipeline.title}`,
      prompt: 'Its name, and the name of its file',
      value: `my-${from.pipeline.name}`,
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
    const { stages, title } = chosen.pipeline;
    const items = stages.map(stage => ({ label: plain(stage.name), description: plain(oneLine(stage.description)), stage }));
    const stage = (await vscode.window.showQuickPick(items, { title: `Edit the prompt of which stage of ${title}?` }))?.stage;
    const own = stage && (await this.own(chosen, `Edit the prompt of ${stage.name}`));
    if (own && stage) await this.openPrompt(own, stage);
  }

  private async choose(title: string): Promise<Chosen | undefined> {
    const project = await this.here.project('The pipelines of which project?');
    if (project === undefined) return undefined;
    const of = project ? { project } : {};
    const listed = await this.orders.ask(() => this.server.request<PipelineList>('promptside/query', { type: 'pipelines', ...of }));
    const items = (listed?.pipelines ?? []).map(pipeline => ({
      label: plain(pipeline.title),
      description: [pipeline.name, several(pipeline.stages.length, 'stage'), pipeline.origin].join(' · '),
      detail: plain(cut(pipeline.stages.map(stage => stage.name).join(' → '), 200)),
      pipeline,
    }));
    const pipeline = (items.length <= 1 ? items[0] : await vscode.window.showQuickPick(items, { title }))?.pipeline;
    return pipeline && { pipeline, of };
  }

  /** The file of a pipeline that the person may change. */
  private async own(chosen: Chosen, title: string): Promise<string | undefined> {
    if (chosen.pipeline.origin !== 'shipped') return chosen.pipeline.path;
    return this.orders.mayAct() ? this.copy(chosen, `${title}: where is your copy kept?`) : undefined;
  }

  private async copy(from: Chosen, title: string, as = ''): Promise<string | undefined> {
    const to = (await vscode.window.showQuickPick(WHERE, { title }))?.to;
    if (!to) return undefined;
    const order = { name: from.pipeline.name, to, ...from.of, ...(as ? { as } : {}) };
    return (await this.orders.ask(() => this.server.order<Path>('copyPipeline', order)))?.path;
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
