import { createHash } from 'node:crypto';

/**
 * Addresses of jars may hold secrets: userinfo (`https://user:password@repo/x.jar`) and signatures in the query. No
 * status, event or log line shows them. The path stays, so that people know which jar is meant. What is not known to
 * be harmless is hidden: `***` in place of a host is better than half a password.
 */

const HIDDEN = '***';
/** Runs without characters that no URL has: they end one in a text, also inside a JSON string. */
const TOKENS = /[^\s"<>`\\]+/g;
/** What is longer is hidden as a whole: nobody reads it, and a base can send a megabyte. */
const MAX_TOKEN_LENGTH = 8_192;
/** What is longer is no host name, and the pattern below stays cheap. */
const MAX_HOST_LENGTH = 300;
/** The form of most URLs: one address without userinfo, query or fragment. */
const PLAIN_URL = /^[a-z][a-z\d+.-]*:\/\/[\w.~-]{1,253}(?::\d{1,5})?\/[^@?#:]*$/i;
const HOST_AND_PORT = /^(?:\[[\da-f:.%]*\]|[\w.~%-]*)(?::\d*)?[).,;:!'\]}]*$/i;

/** `text` without the userinfo and the query of any URL in it. Linear in the length of the text, and idempotent. */
export function redactUrls(text: string): string {
  if (!isSuspect(text)) return text;
  return text.replace(TOKENS, (token) => {
    if (!isSuspect(token)) return token;
    return token.length > MAX_TOKEN_LENGTH ? HIDDEN : redactToken(token, queryIn(token));
  });
}

/** The same for a text that is one URL as a whole, whatever characters it has. */
export function redactUrl(url: string): string {
  return redactToken(url, placeOf('?', url));
}

/**
 * The `imageID` of a container that runs a jar: its URL without secrets. Two URLs that differ in the query only may be
 * two jars, so a digest stands for the query. It leaves the userinfo out: a password can be guessed, and a new one
 * does not make another jar.
 */
export function imageIdOf(url: string): string {
  const query = placeOf('?', url);
  if (query === undefined) return redactUrl(url);
  const place = redactToken(url.slice(0, query), undefined);
  const digest = createHash('sha256')
    .update(`${place}${url.slice(query)}`)
    .digest('hex');
  return `${place}?${HIDDEN}#sha256=${digest.slice(0, DIGEST_DIGITS)}`;
}

const DIGEST_DIGITS = 12;
const REDACTED_QUERY = /^\?\*\*\*(?:#sha256=[\da-f]{12})?$/;
const WITH_DIGEST = /\?\*\*\*#sha256=[\da-f]{12}$/;

/** An `imageID` as it stands in a status: a whole URL where an earlier version of the controller wrote it. */
export function storedImageIdOf(imageID: string): string {
  return WITH_DIGEST.test(imageID) ? imageID : imageIdOf(imageID);
}

/** One slash is enough: `java.io.File` drops the other one of `https://`. */
function isSuspect(text: string): boolean {
  return text.includes(':/') || text.includes('.jar?');
}

/**
 * Position at which the query of the first URL begins, which takes the rest of the token along; undefined: there is
 * none.
 */
function queryIn(token: string): number | undefined {
  const starts = ['.jar?', ':/'].map((start) => placeOf(start, token)).filter((start) => start !== undefined);
  return placeOf('?', token, Math.min(...starts));
}

function placeOf(part: string, text: string, from?: number): number | undefined {
  const place = text.indexOf(part, from);
  return place < 0 ? undefined : place;
}

function redactToken(token: string, query: number | undefined): string {
  if (query === undefined && PLAIN_URL.test(token)) return token;
  const before = token.slice(0, query);
  const after = query === undefined ? '' : token.slice(query);
  const tail = after === '' || REDACTED_QUERY.test(after) ? after : `?${HIDDEN}`;
  // A class path has several URLs in one token.
  const [first = '', ...others] = before.split(/(:\/+)/);
  let redacted = first;
  for (let index = 0; index < others.length; index += 2) {
    const slashes = others[index] ?? '';
    redacted += slashes + redactPlace(others[index + 1] ?? '', slashes === '://');
  }
  return redacted + tail;
}

/** What follows the slashes of a URL. `isHostNeeded`: not so in `file:/home/x` and `file:///home/x`. */
function redactPlace(place: string, isHostNeeded: boolean): string {
  const end = place.search(/[/#]/);
  const authority = end < 0 ? place : place.slice(0, end);
  const at = authority.lastIndexOf('@');
  if (at >= 0) return `${HIDDEN}${place.slice(at)}`;
  if (!isHostNeeded || isHost(authority)) return place;
  // A password with a slash, or a URL that was cut inside its userinfo.
  const last = place.lastIndexOf('@');
  return last < 0 ? HIDDEN : `${HIDDEN}${place.slice(last)}`;
}

function isHost(authority: string): boolean {
  return authority === HIDDEN || (authority.length <= MAX_HOST_LENGTH && HOST_AND_PORT.test(authority));
}
