const MAX_LINE_BYTES = 1024;
/** What the cause keeps of a line that has to be cut. */
const MAX_CAUSE_BYTES = 512;
/** arklet's outer message where the inner one says why. */
const EMPTY_WORDS = /^(un)?install biz not success!?$/i;

/**
 * One line for people from what a base said about a command. The inner message is the more exact one, unless
 * it is a stack trace and the outer one is not; then, as in any trace, the root cause is worth a place.
 */
export function messageLineOf(outer: string, inner: string, trace = ''): string {
  const candidates = [inner, EMPTY_WORDS.test(outer.trim()) ? '' : outer, outer, trace].filter((text) => text.trim());
  const chosen = candidates.find((text) => !isStackTrace(text)) ?? candidates[0] ?? '';
  const line = firstLineOf(chosen);
  const cause = rootCauseOf(inner) || rootCauseOf(outer) || rootCauseOf(trace);
  if (!cause || line.includes(cause)) return cutToBytes(line, MAX_LINE_BYTES);
  const suffix = cutToBytes(`; caused by ${cause}`, MAX_CAUSE_BYTES);
  return cutToBytes(line, MAX_LINE_BYTES - Buffer.byteLength(suffix)) + suffix;
}

function isStackTrace(text: string): boolean {
  return text.includes('\n\tat ') || text.includes('\nCaused by: ');
}

function firstLineOf(text: string): string {
  const trimmed = text.trimStart();
  const end = trimmed.search(/[\r\n]/);
  return (end < 0 ? trimmed : trimmed.slice(0, end)).trimEnd();
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
