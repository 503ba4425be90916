// A stage that is over: who approved it, what it left, and its attempts.

import { refill } from '../element';
import { make, told } from '../dom';
import { drawnStage, lastOf, Model, Page } from '../model';
import { sentence } from '../words';
import { fillIn } from './earlier';

export class Record {
  private readonly words = make('div');
  private readonly document = make('div', { class: 'form inside' });
  readonly element = make('div', {}, this.words, this.document);
  private shown = '';

  show(model: Model, page: Page): void {
    const stage = drawnStage(model);
    if (!stage) return;
    const last = lastOf(stage);
    refill(this.words, [stage.status, stage.reason, last?.note], () => [
      stage.status === 'skipped' && told('circle-slash', '', stage.reason ? `Skipped: ${stage.reason}` : 'This stage was skipped.'),
      stage.status === 'approved' && stage.reason && told('warning', 'warn', sentence(stage.reason)),
      last?.note && told('info', '', last.note),
    ]);
    const key = JSON.stringify([stage.id, last?.n, stage.status, stage.reason]);
    if (key === this.shown) return;
    this.shown = key;
    if (last) void fillIn(page, this.document, stage, last);
  }
}
