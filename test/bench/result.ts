import { isKept, promisesOf } from './promises.ts';
import { type BenchCase, columnOf, columnsOf, type Figure, type Measurement } from './suite.ts';
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
  /** Of the floor; absent: none of its runs has this figure. */
  readonly floor?: Series;
  /** The first subject over the floor, each run by itself; absent: no run has both. */
  readonly ratio?: Series;
  /** Of what else it is compared with, by name; absent: no run of any has this figure. */
  readonly others?: Readonly<Record<string, Series>>;
  /** undefined: nothing is promised, or not all of it was measured. */
  readonly isKept: boolean | undefined;
}

/** A subject that ran in several variants. */
export interface Variants {
  /** Of the figure that decides: the lowest value of a run is the best. */
  readonly key: string;
  /** By variant. */
  readonly values: Readonly<Record<string, readonly number[]>>;
}

export interface CaseResult {
  readonly name: string;
  /** Those that it runs for. */
  readonly subjects: readonly string[];
  readonly figures: readonly FigureResult[];
  /** Of which the best counts in `figures`; absent: there are none. */
  readonly variants?: Variants;
  /** All of them, in the order in which they ran. */
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

export function resultOf(
  { name, figures, subjects }: Pick<BenchCase<never>, 'name' | 'figures' | 'subjects'>,
  runs: readonly CaseRun[],
  ofSuite: readonly string[] = [''],
): CaseResult {
  const ofCase = Object.entries(figures).map(
    ([key, figure]): ReadFigure => ({ key, ...figure, read: ({ values }) => values[key] }),
  );
  const ofSubjects = subjects ?? ofSuite.slice(0, 1);
  const variants = variantsOf(ofSubjects, ofCase[0], runs);
  const best = bestRuns(runs, ofCase[0]);
  return {
    name,
    subjects: ofSubjects,
    figures: [...ofCase, ...COMMON_FIGURES].map((figure) => figureResultOf(figure, best, columnsOf(ofSuite))),
    ...(variants ? { variants } : {}),
    runs,
  };
}

/**
 * Of the variants of a subject the one that was best in that run, with all of its figures: the first figure of the case
 * is the one that decides, and less of it is better.
 */
function bestRuns(runs: readonly CaseRun[], decisive: ReadFigure | undefined): readonly CaseRun[] {
  const decisiveOf = (run: CaseRun): number => {
    const value = decisive?.read(run);
    return value === undefined || Number.isNaN(value) ? Number.POSITIVE_INFINITY : value;
  };
  const best = new Map<string, CaseRun>();
  for (const run of runs) {
    if (run.failure !== undefined) continue;
    const key = `${columnOf(run.subject)} ${run.run}`;
    const before = best.get(key);
    if (before === undefined || decisiveOf(run) < decisiveOf(before)) best.set(key, run);
  }
  return [...best.values()];
}

function variantsOf(
  subjects: readonly string[],
  decisive: ReadFigure | undefined,
  runs: readonly CaseRun[],
): Variants | undefined {
  const variants = subjects.filter((subject) => subject !== columnOf(subject));
  if (variants.length < 2 || !decisive) return undefined;
  const valuesOf = (variant: string): number[] =>
    runs.flatMap((run) => {
      const value = run.subject === variant && run.failure === undefined ? decisive.read(run) : undefined;
      return value === undefined ? [] : [value];
    });
  return { key: decisive.key, values: Object.fromEntries(variants.map((variant) => [variant, valuesOf(variant)])) };
}

function figureResultOf(
  { read, ...figure }: ReadFigure,
  runs: readonly CaseRun[],
  [first, second, ...more]: readonly string[],
): FigureResult {
  const byRun = (subject: string | undefined): Map<number, number> => {
    const measured = runs.filter((one) => subject !== undefined && columnOf(one.subject) === subject);
    const entries = measured.map((one) => [one.run, read(one)] as const);
    return new Map(entries.filter((entry): entry is [number, number] => entry[1] !== undefined));
  };
  const [own, floor] = [byRun(first), byRun(second)];
  const ratios = [...own].flatMap(([run, value]) => {
    const of = floor.get(run);
    return of === undefined ? [] : [ratioOf(value, of)];
  });
  const [series, ratio] = [seriesOf([...own.values()]), seriesOf(ratios)];
  const others = more.flatMap((name) => {
    const of = byRun(name);
    return of.size === 0 ? [] : [[name, seriesOf([...of.values()])] as const];
  });
  return {
    ...figure,
    ...series,
    ...(floor.size === 0 ? {} : { floor: seriesOf([...floor.values()]) }),
    ...(ratios.length === 0 ? {} : { ratio }),
    ...(others.length === 0 ? {} : { others: Object.fromEntries(others) }),
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
