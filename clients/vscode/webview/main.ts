// The middle of the panel: the stage that is drawn, in the picture that its state asks for.

import { drawForm, remind, Suggestion, suggestionsOf, updateForm } from './forms/form';
import { link, make, told } from './dom';
import type { TaskView } from '../src/protocol';
import { spent } from '../src/amounts';
import { drawPermissions, updatePermissions } from './forms/permission';
import { refill } from './element';
import { currentOf, drawnStage, formOf, lastOf, Model, Page, Scene, sceneOf } from './model';
import { Earlier } from './stages/earlier';
import { Record } from './stages/record';
import { Running } from './stages/running';
import { ABANDONED, Said } from './stages/said';
import { isAtWork, proof, sentence, span } from './words';

interface Picture {
  element: HTMLElement;
  show(model: Model, page: Page): void;
}

export class Main {
  private readonly hindrance = make('div');
  private readonly title = make('div', { class: 'stage' });
  private readonly remark = make('div');
  private readonly permissions: HTMLElement;
  private readonly place = make('div', { class: 'picture' });
  private readonly earlier = new Earlier();
  private readonly body: HTMLElement;
  readonly element: HTMLElement;
  private drawn = '';
  private picture: Picture | undefined;
  private form: HTMLElement | undefined;

  constructor(
    private readonly page: Page,
    private readonly foot: HTMLElement,
    private readonly changed: () => void,
  ) {
    this.permissions = make('div');
    this.body = make('div', { class: 'body' }, this.hindrance, this.title, this.remark, this.permissions, this.place, this.earlier.element);
    this.element = make('main', { class: 'main', tabindex: -1 }, this.body, this.foot);
  }

  /** What stands in the field of what failed, or waits for a word. */
  get said(): string {
    return this.picture instanceof Said ? (this.picture.box?.value.trim() ?? '') : '';
  }

  remind(): void {
    if (this.form) remind(this.form);
  }

  get suggestions(): Suggestion[] {
    return this.form ? suggestionsOf(this.form) : [];
  }

  show(model: Model): void {
    const { task } = model;
    const stage = drawnStage(model);
    const scene = sceneOf(model);
    refill(this.hindrance, model.hindrance, () => [model.hindrance && this.restricted(model)]);
    this.head(model, scene);
    const remark = remarkOf(model, scene);
    const last = scene === 'gate' && stage ? lastOf(stage) : undefined;
    const said = last?.feedback ? `You sent the attempt before back: “${last.feedback}”` : last && stage?.input ? `You said: “${stage.input}”` : '';
    const deaf = task.metrics.recorded && 'A recording is played: it can’t follow that.';
    refill(this.remark, [remark, said, deaf, last?.note], () => [
      remark && told('warning', 'warn', remark),
      said && told('comment', '', said, deaf),
      last?.note && told('info', '', last.note),
    ]);
    if (this.permissions.childElementCount === 0) this.permissions.append(drawPermissions(task, this.page));
    else updatePermissions(this.permissions.firstElementChild as HTMLElement, task, this.page);
    this.permissions.hidden = stage !== currentOf(task);
    const key = [scene, stage?.id, scene === 'failed' || scene === 'stopped' ? stage?.attempts.length : 0].join(' ');
    if (key !== this.drawn) {
      this.drawn = key;
      this.form = undefined;
      this.picture = this.pictureOf(scene, model);
      this.place.replaceChildren(this.picture.element);
      this.element.scrollTop = 0;
    }
    this.picture?.show(model, this.page);
    const before = scene === 'done' || scene === 'over' ? [] : task.stages.slice(0, Math.max(0, task.stages.findIndex(one => one === stage)));
    const earlier = scene === 'record' || scene === 'ahead' ? [] : before.filter(one => one.attempts.length > 0 || one.status === 'skipped');
    const ended = scene === 'over' || scene === 'ready' || scene === 'ahead' || scene === 'done' ? (stage?.attempts ?? []) : (stage?.attempts.slice(0, -1) ?? []);
    this.earlier.show(this.page, task, stage, [...ended].reverse(), earlier);
  }

  private head(model: Model, scene: Scene): void {
    const { task } = model;
    const stage = scene === 'over' ? undefined : drawnStage(model);
    const last = stage && lastOf(stage);
    const took = last?.duration_s != null ? span(last.duration_s) : '';
    const facts = last ? [`Attempt ${last.n}`, took, proof(last) || stage.rule, last.model] : [];
    const sums = stage ? [] : [task.metrics.duration_s > 0 ? span(task.metrics.duration_s) : '', spent(task, task.metrics.cost_usd)];
    const name = stage?.name ?? nameOf(task);
    const sub = [...facts, ...sums].filter(Boolean);
    refill(this.title, [name, sub], () => [
      make('h2', { dir: 'auto' }, name),
      make('span', { class: 'muted' }, ...sub.map((fact, at) => make('span', { class: 'whole' }, at < sub.length - 1 ? `${fact} · ` : fact))),
    ]);
  }

  private restricted(model: Model): HTMLElement {
    const manage = !model.trusted && link('Manage trust', () => this.page.command('workbench.trust.manage'));
    return told('workspace-untrusted', 'warn', model.hindrance, manage);
  }

  private pictureOf(scene: Scene, model: Model): Picture {
    switch (scene) {
      case 'gate':
      case 'questions':
        return this.formPicture();
      case 'running':
        return new Running();
      case 'record':
        return new Record();
      default:
        return new Said(scene, model, this.changed);
    }
  }

  /** The form comes a moment after the task; until then its place stays empty. */
  private formPicture(): Picture {
    const element = make('div');
    const show = (model: Model): void => {
      const told = formOf(model);
      if (!told) return;
      const form = model.hindrance ? { ...told, waits: false } : told; // to be read, as long as nothing can be decided
      if (this.form) updateForm(this.form, form, this.page);
      else element.append((this.form = drawForm(form, this.page)));
    };
    return { element, show };
  }
}

/** What there is to be known of a stage beside its picture: why its gate waits again, what it was built on. */
function remarkOf(model: Model, scene: Scene): string {
  const stage = drawnStage(model);
  if (scene === 'gate') return sentence(model.task.waiting_for?.reason || stage?.reason || '');
  return scene === 'running' && stage && isAtWork(stage) ? sentence(stage.reason) : '';
}

/** Of a task that has no stage to be drawn. */
function nameOf(task: TaskView): string {
  if (task.state === 'completed') return 'Done';
  if (task.state === 'failed') return 'Failed';
  return task.reason === ABANDONED ? 'Abandoned' : 'Archived';
}
