const MAX_LINE_BYTES = 1024;
/** Of it, what the root cause may take. */
const MAX_CAUSE_BYTES = 512;
/** arklet's outer message where the inner one says why. */
const EMPTY_WORDS = /^(un)?install biz not success!?$/i;

/**
 * One line for people from what a base said about a command. The inner message is the more exact one, unless
 * it is a stack trace and the outer one is not. A trace's root cause is added, as its first line seldom has it.
 */
export function messageLineOf(outer: string, inner: string, trace = ''): string {
  const hasWords = !EMPTY_WORDS.test(outer.trim());
  const candidates = [inner, hasWords ? outer : '', trace].filter((text) => text.trim() !== '');
  const line = firstLineOf(candidates.find((text) => !isStackTrace(text)) ?? candidates[0] ?? outer);
  const cause = cutToBytes(rootCauseOf(inner) || rootCauseOf(outer) || rootCauseOf(trace), MAX_CAUSE_BYTES);
  if (cause === '' || line.includes(cause)) return line;
  const suffix = `; caused by ${cause}`;
  return cutToBytes(line, MAX_LINE_BYTES - Buffer.byteLength(suffix)) + suffix;
}

function isStackTrace(text: string): boolean {
  return text.includes('\n\tat ') || text.includes('\nCaused by: ');
}

function firstLineOf(text: string): string {
  // No character has less than a byte, so the rest could not stay anyway; a base may send a megabyte.
  const start = text.trimStart().slice(0, MAX_LINE_BYTES + 1);
  const [line = ''] = start.split(/[\r\n]/, 1);
  return cutToBytes(line.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').trimEnd(), MAX_LINE_BYTES);
}

/** The last `Caused by:` of a Java stack trace, '' where there is none. */
function rootCauseOf(text: string): string {
  const marker = '\nCaused by: ';
  const start = text.lastIndexOf(marker);
  return start < 0 ? '' : firstLineOf(text.slice(start + marker.length));
}

/** At most `maxBytes` of UTF-8, cut between characters and marked with `…`. */
export function cutToBytes(text: string, maxBytes: number): string {
  const wellFormed = text.toWellFormed();
  if (Buffer.byteLength(wellFormed) <= maxBytes) return wellFormed;
  const ellipsis = '…';
  const room = new Uint8Array(maxBytes - Buffer.byteLength(ellipsis));
  const { read } = new TextEncoder().encodeInto(wellFormed, room);
  return wellFormed.slice(0, read) + ellipsis;
}
