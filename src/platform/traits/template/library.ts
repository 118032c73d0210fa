import { createHash } from 'node:crypto';
import { type Bytes, bytesOf, encodeRune, isAscii, runesOf } from './bytes.ts';
import { type Budget, failed, refused, Writer } from './fault.ts';
import { textOfValue } from './format.ts';
import { quoted } from './quote.ts';
import { isSpace, leadingSpaceOf } from './tree.ts';
import { toLower, toUpper } from './unicode.ts';
import { Dict, isTrue, List, type Value } from './value.ts';

/** Functions that Helm and its library sprig have, and Go does not. */

export function base64Encoded(text: Bytes): Bytes {
  return Buffer.from(text, 'latin1').toString('base64');
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Refuses what is no base64: sprig writes the error message instead of the text. */
export function base64Decoded(text: Bytes): Bytes {
  const plain = text.replace(/[\r\n]/g, '');
  if (!BASE64.test(plain)) throw refused('b64dec: the text is no base64');
  return Buffer.from(plain, 'base64').toString('latin1');
}

/** Each value in double quotes, null left out. */
export function quotedValues(budget: Budget, values: readonly Value[]): Bytes {
  const out = new Writer(budget);
  for (const value of values) {
    if (value === null) continue;
    if (out.text !== '') out.write(' ');
    out.write(quoted(budget, textOfValue(budget, value), '"', false));
  }
  return out.text;
}

/** The first of the given values, or `usual` if that is empty: null, false, 0, "", or without items. */
export function withDefault(usual: Value, given: readonly Value[]): Value {
  const [first = null] = given;
  return isTrue(first) ? first : usual;
}

export function required(message: Bytes, value: Value): Value {
  if (value === null || value === '') throw failed(message);
  return value;
}

export function indented(budget: Budget, spaces: bigint, text: Bytes): Bytes {
  if (spaces < 0n) throw failed('indent: a negative number of blanks');
  budget.checkLength(Number(spaces));
  const pad = ' '.repeat(Number(spaces));
  return pad + replacedIn(budget, '\n', `\n${pad}`, text);
}

export function upperCase(text: Bytes): Bytes {
  return isAscii(text) ? text.toUpperCase() : mapRunes(text, toUpper);
}

export function lowerCase(text: Bytes): Bytes {
  return isAscii(text) ? text.toLowerCase() : mapRunes(text, toLower);
}

function mapRunes(text: Bytes, map: (code: number) => number): Bytes {
  let mapped = '';
  for (const { code } of runesOf(text)) mapped += encodeRune(map(code));
  return mapped;
}

/** Text without space at its ends: `strings.TrimSpace`. */
export function trimmed(text: Bytes): Bytes {
  const start = leadingSpaceOf(text).length;
  let end = text.length;
  for (let width = 1; width > 0 && end > start; end -= width) width = spaceWidthBefore(text, end);
  return text.slice(start, end);
}

/** Bytes of the space that ends at a place, or 0. */
function spaceWidthBefore(text: Bytes, end: number): number {
  const last = text.charCodeAt(end - 1);
  if (last < 0x80) return last === 0x20 || (last >= 9 && last <= 13) ? 1 : 0;
  return [2, 3].find((width) => isSpace(text.slice(Math.max(0, end - width), end))) ?? 0;
}

/** Text by `strings.ReplaceAll`: an empty `old` stands in front of each character, and at the end. */
export function replacedIn(budget: Budget, old: Bytes, by: Bytes, text: Bytes): Bytes {
  const parts = old === '' ? ['', ...charactersOf(text), ''] : text.split(old);
  budget.checkLength(text.length + (parts.length - 1) * (by.length - old.length));
  budget.spend(parts.length / 8);
  return parts.join(by);
}

function charactersOf(text: Bytes): Bytes[] {
  if (isAscii(text)) return [...text];
  let at = 0;
  return [...runesOf(text)].map(({ width }) => {
    at += width;
    return text.slice(at - width, at);
  });
}

/** The parts by the names `_0`, `_1` and so on, as sprig gives them. */
export function splitBy(budget: Budget, separator: Bytes, text: Bytes): Dict {
  const parts = separator === '' ? charactersOf(text) : text.split(separator);
  budget.spend(parts.length);
  return new Dict(new Map(parts.map((part, index) => [`_${index}`, part])), true);
}

/** The items of a list as text, null left out. Another value counts as the only item. */
export function joinedBy(budget: Budget, separator: Bytes, value: Value): Bytes {
  const items = value instanceof List ? value.items : [value];
  const out = new Writer(budget);
  let isFirst = true;
  for (const item of items) {
    budget.spend();
    if (item === null) continue;
    if (!isFirst) out.write(separator);
    isFirst = false;
    out.write(textOfValue(budget, item));
  }
  return out.text;
}

/** Keys and values in turn. A last key without a value gets the empty string. */
export function dictOf(budget: Budget, values: readonly Value[]): Dict {
  const entries = new Map<Bytes, Value>();
  for (let index = 0; index < values.length; index += 2) {
    const value = values[index + 1];
    entries.set(textOfValue(budget, values[index] ?? null), value === undefined ? '' : value);
  }
  return new Dict(entries);
}

export function sha256Of(text: Bytes): Bytes {
  return bytesOf(createHash('sha256').update(text, 'latin1').digest('hex'));
}
