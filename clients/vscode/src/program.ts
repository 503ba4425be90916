// Where the program `promptside` is: what the person set, then the Python environment in use, then PATH.

import * as fs from 'node:fs/promises';
import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';

export interface Program {
  command: string;
  /** For the log, and for whoever wonders which one is used. */
  origin: string;
}

const WINDOWS = process.platform === 'win32';
const NAMES = WINDOWS ? ['promptside.exe', 'promptside.cmd'] : ['promptside'];
const SCRIPTS = WINDOWS ? 'Scripts' : 'bin';

/** The part of the Python extension that tells which environment the person has chosen. */
interface PythonApi {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

/** The program, or what was looked at in vain; of a folder that is not trusted nothing is run. */
export async function findProgram(trusted: boolean): Promise<Program | undefined> {
  const set = vscode.workspace.getConfiguration('promptside').get('daemon.path', '').trim();
  if (set) {
    const command = path.normalize(set.replace(/^~(?=\/|\\|$)/, os.homedir()));
    return (await isFile(command)) ? { command, origin: 'the setting promptside.daemon.path' } : undefined;
  }
  if (trusted) {
    const beside = await inEnvironment();
    if (beside) return beside;
  }
  const command = await firstOf((process.env['PATH'] ?? '').split(path.delimiter).filter(path.isAbsolute));
  return command === undefined ? undefined : { command, origin: 'PATH' };
}

/** Calls back when another Python environment is chosen. */
export async function onEnvironment(changed: () => void): Promise<vscode.Disposable | undefined> {
  return (await python())?.environments.onDidChangeActiveEnvironmentPath(changed);
}

async function inEnvironment(): Promise<Program | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const chosen = (await python())?.environments.getActiveEnvironmentPath(folders[0]?.uri).path;
  if (chosen) {
    const command = await firstOf([path.join(chosen, SCRIPTS), path.dirname(chosen)]);
    if (command !== undefined) return { command, origin: 'the Python environment in use' };
  }
  for (const folder of folders) {
    for (const name of ['.venv', 'venv']) {
      const command = await firstOf([path.join(folder.uri.fsPath, name, SCRIPTS)]);
      if (command !== undefined) return { command, origin: `${name} of ${folder.name}` };
    }
  }
  return undefined;
}

async function python(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>('ms-python.python');
  try {
    const api = await extension?.activate();
    return api?.environments ? api : undefined;
  } catch {
    return undefined; // that it is broken is its own affair
  }
}

async function firstOf(directories: string[]): Promise<string | undefined> {
  for (const directory of directories) {
    for (const name of NAMES) {
      const file = path.join(directory, name);
      if (await isFile(file)) return file;
    }
  }
  return undefined;
}

async function isFile(file: string): Promise<boolean> {
  try {
    await fs.access(file, WINDOWS ? fs.constants.F_OK : fs.constants.X_OK);
    return (await fs.stat(file)).isFile();
  } catch {
    return false;
  }
}
