// No task to draw: there is none, or nobody to ask; one clear next step.

import type { Shown } from '../../src/panel_messages';
import { refill } from '../element';
import { icon, make } from '../dom';
import type { Page } from '../model';

interface Step {
  title: string;
  command: string;
  args?: Record<string, unknown>;
}

interface Picture {
  name: string;
  title: string;
  words: string;
  steps: Step[];
  link?: Step;
}

/** What stands in place of a task; none if a task can be drawn. */
export function pictureOf(shown: Shown): Picture | undefined {
  switch (shown.server) {
    case 'missing':
      return {
        name: 'debug-disconnect',
        title: 'Promptside was not found',
        words: 'It is a program that runs beside the editor. It was not found on this machine.',
        steps: [{ title: 'Install Promptside', command: 'install' }, { title: 'Look again', command: 'restart' }],
      };
    case 'failed':
      return {
        name: 'debug-disconnect',
        title: 'Promptside could not be started',
        words: 'Its log says why. Agents that were at work go on.',
        steps: [{ title: 'Try again', command: 'restart' }, { title: 'Show log', command: 'daemonLog' }],
      };
    case 'starting':
      return shown.task ? undefined : { name: 'loading spin', title: 'Promptside is starting', words: '', steps: [] };
    case 'running':
      break;
  }
  if (!shown.up) {
    return {
      name: 'debug-disconnect',
      title: 'The Promptside daemon is not running',
      words: 'Agents that were at work go on; their output is picked up when the daemon is back.',
      steps: [{ title: 'Start it', command: 'daemonStart' }, { title: 'Show log', command: 'daemonLog' }],
    };
  }
  if (shown.task) return undefined;
  if (!shown.told) return { name: 'loading spin', title: 'Looking for the task', words: '', steps: [] };
  if (shown.hindrance) return { name: 'workspace-untrusted', title: 'This folder is not trusted', words: shown.hindrance, steps: [{ title: 'Manage trust', command: 'workbench.trust.manage' }] };
  if (shown.state.task !== 0) {
    return { name: 'checklist', title: 'This task is not here any more', words: 'Its project is not in the list now, or it was removed.', steps: [{ title: 'Open another…', command: 'openTask' }, { title: 'New task…', command: 'newTask' }] };
  }
  return {
    name: 'checklist',
    title: 'No task yet',
    words: 'A task goes through the stages of a pipeline. You decide at each gate.',
    steps: [{ title: 'New task…', command: 'newTask' }],
    link: { title: 'Try it without an agent: run a rehearsal', command: 'rehearse' },
  };
}

export class Centre {
  readonly element = make('main', { class: 'centre', hidden: true });

  show(picture: Picture | undefined, page: Page): void {
    this.element.hidden = picture === undefined;
    if (!picture) return;
    const button = (step: Step, at: number): HTMLElement => make('button', { type: 'button', class: at === 0 ? 'btn p' : 'btn s', 'data-key': step.command, click: () => page.command(step.command, step.args) }, step.title);
    const { link } = picture;
    refill(this.element, picture, () => [
      icon(picture.name),
      make('h2', {}, picture.title),
      picture.words && make('p', { class: 'muted' }, picture.words),
      picture.steps.length > 0 && make('p', { class: 'buttons' }, ...picture.steps.map(button)),
      link && make('p', {}, make('button', { type: 'button', class: 'link', 'data-key': link.command, click: () => page.command(link.command) }, link.title)),
    ]);
  }
}
