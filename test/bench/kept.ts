import { promisesOf } from './promises.ts';
import { type CaseResult, type FigureResult, QUALITY_KEYS, type Series } from './result.ts';
import type { Figure, Sizes } from './suite.ts';

/** What `test/bench/results/<suite>.json` has: small enough that a diff of it can be read. */
export interface KeptSuite {
  readonly suite: string;
  readonly text: string;
  readonly notes?: readonly string[];
  /** The second one is the floor; each once, whatever variants it has. */
  readonly subjects: readonly string[];
  readonly cases: readonly KeptCase[];
}

/** Each with how it was measured: cases may come from different days. */
export interface KeptCase extends Measured {
  readonly name: string;
  readonly figures: readonly KeptFigure[];
  /** Of which the best counts. */
  readonly variants?: KeptVariants;
}

export interface KeptVariants {
  /** Of the figure that decides. */
  readonly key: string;
  readonly values: Readonly<Record<string, readonly (number | null)[]>>;
}

export interface Measured {
  /** ISO 8601. */
  readonly at: string;
  readonly machine: string;
  readonly runs: number;
  readonly sizes: Sizes;
}

export interface KeptSeries {
  /** null: JSON knows neither NaN nor Infinity. */
  readonly values: readonly (number | null)[];
  readonly median: number | null;
}

export interface KeptFigure extends Figure, KeptSeries {
  readonly key: string;
  readonly floor?: KeptSeries;
  readonly ratio?: KeptSeries;
  /** By name. */
  readonly others?: Readonly<Record<string, KeptSeries>>;
  readonly isKept?: boolean;
}

const MAX_COLUMNS = 120;

/** No run is missing, of no subject. */
export function isComplete({ runs, subjects }: CaseResult, expectedRuns: number): boolean {
  return runs.filter(({ failure }) => failure === undefined).length === expectedRuns * subjects.length;
}

export function keptCaseOf({ name, figures, variants }: CaseResult, measured: Measured): KeptCase {
  // What is promised is kept even when nobody could measure it: that it is missing is to be seen.
  const worthKeeping = figures.filter(
    (figure) =>
      !QUALITY_KEYS.includes(figure.key) && (figure.values.length > 0 || figure.floor || promisesOf(figure).length > 0),
  );
  const kept = { name, ...measured, figures: worthKeeping.map(keptFigureOf) };
  if (!variants) return kept;
  const values = Object.entries(variants.values).map(([variant, of]) => [variant, of.map(rounded)]);
  return { ...kept, variants: { key: variants.key, values: Object.fromEntries(values) } };
}

function keptFigureOf({ values, median, floor, ratio, others, isKept, ...figure }: FigureResult): KeptFigure {
  // JSON.stringify would leave out what is undefined; what is read is to be equal to what was written.
  return {
    ...figure,
    ...keptSeriesOf({ values, median }),
    ...(floor ? { floor: keptSeriesOf(floor) } : {}),
    ...(ratio ? { ratio: keptSeriesOf(ratio) } : {}),
    ...(others ? { others: keptOthersOf(others) } : {}),
    ...(isKept === undefined ? {} : { isKept }),
  };
}

function keptOthersOf(others: Readonly<Record<string, Series>>): Record<string, KeptSeries> {
  return Object.fromEntries(Object.entries(others).map(([name, series]) => [name, keptSeriesOf(series)]));
}

function keptSeriesOf({ values, median }: Series): KeptSeries {
  return { values: values.map(rounded), median: rounded(median) };
}

/** Four digits, and all of those before the point. */
function rounded(value: number | undefined): number | null {
  if (value === undefined || !Number.isFinite(value)) return null;
  return Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(4));
}

/** In the order of `names`; a case that was not measured now keeps what it had, one that is no more goes. */
export function merged(
  former: readonly KeptCase[],
  now: readonly KeptCase[],
  names: readonly string[],
): readonly KeptCase[] {
  return names.flatMap((name) => {
    const kept = [...now, ...former].find((one) => one.name === name);
    return kept ? [kept] : [];
  });
}

/** As `npm run format` would write it: a list is one line, or lines as full as they can be. */
export function keptText(kept: KeptSuite): string {
  const json = JSON.stringify(kept, null, 2);
  const lists = /^( *)(.*)\[\n([^[\]{}]*?)\n *\](,?)$/gm;
  const text = json.replace(lists, (whole: string, indent: string, before: string, inner: string, comma: string) => {
    const items = inner.split('\n').map((line) => line.trim().replace(/,$/, ''));
    const line = `${indent}${before}[${items.join(', ')}]${comma}`;
    if (line.length <= MAX_COLUMNS) return line;
    // Only numbers share lines.
    if (!items.every((item) => Number.isFinite(Number(item)))) return whole;
    return [`${indent}${before}[`, ...filled(items, `${indent}  `), `${indent}]${comma}`].join('\n');
  });
  return `${text}\n`;
}

function filled(items: readonly string[], indent: string): string[] {
  const lines: string[] = [];
  for (const [index, item] of items.entries()) {
    const word = index === items.length - 1 ? item : `${item},`;
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && longer.length <= MAX_COLUMNS) lines[lines.length - 1] = longer;
    else lines.push(`${indent}${word}`);
  }
  return lines;
}
