import { Literal } from './value.ts';

const WORDS: ReadonlyMap<string, boolean | null> = new Map([
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
  ...casesOf('true', 'yes', 'on').map((word) => [word, true] as const),
  ...casesOf('false', 'no', 'off').map((word) => [word, false] as const),
]);

function casesOf(...words: readonly string[]): string[] {
  return words.flatMap((word) => [word, word.toUpperCase(), `${word.charAt(0).toUpperCase()}${word.slice(1)}`]);
}

const BINARY = /^[-+]?0b[01_]+$/;
const OCTAL = /^[-+]?0[0-7_]+$/;
const HEXADECIMAL = /^[-+]?0x[0-9a-fA-F_]+$/;
const DECIMAL = /^[-+]?(0|[1-9][0-9_]*)$/;
/** Base 60: `1:30` is 90. */
const SEXAGESIMAL = /^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$/;
const FLOAT = /^[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?$/;
const INFINITE = /^[-+]?\.(inf|Inf|INF)$/;
const NOT_A_NUMBER = /^\.(nan|NaN|NAN)$/;

/** What a plain scalar of YAML 1.1 is, as SnakeYAML reads it. Undefined: a string. */
export function literalOf(text: string): Literal | undefined {
  const word = WORDS.get(text);
  if (word !== undefined) return new Literal(word, text === '' ? 'null' : text);
  const number = numberOf(text);
  return number === undefined ? undefined : new Literal(number, text);
}

function numberOf(text: string): number | bigint | undefined {
  if (NOT_A_NUMBER.test(text)) return Number.NaN;
  const isNegative = text.startsWith('-');
  const magnitude = magnitudeOf(text);
  return isNegative && magnitude !== undefined ? -magnitude : magnitude;
}

function magnitudeOf(text: string): number | bigint | undefined {
  if (INFINITE.test(text)) return Number.POSITIVE_INFINITY;
  const digits = text.replace(/^[-+]/, '').replaceAll('_', '');
  if (BINARY.test(text) || HEXADECIMAL.test(text)) return digits.length > 2 ? integerOf(digits) : undefined;
  if (OCTAL.test(text)) return digits.length > 1 ? integerOf(`0o${digits.slice(1)}`) : 0;
  if (DECIMAL.test(text)) return integerOf(digits);
  if (SEXAGESIMAL.test(text)) return digits.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
  return FLOAT.test(text) ? Number(digits) : undefined;
}

function integerOf(digits: string): number | bigint {
  const number = Number(digits);
  return Number.isSafeInteger(number) ? number : BigInt(digits);
}
