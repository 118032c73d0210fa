import { layout } from '../../samples/demo/table.ts';
import { promisesOf, promiseText } from './promises.ts';
import type { CaseResult, FigureResult, Series } from './result.ts';

interface Row extends FigureResult {
  /** Of the case; '' in all rows but its first. */
  readonly caseName: string;
}

interface Column {
  readonly title: string;
  readonly textOf: (row: Row) => string;
  readonly dropOrder: number;
}

const FIGURE: readonly Column[] = [
  { title: 'CASE', textOf: ({ caseName }) => caseName, dropOrder: 0 },
  { title: 'FIGURE', textOf: ({ text }) => text, dropOrder: 0 },
  { title: 'MEDIAN', textOf: ({ median, unit }) => withUnit(median, unit), dropOrder: 0 },
];
const COMPARISON: readonly Column[] = [
  { title: 'FLOOR', textOf: ({ floor, unit }) => (floor ? withUnit(floor.median, unit) : ''), dropOrder: 0 },
  { title: 'RATIO', textOf: ({ ratio }) => (ratio ? withUnit(ratio.median, '') : ''), dropOrder: 0 },
];
const VERDICT: readonly Column[] = [
  { title: 'PROMISED', textOf: (row) => promisesOf(row).map(promiseText).join(', '), dropOrder: 0 },
  { title: '', textOf: ({ isKept }) => (isKept === undefined ? '' : isKept ? 'kept' : 'MISSED'), dropOrder: 0 },
  { title: 'ALL VALUES', textOf: allValuesOf, dropOrder: 0 },
];

/** A line for each figure; below them the failures. */
export function tableOf(results: readonly CaseResult[]): string[] {
  const rows = results.flatMap(({ name, figures }) =>
    figures.map((figure, index): Row => ({ ...figure, caseName: index === 0 ? name : '' })),
  );
  const comparison = rows.some(({ floor }) => floor) ? COMPARISON : [];
  return [...layout([...FIGURE, ...comparison, ...VERDICT], rows, Number.POSITIVE_INFINITY), ...failuresOf(results)];
}

function failuresOf(results: readonly CaseResult[]): string[] {
  return results.flatMap(({ name, runs }) =>
    runs.flatMap(({ run, subject, failure }) =>
      failure === undefined ? [] : [`FAILED: ${[name, subject].filter(Boolean).join(', ')}, run ${run}: ${failure}`],
    ),
  );
}

function allValuesOf({ values, floor }: Row): string {
  const textOf = (series: Series['values']): string => series.map(numberText).join(' ');
  return floor ? `${textOf(values)} | ${textOf(floor.values)}` : textOf(values);
}

export function withUnit(value: number | undefined, unit: string): string {
  return value === undefined ? '-' : `${numberText(value)} ${unit}`.trimEnd();
}

/** Three digits, and all of those before the point. */
export function numberText(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  return String(Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
}
