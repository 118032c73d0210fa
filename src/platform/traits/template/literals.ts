import { type Bytes, encodeRune, hasBroken, isRune, REPLACEMENT, runeAt } from './bytes.ts';
import { Halt, refused } from './fault.ts';
import type { NumberTerm } from './tree.ts';

const MAX_INT = 2n ** 63n - 1n;
const MIN_INT = -(2n ** 63n);
const MAX_UINT = 2n ** 64n - 1n;

type Numeric = Pick<NumberTerm, 'integer' | 'constant'>;

function malformed(text: Bytes): Halt {
  return new Halt('Syntax', `illegal number syntax: ${text}`);
}

/** The number that a token of the template stands for. */
export function parseNumber(text: Bytes): Numeric {
  if (text.endsWith('i')) throw refused(`the complex number ${text}: there are no complex numbers`);
  const integer = parseInteger(text);
  if (integer !== undefined) return ofInteger(text, integer);
  const float = parseDecimal(text);
  if (float === undefined) throw malformed(text);
  if (!looksLikeFloat(text)) throw new Halt('Syntax', `integer overflow: ${text}`);
  return { integer: integerOf(float), constant: float };
}

function ofInteger(text: Bytes, integer: bigint): Numeric {
  if (integer > MAX_INT) return { integer: undefined, constant: 'overflow' };
  // Go takes "-0x1e" for a float here: only "0x1e" without a sign counts as hexadecimal.
  return { integer, constant: looksLikeFloat(text) && !/^0[xX][^pP]/.test(text) ? Number(integer) : integer };
}

function looksLikeFloat(text: Bytes): boolean {
  return /[.eEpP]/.test(text);
}

function integerOf(float: number): bigint | undefined {
  if (!Number.isInteger(float)) return undefined;
  const integer = BigInt(float);
  return integer >= MIN_INT && integer <= MAX_INT ? integer : undefined;
}

const RADIXES: Readonly<Record<string, { readonly prefix: string; readonly digits: RegExp }>> = {
  b: { prefix: '0b', digits: /^[01]+$/ },
  o: { prefix: '0o', digits: /^[0-7]+$/ },
  x: { prefix: '0x', digits: /^[0-9a-fA-F]+$/ },
};

/** An integer as `strconv.ParseInt` and `ParseUint` read it with base 0. */
export function parseInteger(text: Bytes): bigint | undefined {
  const [, sign = '', digits = ''] = /^([-+]?)(.*)$/s.exec(text) ?? [];
  const magnitude = magnitudeOf(digits);
  if (magnitude === undefined || (text.includes('_') && !areUnderscoresAllowed(text))) return undefined;
  const value = sign === '-' ? -magnitude : magnitude;
  return value < MIN_INT || value > (sign === '' ? MAX_UINT : MAX_INT) ? undefined : value;
}

function magnitudeOf(digits: Bytes): bigint | undefined {
  const radix = digits.length > 2 && digits.startsWith('0') ? RADIXES[digits.charAt(1).toLowerCase()] : undefined;
  if (radix !== undefined) return bigintOf(radix.prefix, digits.slice(2).replaceAll('_', ''), radix.digits);
  const plain = digits.replaceAll('_', '');
  if (digits === '0') return 0n;
  return digits.startsWith('0') ? bigintOf('0o', plain.slice(1), /^[0-7]*$/) : bigintOf('', plain, /^[0-9]+$/);
}

function bigintOf(prefix: string, digits: string, allowed: RegExp): bigint | undefined {
  if (!allowed.test(digits)) return undefined;
  const significant = digits.replace(/^0+/, '');
  // No integer of Go has more digits, and reading many takes long.
  if (significant.length > 64) return undefined;
  return significant === '' ? 0n : BigInt(prefix + significant);
}

/** Underscores stand between digits, or between the prefix of a base and a digit. */
function areUnderscoresAllowed(text: Bytes): boolean {
  const [, prefix = '', digits = ''] = /^[-+]?(0[bBoOxX])?(.*)$/s.exec(text) ?? [];
  const isHexadecimal = prefix.toLowerCase() === '0x';
  const wrong = isHexadecimal ? /(?:[^_0-9a-fA-F])_|_(?![0-9a-fA-F])/ : /(?:[^_0-9])_|_(?![0-9])/;
  return !wrong.test(digits) && (prefix !== '' || !digits.startsWith('_'));
}

const DECIMAL = /^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/;
const HEXADECIMAL = /^([-+]?)0[xX]([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?[pP]([-+]?[0-9]+)$/;

/** A number as `strconv.ParseFloat` reads it. Undefined: it is none, or is beyond all floats. */
export function parseDecimal(text: Bytes): number | undefined {
  if (text.includes('_') && !areUnderscoresAllowed(text)) return undefined;
  const plain = text.replaceAll('_', '');
  const value = DECIMAL.test(plain) ? Number(plain) : hexadecimalOf(plain);
  return value !== undefined && Number.isFinite(value) ? value : undefined;
}

function hexadecimalOf(text: Bytes): number | undefined {
  const [, sign, whole = '', fraction = '', power = ''] = HEXADECIMAL.exec(text) ?? [];
  if (whole + fraction === '') return undefined;
  const mantissa = BigInt(`0x${whole}${fraction}`);
  const exponent = Number(power) - 4 * fraction.length;
  if (mantissa > BigInt(Number.MAX_SAFE_INTEGER) || Math.abs(exponent) > 900) {
    throw refused(`the hexadecimal number ${text} needs rounding`);
  }
  const value = Number(mantissa) * 2 ** exponent;
  if (mantissa !== 0n && value < 2 ** -1022) throw refused(`the hexadecimal number ${text} needs rounding`);
  return sign === '-' ? -value : value;
}

/** The number of a character constant, in its single quotes. */
export function parseCharacter(text: Bytes): Numeric {
  const character = unescaped(text, 1, "'");
  if (character === undefined || text.slice(character.end) !== "'") {
    throw new Halt('Syntax', `malformed character constant: ${text}`);
  }
  const integer = BigInt(character.code);
  return { integer, constant: integer };
}

/** The value of a string in double quotes or in back quotes. */
export function unquote(text: Bytes): Bytes {
  if (text.startsWith('`')) return text.slice(1, -1).replaceAll('\r', '');
  const inner = text.slice(1, -1);
  if (!inner.includes('\\') && !inner.includes('\n') && !hasBroken(inner)) return inner;
  let value = '';
  let at = 1;
  while (text[at] !== '"') {
    const character = text[at] === '\n' ? undefined : unescaped(text, at, '"');
    if (character === undefined) throw new Halt('Syntax', 'invalid syntax in a quoted string');
    value += character.isByte ? String.fromCharCode(character.code) : encodeRune(character.code);
    at = character.end;
  }
  if (at !== text.length - 1) throw new Halt('Syntax', 'invalid syntax in a quoted string');
  return value;
}

interface Character {
  readonly code: number;
  /** Whether the code is a byte, not a character. */
  readonly isByte: boolean;
  readonly end: number;
}

const SIMPLE: Readonly<Record<string, number>> = { a: 7, b: 8, f: 12, n: 10, r: 13, t: 9, v: 11, '\\': 92 };
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** The character or the escape sequence at `at`. Undefined: it is malformed. */
function unescaped(text: Bytes, at: number, quote: string): Character | undefined {
  const first = text[at];
  if (first === undefined || first === quote) return undefined;
  if (first !== '\\') {
    const { code, width } = runeAt(text, at);
    return { code, isByte: code < 0x80, end: at + width };
  }
  const letter = text[at + 1] ?? '';
  const end = at + 2;
  if (letter === quote) return { code: letter.charCodeAt(0), isByte: true, end };
  if (Object.hasOwn(SIMPLE, letter)) return { code: SIMPLE[letter] ?? REPLACEMENT, isByte: true, end };
  if (Object.hasOwn(HEX_DIGITS, letter)) return hexEscape(text, letter, end);
  const octal = /[0-3][0-7]{2}/y;
  octal.lastIndex = at + 1;
  const digits = octal.exec(text)?.[0];
  return digits === undefined ? undefined : { code: Number.parseInt(digits, 8), isByte: true, end: at + 4 };
}

function hexEscape(text: Bytes, letter: string, start: number): Character | undefined {
  const end = start + (HEX_DIGITS[letter] ?? 0);
  const digits = text.slice(start, end);
  if (digits.length < end - start || !/^[0-9a-fA-F]+$/.test(digits)) return undefined;
  const code = Number.parseInt(digits, 16);
  if (letter === 'x') return { code, isByte: true, end };
  return isRune(code) ? { code, isByte: code < 0x80, end } : undefined;
}
