// Where the program is looked for, and in which order.

import * as assert from 'node:assert/strict';
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { findProgram, onEnvironment } from '../../../clients/vscode/src/program';
import { PROTOCOL } from '../../../clients/vscode/src/protocol';
import { mismatch } from '../../../clients/vscode/src/server';
import { replaced, set, test } from './suite';
import { FOLDER } from './views';

test('the Python environment in use is before that of the folder, and another one is noticed', async () => {
  const chosen = path.join(FOLDER, 'chosen');
  const [inUse, venv] = [path.join(chosen, 'bin/promptside'), path.join(FOLDER, '.venv/bin/promptside')];
  for (const file of [inUse, venv]) {
    await fs.mkdir(path.dirname(file), { recursive: true });
    await fs.writeFile(file, '#!/bin/sh\n', { mode: 0o755 });
  }
  const other = new vscode.EventEmitter<unknown>();
  let [now, noticed] = [chosen, 0];
  const environments = { getActiveEnvironmentPath: () => ({ path: now }), onDidChangeActiveEnvironmentPath: other.event };
  const python = (id: string) => (id === 'ms-python.python' ? { activate: async () => Promise.resolve({ environments }) } : undefined);
  await replaced(vscode.extensions, 'getExtension', python, async () => {
    assert.deepEqual(await findProgram(true), { command: inUse, origin: 'the Python environment in use' });
    assert.notEqual((await findProgram(false))?.command, inUse); // a folder without trust chooses no program
    const listening = await onEnvironment(() => noticed++);
    now = path.join(FOLDER, 'none');
    other.fire(undefined);
    assert.equal(noticed, 1);
    assert.equal((await findProgram(true))?.command, venv);
    now = path.join(chosen, 'bin/python');
    assert.equal((await findProgram(true))?.command, inUse); // as the extension tells of an interpreter
    listening?.dispose();
    await set('daemon.path', venv, async () => assert.equal((await findProgram(true))?.command, venv));
  });
  await fs.rm(path.join(FOLDER, '.venv'), { recursive: true });
});

test('versions that differ are said with what is to be updated (M28)', () => {
  assert.equal(mismatch(PROTOCOL), '');
  assert.match(mismatch(PROTOCOL - 1), /Update the program promptside; until then you can read, not decide\.$/);
  assert.match(mismatch(PROTOCOL + 1), /Update the extension; until then you can read, not decide\.$/);
});

test('the setting is first, then the environment of a trusted folder, then PATH', async () => {
  const before = process.env['PATH'];
  const settings = vscode.workspace.getConfiguration('promptside');
  const [set, venv, bin] = [path.join(FOLDER, 'elsewhere'), path.join(FOLDER, '.venv/bin'), path.join(FOLDER, 'bin')];
  try {
    for (const directory of [set, venv, bin]) {
      await fs.mkdir(directory, { recursive: true });
      await fs.writeFile(path.join(directory, 'promptside'), '#!/bin/sh\n', { mode: 0o755 });
    }
    process.env['PATH'] = ['relative', bin].join(path.delimiter);
    assert.deepEqual(await findProgram(true), { command: path.join(venv, 'promptside'), origin: `.venv of ${path.basename(FOLDER)}` });
    assert.deepEqual(await findProgram(false), { command: path.join(bin, 'promptside'), origin: 'PATH' });
    process.env['PATH'] = '';
    assert.equal(await findProgram(false), undefined);
    await settings.update('daemon.path', path.join(set, 'promptside'), vscode.ConfigurationTarget.Global);
    assert.equal((await findProgram(false))?.command, path.join(set, 'promptside'));
    await settings.update('daemon.path', path.join(set, 'missing'), vscode.ConfigurationTarget.Global);
    assert.equal(await findProgram(true), undefined); // what was named is not replaced by something else
  } finally {
    process.env['PATH'] = before;
    await settings.update('daemon.path', undefined, vscode.ConfigurationTarget.Global);
  }
});
