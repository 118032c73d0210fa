import type { BenchCase, Figure } from './suite.ts';
import type { ProcessUsage } from './usage.ts';

/** What one run of a case came to. */
export interface CaseRun {
  /** Counted from 1. */
  readonly run: number;
  readonly tookSeconds: number;
  /** By key of the figure; empty when the case failed. */
  readonly values: Readonly<Record<string, number>>;
  readonly details: Readonly<Record<string, unknown>>;
  readonly usage: readonly ProcessUsage[];
  /** How long the bench itself was not let run at a stretch: times may be wrong by so much. */
  readonly pauseMs: number;
  /** Why there are no values. */
  readonly failure?: string;
}

export interface FigureResult extends Figure {
  readonly key: string;
  /** In the order of the runs; those that failed are left out. */
  readonly values: readonly number[];
  /** undefined: no run got so far. */
  readonly median: number | undefined;
  /** undefined: nothing is promised, or nothing was measured. */
  readonly isKept: boolean | undefined;
}

export interface CaseResult {
  readonly name: string;
  readonly figures: readonly FigureResult[];
  readonly runs: readonly CaseRun[];
}

/** Where a figure of a run is read; undefined: that run has none. */
interface ReadFigure extends Figure {
  readonly key: string;
  readonly read: (run: CaseRun) => number | undefined;
}

/** Every case has them. Replicas differ, so the worst of each run. */
const COMMON_FIGURES: readonly ReadFigure[] = [
  {
    key: 'busiestCpu',
    text: 'CPU time of the busiest replica',
    unit: 's',
    read: ({ usage }) => worstOf(usage.map(({ cpuSeconds }) => cpuSeconds)),
  },
  {
    key: 'largestMemory',
    text: 'memory of the largest replica',
    unit: 'MiB',
    read: ({ usage }) => worstOf(usage.map(({ residentMib }) => residentMib)),
  },
  { key: 'pause', text: 'longest pause of the bench itself', unit: 'ms', read: ({ pauseMs }) => pauseMs },
];

function worstOf(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : Math.max(...values);
}

export function resultOf({ name, figures }: Pick<BenchCase<never>, 'name' | 'figures'>, runs: CaseRun[]): CaseResult {
  const ofCase = Object.entries(figures).map(
    ([key, figure]): ReadFigure => ({ key, ...figure, read: ({ values }) => values[key] ?? Number.NaN }),
  );
  return { name, figures: [...ofCase, ...COMMON_FIGURES].map((figure) => figureResultOf(figure, runs)), runs };
}

function figureResultOf({ read, ...figure }: ReadFigure, runs: readonly CaseRun[]): FigureResult {
  const measured = runs.filter(({ failure }) => failure === undefined);
  const values = measured.map(read).filter((value) => value !== undefined);
  const median = medianOf(values);
  const isKept = figure.atMost === undefined || median === undefined ? undefined : median <= figure.atMost;
  return { ...figure, values, median, isKept };
}

/** Of an even number of values the mean of the two in the middle. */
export function medianOf(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]];
  if (low === undefined || high === undefined) return undefined;
  return (low + high) / 2;
}
