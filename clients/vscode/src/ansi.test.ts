// What a terminal is given for what an agent writes: `drawn` is without colours.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ansi, cells } from './ansi';
import type { OutputEntry } from './protocol';

function entry(text: string, more: Partial<OutputEntry> = {}): OutputEntry {
  return { seq: 0, role: 'text', text, path: '', line: null, ok: null, block: null, replace: false, ...more } as OutputEntry;
}

function drawn(...written: string[]): string {
  return written.join('').replace(/\x1b\[\d+m/g, '').replaceAll('\r\n', '\n');
}

function narrow(width: number): Ansi {
  const made = new Ansi();
  made.width = width;
  return made;
}

test('text is broken between words, never within one', () => {
  const ansi = narrow(20);
  assert.equal(drawn(ansi.add([entry('The first ten words of almost any text')])), 'The first ten words\nof almost any text\n');
});

test('a word that comes in two pieces is one word', () => {
  const ansi = narrow(20);
  const block = 'b';
  const pieces = ['The first ten words imple', 'mented so ', 'far'].map(text => ansi.add([entry(text, { block })]));
  assert.equal(drawn(...pieces, ansi.line('over')), 'The first ten words\nimplemented so far\nover\n');
});

test('what is held back is drawn when nothing follows, and gone on with', () => {
  const ansi = narrow(20);
  const first = ansi.add([entry('I look', { block: 'b' })]);
  assert.equal(drawn(first), 'I');
  assert.equal(drawn(first, ansi.rest(), ansi.add([entry(' at it\n', { block: 'b' })])), 'I look at it\n');
});

test('a word that is wider than the terminal begins a line of its own', () => {
  const ansi = narrow(20);
  const long = 'x'.repeat(25);
  assert.equal(drawn(ansi.add([entry(`so ${long} so it goes`)])), `so\n${long} so it goes\n`);
});

test('lines that follow are indented as the first', () => {
  const ansi = narrow(24);
  assert.equal(drawn(ansi.add([entry('  - one two three four five six')])), '  - one two three four\n  five six\n');
});

test('after a call of a tool, lines begin where lines begin', () => {
  const ansi = narrow(24);
  const call = entry('Read a-file-with-a-very-long-name.md', { role: 'tool', block: 'c' });
  const text = entry('Two modules matter: what a word is\n', { block: 't' });
  assert.equal(drawn(ansi.add([call, text])), '> Read a-file-with-a-ve…\nTwo modules matter: what\na word is\n');
});

test('a call of a tool is one line, a refused one is red', () => {
  const ansi = narrow(24);
  assert.equal(drawn(ansi.add([entry('Bash npm install --save-exact\nand more', { role: 'tool' })])), '> Bash npm install --sa…\n');
  assert.match(ansi.add([entry('no such file', { role: 'result', ok: false })]), /\x1b\[31mno such file/);
});

test('what calls that were made together came to says of which file it is', () => {
  const ansi = new Ansi();
  const call = (block: string, path: string, more = '') => entry(`Edit     ${path}${more}`, { role: 'tool', block, path, replace: more !== '' });
  const words = ansi.add([call('a', 'src/a.py'), call('b', 'b.py'), call('a', 'src/a.py', ' +1 -1'), call('b', 'b.py', ' +4 -0')]);
  assert.equal(drawn(words), '> Edit     src/a.py\n> Edit     b.py\n  a.py +1 -1\n  b.py +4 -0\n');
  const alone = new Ansi();
  assert.equal(drawn(alone.add([call('a', 'src/a.py'), call('a', 'src/a.py', ' +1 -1')]), alone.line('')), '> Edit     src/a.py +1 -1\n\n');
});

test('nothing that a terminal would obey goes through', () => {
  assert.equal(drawn(new Ansi().add([entry('a\x1b]0;title\x07b\x9bc')])), 'a\ufffd]0;title\ufffdb\ufffdc\n');
});

test('what the agent took back is said, and what it wrote anew follows', () => {
  const ansi = new Ansi();
  const block = 'b';
  const first = ansi.add([entry('First thought', { block })]);
  const again = ansi.add([entry('Second thought\n', { block, replace: true })]);
  assert.equal(drawn(first, again), 'First thought\n(the agent took this back and wrote:)\nSecond thought\n');
});

test('wide and combining characters take the columns that they take', () => {
  assert.deepEqual(['a', '漢字', 'e\u0301', '🙂', 'مرحبا'].map(cells), [1, 4, 1, 2, 5]);
});
