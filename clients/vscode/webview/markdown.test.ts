// Markdown that means harm comes out as text.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { html, targetOf } from './markdown';

test('what is written is drawn', () => {
  assert.match(html('# A\n\n- **b** `c`\n\n|x|\n|-|\n|1|'), /<h1>A<\/h1>[^]*<strong>b<\/strong> <code>c<\/code>[^]*<td>1<\/td>/);
});

test('no tag, attribute or style of its own gets through', () => {
  for (const evil of [
    '<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '<svg/onload=alert(1)>', '<style>*{display:none}</style>',
    '<a href="command:x">y</a>', '<iframe srcdoc="x">', '![x](https://evil.example/p.png)', '<details open ontoggle=alert(1)>',
    '[x](https://ok.example "\\" onmouseover=\\"alert(1)")', '<!-- x --><base href=//evil.example>',
  ]) {
    const drawn = html(evil);
    assert.doesNotMatch(drawn, /<(script|img|svg|style|iframe|details|base|meta|link|object)\b/i, evil);
    assert.doesNotMatch(drawn.replace(/"[^"]*"/g, '""').replace(/&lt;[^]*?&gt;/g, ''), /<[^>]*\son\w+=/i, evil);
  }
});

test('links that are none', () => {
  for (const href of [
    'javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'java\tscript:alert(1)', '\u0001javascript:alert(1)', 'command:workbench.action.quit',
    'data:text/html,x', 'vscode://x', 'file:///etc/passwd', '/etc/passwd', '//evil.example/x', '../../etc/passwd', 'a/../../b',
    'a%2f..%2f..%2fb', '%6aavascript:alert(1)', 'mailto:a@b.c', '\\\\host\\share', 'https:\\\\evil', '', '#', '%', 'http://',
  ]) {
    assert.equal(targetOf(href), undefined, JSON.stringify(href));
    assert.doesNotMatch(html(`[x](<${href.replace(/[<>\n\t\u0001]/g, '')}>)`), /href="(?!https?:|[^":]*")/, href);
  }
  assert.doesNotMatch(html('[x](command:workbench.action.quit) <command:a> command:b'), /<a/);
});

test('links that are', () => {
  assert.deepEqual(targetOf('https://example.com/a?b#c'), { kind: 'web', href: 'https://example.com/a?b#c' });
  assert.deepEqual(targetOf('./src/a%20b.ts#L12'), { kind: 'file', path: 'src/a b.ts', line: 12 });
  assert.deepEqual(targetOf('src/a.ts:7'), { kind: 'file', path: 'src/a.ts', line: 7 });
  assert.deepEqual(targetOf('src/a.ts:7:3'), { kind: 'file', path: 'src/a.ts', line: 7 });
  assert.deepEqual(targetOf('README.md'), { kind: 'file', path: 'README.md', line: 0 });
});
