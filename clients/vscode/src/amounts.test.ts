// Somebody's words stay words where the editor would make something else of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { begun, cut, isolated, minutes, plain, unlinked } from './amounts';

test('a name with $( in it is no icon', () => {
  assert.equal(plain('a $(bell) b $(x'), 'a \\$(bell) b \\$(x');
  assert.equal(plain('costs $5 (five)'), 'costs $5 (five)');
});

test('words in a message are no link that runs a command', () => {
  const LINK = /\[[^\]]*\]\([^)]*\)/;
  const words = 'Ask again before [this](command:promptside.abandon) and [that](https://example.invalid)?';
  assert.match(words, LINK);
  assert.doesNotMatch(unlinked(words), LINK);
  assert.equal(unlinked(words).replaceAll('\u2060', ''), words);
  assert.equal(unlinked('a[0] (first)'), 'a[0] (first)');
});

test('only words of another direction are set apart', () => {
  assert.equal(isolated('Add login'), 'Add login');
  assert.equal(isolated('أضف'), '\u2068أضف\u2069');
});

test('what is cut is one line and says so', () => {
  assert.equal(cut('one\n  two', 20), 'one two');
  assert.equal(cut('one two three', 9), 'one two…');
});

test('of sentences those are said whole that have room', () => {
  assert.equal(begun('Approved. It starts.', 20), 'Approved. It starts.');
  assert.equal(begun('Approved. It starts.', 19), 'Approved.');
  assert.equal(begun('All are done; what they came to is in 1.5/a.md. More.', 45), 'All are done.');
  assert.equal(begun('One sentence that is too long.', 12), 'One sentenc…');
});

test('the first minute of what runs is not counted', () => {
  assert.deepEqual([minutes(null, 100), minutes(41, 100), minutes(40, 100), minutes(0, 3725)], ['', '', '1 min', '1 h 2 min']);
});
