import { CASES, DIGITS, LETTERS, PRINTABLE } from './unicode-tables.ts';

/** First and last code of each range, in order. */
type Ranges = readonly (readonly [number, number])[];

function rangesOf(table: string): Ranges {
  let code = 0;
  const numbers = table.split(' ').map((word) => {
    code += Number.parseInt(word, 16);
    return code;
  });
  return Array.from({ length: numbers.length / 2 }, (_, index) => [
    numbers[2 * index] ?? 0,
    numbers[2 * index + 1] ?? 0,
  ]);
}

const [letters, digits, printable] = [LETTERS, DIGITS, PRINTABLE].map(rangesOf) as [Ranges, Ranges, Ranges];

/** Index of the range that has the code, or -1. */
function indexIn(ranges: Ranges, code: number): number {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const [first, last] = ranges[middle] ?? [0, 0];
    if (code < first) high = middle;
    else if (code > last) low = middle + 1;
    else return middle;
  }
  return -1;
}

function isIn(ranges: Ranges, code: number): boolean {
  return indexIn(ranges, code) >= 0;
}

/** Whether `unicode.IsLetter` holds, with the version of Unicode that Go has. */
export function isLetter(code: number): boolean {
  return code < 0x80 ? (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a : isIn(letters, code);
}

export function isDigit(code: number): boolean {
  return code < 0x80 ? code >= 0x30 && code <= 0x39 : isIn(digits, code);
}

export function isPrint(code: number): boolean {
  return code < 0x80 ? code >= 0x20 && code < 0x7f : isIn(printable, code);
}

/** Distances to the upper and to the lower case. Undefined: upper and lower case alternate in the range. */
type Distances = readonly [upper: number, lower: number] | undefined;

const caseEntries = CASES.split(' ').map((entry) => entry.split(',').map((word) => Number.parseInt(word, 16)));
const caseRanges: Ranges = caseEntries.map(([first = 0, length = 0]) => [first, first + length]);
const distancesOfCases: readonly Distances[] = caseEntries.map(([, , upper, lower]) =>
  upper === undefined || lower === undefined ? undefined : [upper, lower],
);

/** The code in upper case (0) or lower case (1), as Go's `unicode.To` maps it. */
function mapped(code: number, to: 0 | 1): number {
  const index = indexIn(caseRanges, code);
  const [first] = caseRanges[index] ?? [];
  if (first === undefined) return code;
  const distances = distancesOfCases[index];
  return distances === undefined ? first + (((code - first) & ~1) | to) : code + distances[to];
}

export function toUpper(code: number): number {
  return mapped(code, 0);
}

export function toLower(code: number): number {
  return mapped(code, 1);
}
