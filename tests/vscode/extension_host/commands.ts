// Commands are there as soon as the extension is, whatever the server does (UX 3.1).

import * as assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { test } from './suite';

const EXTENSION = 'promptside.promptside';

test('all commands are registered when the extension is activated, before there is a server', async () => {
  const extension = vscode.extensions.getExtension(EXTENSION);
  assert.ok(extension);
  await extension.activate();
  const there = new Set(await vscode.commands.getCommands(true));
  const told = contributed().commands.map(one => one.command);
  assert.deepEqual(told.filter(id => !there.has(id)), []);
});

test('no command of the palette, a menu, a key or a welcome is one that nobody has', () => {
  const { commands, menus, keybindings, viewsWelcome } = contributed();
  const known = new Set(commands.map(one => one.command));
  const used = [
    ...Object.values(menus).flat().map(one => one.command),
    ...keybindings.map(one => one.command),
    ...viewsWelcome.flatMap(one => [...one.contents.matchAll(/command:(promptside[\w.]*)/g)].map(found => found[1] ?? '')),
  ];
  assert.deepEqual(used.filter(id => !known.has(id)), []);
});

test('every command has one title and says in the palette when it is possible', () => {
  const { commands, menus } = contributed();
  const palette = new Set((menus['commandPalette'] ?? []).map(one => one.command));
  const always = ['promptside.daemonLog', 'promptside.restart'];
  assert.deepEqual(commands.map(one => one.command).filter(id => !palette.has(id) && !always.includes(id)), []);
  assert.deepEqual(commands.filter(one => one.category !== 'Promptside' || !one.title), []);
  assert.equal(new Set(commands.map(one => one.command)).size, commands.length);
});

test('nothing runs from a setting of the workspace, and the extension is where the files are', () => {
  const manifest = vscode.extensions.getExtension(EXTENSION)?.packageJSON as { extensionKind: string[] };
  assert.deepEqual(manifest.extensionKind, ['workspace']);
  assert.equal(contributed().configuration.properties['promptside.daemon.path']?.scope, 'machine');
});

interface Contributed {
  commands: { command: string; title: string; category: string }[];
  menus: Record<string, { command: string; when?: string }[]>;
  keybindings: { command: string }[];
  viewsWelcome: { contents: string }[];
  configuration: { properties: Record<string, { scope?: string }> };
}

function contributed(): Contributed {
  return (vscode.extensions.getExtension(EXTENSION)?.packageJSON as { contributes: Contributed }).contributes;
}
