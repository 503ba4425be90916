// Changes of state are said once, and not faster than one can listen.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Announcer } from './announce';

test('only changes, and the newest of many', () => {
  const said: string[] = [];
  const due: { what: () => void; at: number }[] = [];
  let now = 0;
  const announcer = new Announcer(
    sentence => said.push(sentence),
    () => now,
    (what, ms) => due.push({ what, at: now + ms }),
  );
  const pass = (ms: number) => {
    now += ms;
    for (const one of due.splice(0)) if (one.at <= now) one.what(); else due.push(one);
  };
  announcer.state('a');
  pass(5000);
  assert.deepEqual(said, []);
  announcer.state('b');
  pass(0);
  assert.deepEqual(said, ['b']);
  announcer.state('c');
  announcer.state('d');
  pass(1999);
  assert.deepEqual(said, ['b']);
  pass(1);
  assert.deepEqual(said, ['b', 'd']);
  announcer.state('d');
  pass(5000);
  assert.deepEqual(said, ['b', 'd']);
});
