// When a message is shown, and that it is one (UX 3.6); what opens when a task waits is in `waits.ts`.

import * as assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { Notices } from '../../../clients/vscode/src/notices';
import { Feed, replaced, set, test, until } from './suite';
import { attempt, GOLDEN, offer, stage, task } from './views';

type Given = ConstructorParameters<typeof Notices>;

/** Later than the window was opened: what waited before is said by badge and status bar only. */
const LATER = Date.now() / 1000 + 60;

/** What of ours is on the screen; how often that was looked at. */
class Screen {
  shown = false;
  looked = 0;

  get visible(): boolean {
    this.looked++;
    return this.shown;
  }
}

test('what begins to wait at once is one message, and none is shown twice', async () => {
  await told(async ({ feed, said }) => {
    for (const id of [1, 2, 3, 4]) feed.task(waiting({ id, title: `Number ${id}` }));
    assert.deepEqual(await next(said), ['4 things wait for you: “Number 1”, “Number 2”, “Number 3” and 1 more.', 'Open', 'Later']);
    feed.task(waiting({ id: 1, title: 'Number 1, changed', seq: 100 }));
    feed.task(waiting({ id: 5, title: 'Number 5' }));
    assert.deepEqual(await next(said), ['“Number 5” waits for you: High-Level Approaches, select 1 of 1.', 'Open', 'Later']);
  });
});

test('a failure is a warning; a stage that the person stopped is neither said nor shown as one', async () => {
  await told(async ({ feed, said }) => {
    const reason = { kind: 'person' as const, gate: null, reason: 'Stopped by you.' };
    const stopped = stage({ status: 'failed', stopped: true, attempts: [attempt({ status: 'stopped' })] });
    const failed = stage({ status: 'failed', attempts: [attempt({ status: 'failed', hint: 'Say what to do.' })] });
    feed.task(waiting({ id: 1, title: 'Stopped', stages: [stopped] }, reason));
    feed.task(waiting({ id: 2, title: 'Failed', stages: [failed], offers: [offer('retry')] }, { ...reason, reason: 'It ended.' }));
    assert.deepEqual(await next(said), ['“Failed”: High-Level Approaches failed: It ended. Say what to do.', 'Open', 'Retry']);
  });
});

test('nothing is said while something of ours is on the screen, nor where the person wants no messages', async () => {
  await told(async ({ feed, said, screen }) => {
    screen.shown = true;
    feed.task(waiting({ id: 1, title: 'Seen' }));
    await until(() => screen.looked > 0 || undefined);
    screen.shown = false;
    await vscode.commands.executeCommand('promptside.openPanel');
    await until(() => vscode.window.tabGroups.activeTabGroup.activeTab?.input instanceof vscode.TabInputWebview || undefined);
    const looked = screen.looked;
    feed.task(waiting({ id: 4, title: 'Seen in the panel' }));
    await until(() => screen.looked > looked || undefined);
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
    await until(() => vscode.window.tabGroups.activeTabGroup.activeTab === undefined || undefined);
    await set('notify.toasts', false, async () => {
      const before = screen.looked;
      feed.task(waiting({ id: 2, title: 'Unwanted' }));
      await until(() => screen.looked > before || undefined);
    });
    feed.task(waiting({ id: 3, title: 'Said' }));
    assert.match((await next(said))[0] ?? '', /^“Said” waits for you/);
  });
});

interface Told {
  feed: Feed;
  screen: Screen;
  said: string[][];
}

async function told(perform: (told: Told) => Promise<void>): Promise<void> {
  const [feed, screen, said] = [new Feed(), new Screen(), [] as string[][]];
  const say = async (...words: string[]) => {
    said.push(words);
    return Promise.resolve(undefined);
  };
  new Notices(feed.tasks, { view: screen } as unknown as Given[1], {} as Given[2]);
  await replaced(vscode.window, 'showInformationMessage', say, () =>
    replaced(vscode.window, 'showWarningMessage', say, () => perform({ feed, screen, said })));
  assert.deepEqual(said, []);
}

/** The message that comes; taken away, so that another one is seen. */
async function next(said: string[][]): Promise<string[]> {
  return until(() => said.shift());
}

function waiting(more: Parameters<typeof task>[0], waits: Partial<NonNullable<typeof GOLDEN.waiting_for>> = {}): ReturnType<typeof task> {
  const gate = GOLDEN.waiting_for?.gate ? { ...GOLDEN.waiting_for.gate, selected: [], lacks: ['1'] } : null;
  return task({ ...more, waiting_for: { ...GOLDEN.waiting_for!, decisions: [], gate, since: LATER, ...waits } });
}
