// What an agent writes as lines of a terminal: coloured by role, broken between words, nothing drawn twice.

import type { OutputEntry } from './protocol';

type Role = OutputEntry['role'];

const RESET = '\x1b[0m';
const COLOURS: Record<Role, string> = {
  text: '',
  tool: '\x1b[2m',
  result: '\x1b[2m',
  stderr: '\x1b[31m',
  note: '\x1b[33m',
  status: '\x1b[1m',
};
const MARKS: Record<Role, string> = { text: '', tool: '> ', result: '  ', stderr: '', note: '', status: '' };
const TAKEN_BACK = '(the agent took this back)';
const BEGAN_AGAIN = '(the agent took this back and wrote:)';
/** Lines of a terminal that is narrower than this are left to the terminal. */
const NARROWEST = 20;

/** Turns entries into what a terminal takes; a block that goes on is gone on with. */
export class Ansi {
  /** Columns of the terminal; 0 if they are not known, and then nothing is wrapped. */
  width = 0;
  private block: string | null = null;
  private role: Role = 'text';
  private readonly texts = new Map<string, string>();
  /** Where the next character goes, and where the words of this line began. */
  private column = 0;
  private indent = 0;
  /** Blanks, and the word that may not be at its end yet, which are drawn with what follows them. */
  private gap = '';
  private word = '';

  add(entries: OutputEntry[]): string {
    return entries.map(entry => this.one(entry)).join('');
  }

  /** A line of our own. */
  line(text: string, role: Role = 'status'): string {
    return this.fresh(null) + this.lay(`${text}\n`, role);
  }

  /** Draws the word that is held back, when nothing has followed it for a while. */
  rest(): string {
    const last = this.draw(this.word);
    this.word = '';
    return last && `${COLOURS[this.role]}${last}${COLOURS[this.role] && RESET}`;
  }

  private one(entry: OutputEntry): string {
    const text = harmless(entry.text);
    if (entry.block === null) {
      const role = entry.role === 'result' && entry.ok === false ? 'stderr' : entry.role;
      const whole = text.replace(/\n+$/, '');
      return this.line(role === 'tool' ? this.shortened(whole) : whole, role);
    }
    const before = this.texts.get(entry.block) ?? '';
    this.texts.set(entry.block, entry.replace ? text : before + text);
    if (entry.replace && before) {
      const more = text.startsWith(before) ? text.slice(before.length) : undefined;
      // Calls that were made together end together: what one came to stands below others, and says of which it is.
      if (more && entry.role === 'tool' && entry.path && entry.block !== this.block) return this.line(`${entry.path.split('/').at(-1)}${more}`, 'result');
      if (more !== undefined) return this.goOn(entry, more);
      const said = text ? BEGAN_AGAIN : TAKEN_BACK;
      return `${this.line(said, 'note')}${this.goOn(entry, text)}`;
    }
    return this.goOn(entry, text);
  }

  private goOn(entry: OutputEntry, text: string): string {
    if (!text) return '';
    if (entry.block === this.block) return this.lay(text, entry.role);
    const start = this.fresh(entry.block);
    return start + this.lay(entry.role === 'tool' ? this.shortened(text) : text, entry.role);
  }

  /** Begins on a line of its own. */
  private fresh(block: string | null): string {
    const last = this.rest();
    const start = this.column > 0 ? '\r\n' : '';
    this.block = block;
    this.column = this.indent = 0;
    this.gap = '';
    return last + start;
  }

  /** Words one after the other; the last is kept until it is known to be whole. */
  private lay(text: string, role: Role): string {
    this.role = role;
    const parts = (this.word + text.replaceAll('\t', '    ')).match(/\n| +|[^ \n]+/g) ?? [];
    this.word = '';
    const last = parts.at(-1);
    if (last !== undefined && last !== '\n' && !last.startsWith(' ')) this.word = parts.pop() ?? '';
    const drawn = parts.map(part => this.draw(part)).join('');
    return drawn && COLOURS[role] ? `${COLOURS[role]}${drawn}${RESET}` : drawn;
  }

  private draw(part: string): string {
    if (part === '') return '';
    if (part === '\n') {
      this.column = this.indent = 0;
      this.gap = '';
      return '\r\n';
    }
    const mark = this.column === 0 ? MARKS[this.role] : '';
    if (mark) this.column = this.indent = mark.length;
    if (part.startsWith(' ')) {
      if (this.column > this.indent || this.gap) {
        this.gap += part;
        return mark;
      }
      this.column = this.indent = this.column + part.length;
      return mark + part;
    }
    const wide = cells(part);
    let start = this.gap;
    if (this.width >= NARROWEST && this.column > this.indent && this.column + start.length + wide > this.width) {
      const hang = Math.min(this.indent, this.width >> 1);
      start = `\r\n${' '.repeat(hang)}`;
      this.column = hang;
    } else {
      this.column += start.length;
    }
    this.gap = '';
    this.column += wide;
    if (this.width > 0 && this.column > this.width) this.column = ((this.column - 1) % this.width) + 1;
    return mark + start + part;
  }

  /** A call of a tool is one line; the whole of it is in the transcript. */
  private shortened(text: string): string {
    const room = this.width - MARKS.tool.length;
    const first = text.split('\n', 1)[0] ?? '';
    const cut = this.width >= NARROWEST && cells(first) > room;
    if (!cut) return first === text ? text : `${first} …`;
    let kept = '';
    for (const one of first) {
      if (cells(kept) + cells(one) > room - 1) break;
      kept += one;
    }
    return `${kept}…`;
  }
}

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
const NONE = /\p{Mark}|[\u200b-\u200f\u2060\ufe0e\ufe0f]/u;

/** How many columns a text takes. */
export function cells(text: string): number {
  let count = 0;
  for (const one of text) count += NONE.test(one) ? 0 : WIDE.test(one) ? 2 : 1;
  return count;
}

/** Without anything that a terminal would obey. */
function harmless(text: string): string {
  // eslint-disable-next-line no-control-regex -- exactly these are meant
  return text.replace(/\r\n?/g, '\n').replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '\ufffd');
}
