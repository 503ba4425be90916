// Times, durations, money and counts in words; used on both sides, so nothing of an editor is in here.

export function several(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

export function cut(text: string, width: number): string {
  const line = oneLine(text);
  return line.length > width ? `${line.slice(0, width - 1).trimEnd()}…` : line;
}

/** The first of these sentences that have room, and never half of one if one has. */
export function begun(text: string, width: number): string {
  const line = oneLine(text);
  const ends = [...line.matchAll(/[.?!;](?= |$)/g)].map(match => match.index + 1).filter(end => end <= width);
  const end = ends.at(-1);
  return end === undefined ? cut(line, width) : line.slice(0, end).replace(/;$/, '.');
}

const TO_THE_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** Somebody's words beside ours, where their direction is to be only theirs. */
export function isolated(text: string): string {
  return TO_THE_LEFT.test(text) ? `\u2068${text}\u2069` : text;
}

/** The same where the editor would draw `$(name)` as an icon. */
export function plain(text: string): string {
  return isolated(text.replace(/\$\(/g, '\\$('));
}

/** Somebody's words in a message, where the editor would make a link of `[words](command:name)`. */
export function unlinked(text: string): string {
  return text.replace(/\]\(/g, ']\u2060(');
}

export function duration(seconds: number): string {
  if (seconds < 59.5) return `${Math.max(0, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Minutes that have passed, for what is shown while it runs. */
export function minutes(since: number | null, now = Date.now() / 1000): string {
  return since === null || now - since < 60 ? '' : duration(Math.floor((now - since) / 60) * 60);
}

export function money(dollars: number): string {
  return dollars > 0 && dollars < 0.01 ? '< $0.01' : `$${dollars.toFixed(2)}`;
}

/** What was spent; nothing for a recording, which cost nobody anything now. */
export function spent(of: { metrics: { recorded: boolean } }, dollars: number | null | undefined): string {
  return dollars && !of.metrics.recorded ? money(dollars) : '';
}

export function clock(at: number): string {
  return new Date(at * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false });
}
