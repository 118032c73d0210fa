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

/** Of what stands beside the floor. */
function columnOfOther(name: string): Column {
  return {
    title: name.toUpperCase(),
    textOf: ({ others, unit }) => (others?.[name] ? withUnit(others[name].median, unit) : ''),
    dropOrder: 0,
  };
}

/** A line for each figure; below them variants of which the best counts, and the failures. */
export function tableOf(results: readonly CaseResult[]): string[] {
  const rows = results.flatMap(({ name, figures }) =>
    figures.map((figure, index): Row => ({ ...figure, caseName: index === 0 ? name : '' })),
  );
  const comparison = rows.some(({ floor }) => floor) ? COMPARISON : [];
  const others = new Set(rows.flatMap((row) => Object.keys(row.others ?? {})));
  const columns = [...FIGURE, ...comparison, ...[...others].map(columnOfOther), ...VERDICT];
  return [...layout(columns, rows, Number.POSITIVE_INFINITY), ...variantsOf(results), ...failuresOf(results)];
}

function variantsOf(results: readonly CaseResult[]): string[] {
  return results.flatMap(({ name, variants, figures }) => {
    if (!variants) return [];
    const { text = '', unit = '' } = figures.find(({ key }) => key === variants.key) ?? {};
    const measured = Object.entries(variants.values).filter(([, values]) => values.length > 0);
    if (measured.length === 0) return [];
    const words = measured.map(([variant, values]) => `${variant}: ${values.map(numberText).join(' ')}`);
    return [`BEST OF  ${name}  ${text} (${unit})  ${words.join(', ')}`];
  });
}

function failuresOf(results: readonly CaseResult[]): string[] {
  return results.flatMap(({ name, runs }) =>
    runs.flatMap(({ run, subject, failure }) =>
      failure === undefined ? [] : [`FAILED: ${[name, subject].filter(Boolean).join(', ')}, run ${run}: ${failure}`],
    ),
  );
}

function allValuesOf({ values, floor, others = {} }: Row): string {
  const textOf = (series: Series['values']): string => series.map(numberText).join(' ');
  const columns = [{ values }, ...(floor ? [floor] : []), ...Object.values(others)];
  return columns.map((series) => textOf(series.values)).join(' | ');
}

export function withUnit(value: number | undefined, unit: string): string {
  return value === undefined ? '-' : `${numberText(value)} ${unit}`.trimEnd();
}

/** Three digits, and all of those before the point. */
export function numberText(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  return String(Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
}
