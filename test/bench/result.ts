import { isKept, promisesOf } from './promises.ts';
import type { BenchCase, Figure, Measurement } from './suite.ts';
import type { ProcessUsage } from './usage.ts';

/** What one run of a case came to, for one subject. */
export interface CaseRun {
  /** Counted from 1. */
  readonly run: number;
  /** '' where the suite compares nothing. */
  readonly subject: string;
  readonly tookSeconds: number;
  /** By key of the figure; empty when the case failed. */
  readonly values: Measurement['values'];
  readonly details: Readonly<Record<string, unknown>>;
  readonly usage: readonly ProcessUsage[];
  /** How long the bench itself was not let run at a stretch: times may be wrong by so much. */
  readonly pauseMs: number;
  /** What the machine itself took meanwhile: of two runs the one with more is not comparable. */
  readonly kernelCpuSeconds: number;
  /** Why there are no values. */
  readonly failure?: string;
}

export interface Series {
  /** In the order of the runs; those that failed, or do not have it, are left out. */
  readonly values: readonly number[];
  /** undefined: no run got so far. NaN: one of them is none. */
  readonly median: number | undefined;
}

/** Values and median are those of the first subject. */
export interface FigureResult extends Figure, Series {
  readonly key: string;
  /** Of the second subject; absent: none of its runs has this figure. */
  readonly floor?: Series;
  /** The first over the second subject, each run by itself; absent: no run has both. */
  readonly ratio?: Series;
  /** undefined: nothing is promised, or not all of it was measured. */
  readonly isKept: boolean | undefined;
}

export interface CaseResult {
  readonly name: string;
  /** Those that it runs for. */
  readonly subjects: readonly string[];
  readonly figures: readonly FigureResult[];
  /** In the order in which they ran. */
  readonly runs: readonly CaseRun[];
}

/** Where a figure of a run is read; undefined: that run has none. */
interface ReadFigure extends Figure {
  readonly key: string;
  readonly read: (run: CaseRun) => number | undefined;
}

/** Say how good the measurement was, nothing of what is measured. */
const PAUSE_KEY = 'pause';
const KERNEL_KEY = 'kernelCpu';
export const QUALITY_KEYS: readonly string[] = [PAUSE_KEY, KERNEL_KEY];

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
  {
    key: 'peakMemory',
    text: 'peak memory of the largest replica',
    unit: 'MiB',
    read: ({ usage }) => worstOf(usage.map(({ peakMib }) => peakMib).filter((mib) => mib !== undefined)),
  },
  { key: PAUSE_KEY, text: 'longest pause of the bench itself', unit: 'ms', read: ({ pauseMs }) => pauseMs },
  {
    key: KERNEL_KEY,
    text: 'CPU time of the kernel itself',
    unit: 's',
    read: ({ kernelCpuSeconds }) => kernelCpuSeconds,
  },
];

function worstOf(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : Math.max(...values);
}

/** `subjects`: of the suite; of more than two the others are only in the runs. */
export function resultOf(
  { name, figures, subjects }: Pick<BenchCase<never>, 'name' | 'figures' | 'subjects'>,
  runs: readonly CaseRun[],
  ofSuite: readonly string[] = [''],
): CaseResult {
  const ofCase = Object.entries(figures).map(
    ([key, figure]): ReadFigure => ({ key, ...figure, read: ({ values }) => values[key] }),
  );
  return {
    name,
    subjects: subjects ?? ofSuite.slice(0, 1),
    figures: [...ofCase, ...COMMON_FIGURES].map((figure) => figureResultOf(figure, runs, ofSuite)),
    runs,
  };
}

function figureResultOf(
  { read, ...figure }: ReadFigure,
  runs: readonly CaseRun[],
  [first, second]: readonly string[],
): FigureResult {
  const byRun = (subject: string | undefined): Map<number, number> => {
    const measured = runs.filter((one) => one.subject === subject && one.failure === undefined);
    const entries = measured.map((one) => [one.run, read(one)] as const);
    return new Map(entries.filter((entry): entry is [number, number] => entry[1] !== undefined));
  };
  const [own, floor] = [byRun(first), byRun(second)];
  const ratios = [...own].flatMap(([run, value]) => {
    const of = floor.get(run);
    return of === undefined ? [] : [ratioOf(value, of)];
  });
  const [series, ratio] = [seriesOf([...own.values()]), seriesOf(ratios)];
  return {
    ...figure,
    ...series,
    ...(floor.size === 0 ? {} : { floor: seriesOf([...floor.values()]) }),
    ...(ratios.length === 0 ? {} : { ratio }),
    isKept: isKept(promisesOf(figure), { value: series.median, ratio: ratio.median }),
  };
}

/** Nothing on both sides is the same on both sides. */
function ratioOf(value: number, floor: number): number {
  return value === 0 && floor === 0 ? 1 : value / floor;
}

function seriesOf(values: readonly number[]): Series {
  return { values, median: medianOf(values) };
}

/** Of an even number of values the mean of the two in the middle. NaN has no place in an order, so it is told. */
export function medianOf(values: readonly number[]): number | undefined {
  if (values.some(Number.isNaN)) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]];
  if (low === undefined || high === undefined) return undefined;
  return (low + high) / 2;
}
