import { type Bytes, isAscii, runesOf } from './bytes.ts';
import { type Budget, refused } from './fault.ts';
import { isDigit, isLetter } from './unicode.ts';

/** Longer keys are no keys for the YAML library when it reads its own JSON. */
const MAX_KEY = 1_000;
/** Most keys of a map that are all compared with each other. */
const MAX_COMPARED = 100;

/** The keys of a map in the order of the YAML library. Refuses those that it gives no certain order. */
export function sortedKeysOf(budget: Budget, keys: readonly Bytes[]): Bytes[] {
  budget.spend(keys.length);
  for (const key of keys) checkKey(key);
  const sorted = [...keys].sort(compareKeys);
  if (hasUncertainOrder(keys)) checkOrder(budget, sorted);
  return sorted;
}

/**
 * Whether the order of the library may have circles, so that the result depends on the order in which Go visits a map:
 * `1b`, `2`, `12` is one. They need two keys that are the same up to a digit, and go on with a digit and a letter.
 */
function hasUncertainOrder(keys: readonly Bytes[]): boolean {
  const kinds = new Map<Bytes, Kind>();
  for (const key of keys) {
    for (const [start, kind] of placesBehindDigits(key)) {
      if ((kinds.get(start) ?? kind) !== kind) return true;
      kinds.set(start, kind);
    }
  }
  return false;
}

type Kind = 'digit' | 'letter';

function kindOf(code: number): Kind | undefined {
  if (isDigit(code)) return 'digit';
  return isLetter(code) ? 'letter' : undefined;
}

/** The part of a key up to each digit, with the kind of the next character. */
function* placesBehindDigits(key: Bytes): Generator<[start: Bytes, kind: Kind]> {
  let at = 0;
  let former: Kind | undefined;
  for (const { code, width } of runesOf(key)) {
    const kind = kindOf(code);
    if (former === 'digit' && kind !== undefined) yield [key.slice(0, at), kind];
    former = kind;
    at += width;
  }
}

function checkOrder(budget: Budget, sorted: readonly Bytes[]): void {
  budget.spend(Math.min(sorted.length, MAX_COMPARED) ** 2 / 8);
  const isCertain =
    sorted.length <= MAX_COMPARED &&
    sorted.every((key, index) => sorted.slice(index + 1).every((later) => compareKeys(key, later) < 0));
  if (!isCertain) throw refused('toYaml: the library has no certain order for keys with digits and letters as here');
}

/** Most digits in a row of a key: more may exceed Go's integers. The library takes digits beyond ASCII for large ones. */
const MAX_DIGITS = { ascii: 18, others: 12 };

/** Refuses a key that the library does not read, or whose place in its order is no certain one. */
function checkKey(key: Bytes): void {
  if (key.length > MAX_KEY) throw refused(`toYaml: a key has more than ${MAX_KEY} bytes`);
  const most = isAscii(key) ? MAX_DIGITS.ascii : MAX_DIGITS.others;
  let count = 0;
  for (const { code } of runesOf(key)) {
    count = isDigit(code) ? count + 1 : 0;
    if (count > most) throw refused(`toYaml: a key has more than ${most} digits in a row`);
  }
}

/** Order of two keys: digits by their number, and letters behind other signs. */
function compareKeys(a: Bytes, b: Bytes): number {
  const [left, right] = [codesOf(a), codesOf(b)];
  if (isLess(left, right)) return -1;
  return Number(isLess(right, left));
}

function codesOf(text: Bytes): number[] {
  return [...runesOf(text)].map(({ code }) => code);
}

function isLess(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((code, index) => code !== b[index]);
  const [left, right] = [a[at], b[at]];
  if (left === undefined || right === undefined) return a.length < b.length;
  const [isLeftLetter, isRightLetter] = [isLetter(left), isLetter(right)];
  if (isLeftLetter && isRightLetter) return left < right;
  if (isLeftLetter || isRightLetter) return isRightLetter;
  const isInNumber = (left === 0x30 || right === 0x30) && isAfterNonZero(a, at);
  const [first, second] = [numberAt(a, at, isInNumber), numberAt(b, at, isInNumber)];
  if (first.number !== second.number) return first.number < second.number;
  return first.end === second.end ? left < right : first.end < second.end;
}

/** Whether the digits in front of a place have one that is not zero. */
function isAfterNonZero(codes: readonly number[], at: number): boolean {
  for (let index = at - 1; isDigit(codes[index] ?? 0); index--) if (codes[index] !== 0x30) return true;
  return false;
}

/** The number that begins at a place. */
function numberAt(codes: readonly number[], at: number, isInNumber: boolean): { number: bigint; end: number } {
  let number = isInNumber ? 1n : 0n;
  let end = at;
  for (; isDigit(codes[end] ?? 0); end++) number = number * 10n + BigInt((codes[end] ?? 0) - 0x30);
  return { number, end };
}
