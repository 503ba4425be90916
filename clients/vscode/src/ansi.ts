// What an agent writes as lines of a terminal: coloured by role, wrapped by the terminal, nothing drawn twice.

import type { OutputEntry } from './protocol';

const RESET = '\x1b[0m';
const COLOURS: Record<OutputEntry['role'], string> = {
  text: '',
  tool: '\x1b[2m',
  result: '\x1b[2m',
  stderr: '\x1b[31m',
  note: '\x1b[33m',
  status: '\x1b[1m',
};
const MARKS: Record<OutputEntry['role'], string> = { text: '', tool: '> ', result: '  ', stderr: '', note: '', status: '' };
const TAKEN_BACK = '(the agent took this back)';
const BEGAN_AGAIN = '(the agent took this back and wrote:)';

/** Turns entries into what a terminal takes; a block that goes on is gone on with. */
export class Ansi {
  private block: string | null = null;
  private atStart = true;
  private readonly texts = new Map<string, string>();

  add(entries: OutputEntry[]): string {
    return entries.map(entry => this.one(entry)).join('');
  }

  /** A line of our own. */
  line(text: string, role: OutputEntry['role'] = 'status'): string {
    return `${this.fresh(null)}${coloured(text, role)}\r\n`;
  }

  private one(entry: OutputEntry): string {
    const text = harmless(entry.text);
    if (entry.block === null) {
      const failed = entry.role === 'result' && entry.ok === false;
      return `${this.fresh(null)}${coloured(text.replace(/\n+$/, ''), failed ? 'stderr' : entry.role)}\r\n`;
    }
    const before = this.texts.get(entry.block) ?? '';
    this.texts.set(entry.block, entry.replace ? text : before + text);
    if (entry.replace && before) {
      if (text.startsWith(before)) return this.goOn(entry, text.slice(before.length));
      const said = text ? BEGAN_AGAIN : TAKEN_BACK;
      return `${this.fresh(entry.block)}${coloured(said, 'note')}\r\n${this.goOn(entry, text)}`;
    }
    return this.goOn(entry, text);
  }

  private goOn(entry: OutputEntry, text: string): string {
    if (!text) return '';
    const start = entry.block === this.block ? '' : this.fresh(entry.block);
    this.atStart = text.endsWith('\n');
    return start + coloured(text, entry.role, this.atStart);
  }

  /** Begins on a line of its own. */
  private fresh(block: string | null): string {
    const start = this.atStart ? '' : '\r\n';
    this.block = block;
    this.atStart = true;
    return start;
  }
}

function coloured(text: string, role: OutputEntry['role'], ends = false): string {
  const [colour, mark] = [COLOURS[role], MARKS[role]];
  const lines = (ends ? text.slice(0, -1) : text).split('\n');
  const drawn = lines.map(line => (colour && line ? `${colour}${mark}${line}${RESET}` : line)).join('\r\n');
  return ends ? `${drawn}\r\n` : drawn;
}

/** Without anything that a terminal would obey. */
function harmless(text: string): string {
  // eslint-disable-next-line no-control-regex -- exactly these are meant
  return text.replace(/\r\n?/g, '\n').replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '\ufffd');
}
