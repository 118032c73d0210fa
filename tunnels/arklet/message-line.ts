import { redactUrls } from '../../src/redact-url.ts';

const MAX_LINE_BYTES = 1024;
/** The part of the line that the root cause may take. */
const MAX_CAUSE_BYTES = 512;
/** What is read for a line: longer than the line, since hidden secrets make it shorter. A base may send a megabyte. */
const MAX_READ_LENGTH = 16 * 1024;
/** arklet's outer message where the inner one says why. */
const EMPTY_WORDS = /^(un)?install biz not success!?$/i;

/**
 * One line for people from what a base said about a command. The inner message is the more exact one, unless
 * it is a stack trace and the outer one is not. A trace's root cause is added, as its first line seldom has it.
 * Secrets of URLs are hidden.
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
  const [first = ''] = text
    .trimStart()
    .slice(0, MAX_READ_LENGTH)
    .split(/[\r\n]/, 1);
  // No part of a URL goes on: in half a URL nobody can say what is userinfo.
  const isCut = first.length === MAX_READ_LENGTH && first.includes('/');
  const line = redactUrls(isCut ? first.slice(0, first.lastIndexOf(' ') + 1) : first).slice(0, MAX_LINE_BYTES + 1);
  return cutToBytes(line.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trimEnd(), MAX_LINE_BYTES);
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
