// What stands in a control and what an answer of the protocol is, each made from the other; pure.

import type { FormItem } from '../../src/protocol';

/** The choices that are ticked, and an answer of the person's own. */
export interface Chosen {
  ids: string[];
  other: string;
}

/** Where a finding is, and what comes of it, as the first lines of its text have it. */
export interface Finding {
  path: string;
  line: number | null;
  impact: string;
  /** The text behind them. */
  rest: string;
}

export type Typed = { value: unknown } | { problem: string };

/** The answer to a question or a field with choices. */
export function chosen(item: FormItem): Chosen {
  const { answer } = item;
  if (typeof answer === 'boolean') return { ids: [answer ? 'Yes' : 'No'], other: '' };
  const parts: unknown[] = Array.isArray(answer) ? answer : answer ? [answer] : [];
  const own = parts.find((part): part is { other: string } => typeof part === 'object' && part !== null && 'other' in part);
  return { ids: parts.filter((part): part is string => typeof part === 'string'), other: own?.other ?? '' };
}

/** What is sent for them, to a question. */
export function reply({ ids, other }: Chosen): unknown {
  const own = other.trim();
  return [...ids, ...(own ? [{ other: own }] : [])];
}

/** The same, to a field. */
export function fieldValue(item: FormItem, ids: string[]): unknown {
  if (item.input === 'yes_no') return ids.length > 0 ? ids[0] === 'Yes' : null;
  if (item.input === 'any') return ids.length > 0 ? ids : null;
  return ids[0] ?? null;
}

/** The value of a field or a question as it stands in a text box. */
export function asText(item: FormItem): string {
  const { answer } = item;
  if (item.input === 'json') {
    if (item.problem) return unfenced(item.body);
    return answer === null || answer === undefined ? '' : JSON.stringify(answer, null, 2);
  }
  if (Array.isArray(answer)) return answer.join('\n');
  return typeof answer === 'string' ? answer : '';
}

/** What a text box means; a text that can't be sent says why. */
export function fromText(item: FormItem, text: string): Typed {
  switch (item.input) {
    case 'bullets':
    case 'files':
      return { value: lines(text) };
    case 'line':
      return { value: text.trim() || null };
    case 'json':
      if (!text.trim()) return { value: null };
      try {
        return { value: JSON.parse(text) as unknown };
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        return { problem: `This is not valid JSON, so it was not sent: ${reason}.` };
      }
    default:
      return { value: text.trim() ? text : null };
  }
}

/** Whether two answers say the same: none is as good as an empty one, and white space counts only in sum. */
export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(plain(one)) === JSON.stringify(plain(other));
}

/** A question that is a finding; undefined for any other. */
export function finding(body: string): Finding | undefined {
  const found = { path: '', line: null as number | null, impact: '' };
  const rest = body.split('\n').filter(line => {
    const said = /^(Where|Impact):\s*(.*)$/.exec(line.trim());
    if (!said) return true;
    const words = (said[2] ?? '').replaceAll('`', '').trim();
    const place = /^(.*):(\d+)$/.exec(words);
    if (said[1] === 'Impact') found.impact = words;
    else [found.path, found.line] = place ? [place[1] ?? '', Number(place[2])] : [words, null];
    return false;
  });
  return found.path || found.impact ? { ...found, rest: rest.join('\n').trim() } : undefined;
}

/** Items in the order in which they stand, by the heading that they stand under. */
export function groups(items: FormItem[]): [string, FormItem[]][] {
  const found = new Map<string, FormItem[]>();
  for (const item of items) found.set(item.group, [...(found.get(item.group) ?? []), item]);
  return [...found];
}

function lines(text: string): string[] {
  return text.split('\n').map(line => line.trim().replace(/^[-*+]\s+/, '')).filter(Boolean);
}

function unfenced(body: string): string {
  const found = /^(`{3,}|~{3,})[^\n]*\n([\s\S]*?)\n?\1\s*$/.exec(body.trim());
  return found ? (found[2] ?? '') : body;
}

function plain(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(/\s+/g, ' ').trim() || null;
  if (Array.isArray(value)) return value.length > 0 ? value.map(plain) : null;
  if (value === undefined) return null;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([one], [two]) => (one < two ? -1 : 1));
  return entries.map(([key, part]) => [key, plain(part)]);
}
