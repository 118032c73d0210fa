/**
 * A string as Go has it: each unit is one byte of its UTF-8 form. Lengths, slices, comparisons and broken characters
 * are then what they are in Go.
 */
export type Bytes = string;

export interface Rune {
  readonly code: number;
  /** Number of bytes. */
  readonly width: number;
}

/** The character that stands for a byte that is no UTF-8. */
export const REPLACEMENT = 0xfffd;
export const MAX_RUNE = 0x10ffff;
const SURROGATES = { first: 0xd800, last: 0xdfff };

const NO_ASCII = /[^\0-\x7f]/;

export function bytesOf(text: string): Bytes {
  return NO_ASCII.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text;
}

/** The text of bytes. Undefined: the bytes are no UTF-8. */
export function textOf(bytes: Bytes): string | undefined {
  if (!NO_ASCII.test(bytes)) return bytes;
  const text = Buffer.from(bytes, 'latin1').toString('utf8');
  return bytesOf(text) === bytes ? text : undefined;
}

/** The text of bytes, with a replacement character for each byte that is no UTF-8. */
export function lossyTextOf(bytes: Bytes): string {
  return textOf(bytes) ?? [...runesOf(bytes)].map(({ code }) => String.fromCodePoint(code)).join('');
}

export function isAscii(bytes: Bytes): boolean {
  return !NO_ASCII.test(bytes);
}

interface Lead {
  readonly width: number;
  readonly bits: number;
  /** The lowest code that needs this width. */
  readonly least: number;
}

function leadOf(byte: number): Lead | undefined {
  if (byte >= 0xc2 && byte <= 0xdf) return { width: 2, bits: byte & 0x1f, least: 0x80 };
  if (byte >= 0xe0 && byte <= 0xef) return { width: 3, bits: byte & 0x0f, least: 0x800 };
  if (byte >= 0xf0 && byte <= 0xf4) return { width: 4, bits: byte & 0x07, least: 0x10000 };
  return undefined;
}

const BROKEN: Rune = { code: REPLACEMENT, width: 1 };

/** The character at `at`, which is within the bytes. */
export function runeAt(bytes: Bytes, at: number): Rune {
  const first = bytes.charCodeAt(at);
  if (first < 0x80) return { code: first, width: 1 };
  const lead = leadOf(first);
  if (lead === undefined || at + lead.width > bytes.length) return BROKEN;
  let code = lead.bits;
  for (let index = at + 1; index < at + lead.width; index++) {
    const byte = bytes.charCodeAt(index);
    if ((byte & 0xc0) !== 0x80) return BROKEN;
    code = (code << 6) | (byte & 0x3f);
  }
  return code < lead.least || !isRune(code) ? BROKEN : { code, width: lead.width };
}

export function* runesOf(bytes: Bytes): Generator<Rune> {
  for (let at = 0; at < bytes.length; ) {
    const rune = runeAt(bytes, at);
    yield rune;
    at += rune.width;
  }
}

export function runeCountOf(bytes: Bytes): number {
  if (isAscii(bytes)) return bytes.length;
  let count = 0;
  for (const _ of runesOf(bytes)) count++;
  return count;
}

export function isRune(code: number): boolean {
  return code >= 0 && code <= MAX_RUNE && (code < SURROGATES.first || code > SURROGATES.last);
}

/** Bytes of a character, or of the replacement character. */
export function encodeRune(code: number): Bytes {
  if (!isRune(code)) return encodeRune(REPLACEMENT);
  if (code < 0x80) return String.fromCharCode(code);
  const last = 0x80 | (code & 0x3f);
  if (code < 0x800) return String.fromCharCode(0xc0 | (code >> 6), last);
  const third = 0x80 | ((code >> 6) & 0x3f);
  if (code < 0x10000) return String.fromCharCode(0xe0 | (code >> 12), third, last);
  return String.fromCharCode(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 0x3f), third, last);
}

export function hasBroken(bytes: Bytes): boolean {
  return textOf(bytes) === undefined;
}
