// Loaded by the extension host (`extensionTestsPath`); what became of each test is left in the folder of the window.

import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import './commands';
import './keys';
import './notices';
import './orders';
import './selection';
import './tree';
import './waits';
import './program'; // last: it leaves programs in the folder that are none
import { performAll } from './suite';
import { FOLDER } from './views';

export async function run(): Promise<void> {
  const file = path.join(FOLDER, 'results.json');
  await performAll(async so => {
    await fs.writeFile(`${file}.new`, JSON.stringify(so));
    await fs.rename(`${file}.new`, file);
  });
}
