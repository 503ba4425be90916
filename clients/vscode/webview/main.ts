// The middle of the panel: the stage that is drawn, in the picture that its state asks for.

import { drawForm, remind, updateForm } from './forms/form';
import { make } from './forms/dom';
import { drawPermissions, updatePermissions } from './forms/permission';
import { refill } from './element';
import { currentOf, drawnStage, formOf, lastOf, Model, Page, Scene, sceneOf } from './model';
import { Earlier } from './stages/earlier';
import { Record } from './stages/record';
import { Running } from './stages/running';
import { notice, Said } from './stages/said';
import { proof, span } from './words';

interface Picture {
  element: HTMLElement;
  show(model: Model, page: Page): void;
}

export class Main {
  private readonly hindrance = make('div');
  private readonly title = make('div', { class: 'stage' });
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
    this.body = make('div', { class: 'body' }, this.hindrance, this.title, this.permissions, this.place, this.earlier.element);
    this.element = make('main', { class: 'main', tabindex: -1 }, this.body, this.foot);
  }

  /** What stands in the field of what failed, or waits for a word. */
  get said(): string {
    return this.picture instanceof Said ? (this.picture.box?.value.trim() ?? '') : '';
  }

  remind(): void {
    if (this.form) remind(this.form);
  }

  show(model: Model): void {
    const { task } = model;
    const stage = drawnStage(model);
    const scene = sceneOf(model);
    refill(this.hindrance, model.hindrance, () => [model.hindrance && this.restricted(model)]);
    this.head(model, scene);
    if (this.permissions.childElementCount === 0) this.permissions.append(drawPermissions(task, this.page));
    else updatePermissions(this.permissions.firstElementChild as HTMLElement, task, this.page);
    this.permissions.hidden = stage !== currentOf(task);
    const key = [scene, stage?.id, scene === 'failed' ? stage?.attempts.length : 0].join(' ');
    if (key !== this.drawn) {
      const focused = this.place.contains(document.activeElement);
      this.drawn = key;
      this.form = undefined;
      this.picture = this.pictureOf(scene, model);
      this.place.replaceChildren(this.picture.element);
      this.element.scrollTop = 0;
      if (focused) this.element.focus({ preventScroll: true }); // what had focus is no more
    }
    this.picture?.show(model, this.page);
    const before = scene === 'done' ? [] : task.stages.slice(0, Math.max(0, task.stages.findIndex(one => one === stage)));
    const earlier = scene === 'record' || scene === 'ahead' ? [] : before.filter(one => one.attempts.length > 0 || one.status === 'skipped');
    const ended = scene === 'ready' || scene === 'ahead' || scene === 'done' ? (stage?.attempts ?? []) : (stage?.attempts.slice(0, -1) ?? []);
    this.earlier.show(this.page, task, stage, [...ended].reverse(), earlier);
  }

  private head(model: Model, scene: Scene): void {
    const { task } = model;
    const stage = drawnStage(model);
    const last = stage && lastOf(stage);
    const over = last?.duration_s != null ? span(last.duration_s) : '';
    const facts = stage ? [last ? `Attempt ${last.n}` : '', over, last ? proof(last) || stage.rule : '', last?.model ?? ''] : [];
    const name = stage?.name ?? (scene === 'done' ? 'Done' : task.state === 'archived' ? 'Archived' : 'Given up');
    const sub = facts.filter(Boolean).join(' · ');
    refill(this.title, [name, sub], () => [make('h2', { dir: 'auto' }, name), make('span', { class: 'muted' }, sub)]);
  }

  private restricted(model: Model): HTMLElement {
    const drawn = notice('workspace-untrusted', 'warn', model.hindrance);
    if (!model.trusted) {
      const manage = make('button', { type: 'button', class: 'link', click: () => this.page.command('workbench.trust.manage') }, 'Manage trust');
      drawn.lastElementChild?.append(make('p', {}, manage));
    }
    return drawn;
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
      const form = formOf(model);
      if (!form) return;
      if (this.form) updateForm(this.form, form, this.page);
      else element.append((this.form = drawForm(form, this.page)));
    };
    return { element, show };
  }
}
