// Where the program is looked for, and in which order.

import * as assert from 'node:assert/strict';
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { findProgram } from '../../../clients/vscode/src/program';
import { test } from './suite';
import { FOLDER } from './views';

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
