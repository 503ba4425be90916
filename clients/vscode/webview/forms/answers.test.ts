// Controls and answers, each made from the other.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FormItem } from '../../src/protocol';
import { asText, chosen, fieldValue, finding, fromText, groups, reply, same } from './answers';

const ITEM: FormItem = {
  id: 'Q1', line: 1, title: '', body: '', answer: null, lacks: '', problem: '', group: '', required: false,
  recommended: false, pros: [], cons: [], severity: '', path: '', path_line: null, input: 'one', choices: [],
  other: false, lang: '',
};

function item(more: Partial<FormItem>): FormItem {
  return { ...ITEM, ...more };
}

test('choices are ids, and words of one’s own', () => {
  assert.deepEqual(chosen(item({ answer: null })), { ids: [], other: '' });
  assert.deepEqual(chosen(item({ answer: ['A', { other: 'mine' }] })), { ids: ['A'], other: 'mine' });
  assert.deepEqual(chosen(item({ answer: 'feature' })), { ids: ['feature'], other: '' });
  assert.deepEqual(chosen(item({ answer: false, input: 'yes_no' })), { ids: ['No'], other: '' });
  assert.deepEqual(reply({ ids: ['A'], other: ' mine ' }), ['A', { other: 'mine' }]);
  assert.deepEqual(reply({ ids: [], other: '  ' }), []);
});

test('a field has a value of its type, or none', () => {
  assert.equal(fieldValue(item({ input: 'yes_no' }), ['No']), false);
  assert.equal(fieldValue(item({ input: 'yes_no' }), []), null);
  assert.equal(fieldValue(item({ input: 'one' }), ['fix']), 'fix');
  assert.equal(fieldValue(item({ input: 'one' }), []), null);
  assert.deepEqual(fieldValue(item({ input: 'any' }), ['a', 'b']), ['a', 'b']);
  assert.equal(fieldValue(item({ input: 'any' }), []), null);
});

test('a text box says what is there, and what it says is sent', () => {
  assert.equal(asText(item({ input: 'files', answer: ['a.py', 'b.py'] })), 'a.py\nb.py');
  assert.equal(asText(item({ input: 'json', answer: { risk: 2 } })), '{\n  "risk": 2\n}');
  assert.equal(asText(item({ input: 'json', answer: 0 })), '0');
  assert.equal(asText(item({ input: 'json', answer: null })), '');
  assert.equal(asText(item({ input: 'json', problem: 'No JSON.', body: '```json\n{"a": \n```' })), '{"a": ');
  assert.deepEqual(fromText(item({ input: 'bullets' }), '- a\n\n  b \n'), { value: ['a', 'b'] });
  assert.deepEqual(fromText(item({ input: 'line' }), ' a '), { value: 'a' });
  assert.deepEqual(fromText(item({ input: 'text' }), ' \n'), { value: null });
  assert.deepEqual(fromText(item({ input: 'code' }), '  indented\n'), { value: '  indented\n' });
  assert.deepEqual(fromText(item({ input: 'json' }), '[1]'), { value: [1] });
  assert.deepEqual(fromText(item({ input: 'json' }), ' '), { value: null });
  assert.match((fromText(item({ input: 'json' }), '{') as { problem: string }).problem, /^This is not valid JSON/);
});

test('answers are the same if they say the same', () => {
  assert.ok(same(null, ''));
  assert.ok(same(undefined, []));
  assert.ok(same('a  b\n', ' a b'));
  assert.ok(same({ ticked: true, note: 'x' }, { note: ' x', ticked: true }));
  assert.ok(!same(false, null));
  assert.ok(!same(['A'], ['A', { other: 'x' }]));
  assert.ok(!same({ ticked: true, note: '' }, { ticked: false, note: '' }));
});

test('a finding says where it is and what comes of it', () => {
  assert.deepEqual(finding('Where: `src/a.py:88`\nImpact: critical\n\nIt leaks.'), {
    path: 'src/a.py', line: 88, impact: 'critical', rest: 'It leaks.',
  });
  assert.equal(finding('Where: src/a.py')?.line, null);
  assert.equal(finding('Somewhere: else'), undefined);
});

test('items stand under their headings, in order', () => {
  const found = groups([item({ id: 'a', group: 'x' }), item({ id: 'b', group: 'y' }), item({ id: 'c', group: 'x' })]);
  assert.deepEqual(found.map(([group, items]) => [group, items.map(one => one.id)]), [['x', ['a', 'c']], ['y', ['b']]]);
});
