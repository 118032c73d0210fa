import { layout } from '../../samples/demo/table.ts';
import type { CaseResult, FigureResult } from './result.ts';

interface Row extends FigureResult {
  /** Of the case; '' in all rows but its first. */
  readonly caseName: string;
}

const COLUMNS = [
  { title: 'CASE', textOf: ({ caseName }: Row) => caseName, dropOrder: 0 },
  { title: 'FIGURE', textOf: ({ text }: Row) => text, dropOrder: 0 },
  { title: 'MEDIAN', textOf: ({ median, unit }: Row) => withUnit(median, unit), dropOrder: 0 },
  { title: 'PROMISED', textOf: ({ atMost }: Row) => (atMost === undefined ? '' : `≤ ${atMost}`), dropOrder: 0 },
  { title: '', textOf: ({ isKept }: Row) => (isKept === undefined ? '' : isKept ? 'kept' : 'MISSED'), dropOrder: 0 },
  { title: 'ALL VALUES', textOf: ({ values }: Row) => values.map(numberText).join(' '), dropOrder: 0 },
];

/** A line for each figure; below them the failures. */
export function tableOf(results: readonly CaseResult[]): string[] {
  const rows = results.flatMap(({ name, figures }) =>
    figures.map((figure, index): Row => ({ ...figure, caseName: index === 0 ? name : '' })),
  );
  return [...layout(COLUMNS, rows, Number.POSITIVE_INFINITY), ...failuresOf(results)];
}

function failuresOf(results: readonly CaseResult[]): string[] {
  return results.flatMap(({ name, runs }) =>
    runs.flatMap(({ run, failure }) => (failure === undefined ? [] : [`FAILED: ${name}, run ${run}: ${failure}`])),
  );
}

function withUnit(value: number | undefined, unit: string): string {
  return value === undefined ? '-' : `${numberText(value)} ${unit}`.trimEnd();
}

/** Three digits, and all of those before the point. */
export function numberText(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  return String(Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
}
