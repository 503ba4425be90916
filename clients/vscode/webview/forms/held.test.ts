// An answer that was given stays to be seen until it is pushed, and no longer than it holds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Held } from './held';

/** A clock that is moved by hand. */
function clock(): { held: Held; changed: string[]; pass: () => void } {
  const changed: string[] = [];
  const due: (() => void)[] = [];
  const held = new Held(item => changed.push(item), what => due.push(what));
  return { held, changed, pass: () => due.splice(0).forEach(what => what()) };
}

const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

test('what was pushed before an answer does not take it back', async () => {
  const { held, changed } = clock();
  assert.equal(held.see('A', false), false);
  held.put('A', true, Promise.resolve());
  assert.equal(held.see('A', false), true);
  await settled();
  assert.equal(held.see('A', false), true);
  assert.equal(held.see('A', true), true);
  assert.equal(held.see('A', false), false, 'somebody took it back afterwards');
  assert.deepEqual(changed, []);
});

test('an answer that was refused is taken back', async () => {
  const { held, changed } = clock();
  held.put('A', true, Promise.reject(new Error('changed elsewhere')));
  assert.equal(held.see('A', false), true);
  await settled();
  assert.deepEqual(changed, ['A']);
  assert.equal(held.see('A', false), false);
});

test('an answer that never comes back gives way', async () => {
  const { held, changed, pass } = clock();
  held.put('Q5', ['b', 'b'], Promise.resolve());
  await settled();
  assert.deepEqual(held.see('Q5', ['b']), ['b', 'b']);
  pass();
  assert.deepEqual(changed, ['Q5']);
  assert.deepEqual(held.see('Q5', ['b']), ['b']);
});

test('the newest answer counts', async () => {
  const { held, changed, pass } = clock();
  held.put('A', 'one', Promise.reject(new Error('late')));
  held.put('A', 'two', Promise.resolve());
  await settled();
  assert.equal(held.see('A', 'one'), 'two');
  assert.deepEqual(changed, []);
  pass();
  assert.equal(held.see('A', 'one'), 'one');
});
