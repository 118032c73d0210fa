import type { KeptFigure, KeptSeries } from './kept.ts';
import { type Promised, promisesOf, promiseText, usedShare } from './promises.ts';
import { withUnit } from './report.ts';

/** A figure as the picture shows it: 1 is what is promised. */
export interface PictureRow {
  readonly label: string;
  readonly own: Bar;
  readonly floor: Bar | undefined;
  /** Of what else it is compared with, in the order of the suite. */
  readonly others: readonly Bar[];
  readonly isPromised: boolean;
  readonly isMissed: boolean;
  /** The numbers in words, what was measured first. */
  readonly words: readonly string[];
}

export interface Bar {
  /** undefined: not measured. */
  readonly median: number | undefined;
  readonly values: readonly number[];
}

/** Where nothing is promised the longest value ends before the place of a limit. */
const LONGEST_WITHOUT_LIMIT = 0.75;

/** Undefined: it has neither a promise nor anything to be compared with. */
export function rowOf(figure: KeptFigure): PictureRow | undefined {
  const promises = promisesOf(figure);
  if (promises.length === 0 && !figure.floor) return undefined;
  return {
    label: figure.text,
    ...barsOf(figure, tightestOf(figure, promises)),
    isPromised: promises.length > 0,
    isMissed: figure.isKept === false,
    words: wordsOf(figure, promises),
  };
}

/** Of several promises the one that is nearest to its limit, or the furthest beyond. */
function tightestOf({ median, ratio }: KeptFigure, promises: readonly Promised[]): Promised | undefined {
  const shareOf = (promise: Promised): number => {
    const value = promise.of === 'value' ? median : ratio?.median;
    return usedShare(promise, value ?? Number.NaN);
  };
  return promises.toSorted((a, b) => compare(shareOf(b), shareOf(a)))[0];
}

/** Infinity minus Infinity is no order. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

function barsOf(figure: KeptFigure, promise: Promised | undefined): Pick<PictureRow, 'own' | 'floor' | 'others'> {
  const { floor, ratio } = figure;
  const others = Object.values(figure.others ?? {});
  if (promise?.of === 'ratio') {
    // The floor is 1 in a picture of ratios; what it scattered by is shown around that.
    const share = (value: number): number => usedShare(promise, value);
    const ofFloor = (value: number): number => share(value / (floor?.median ?? Number.NaN));
    return {
      own: barOf(ratio, share),
      floor: floor && { ...barOf(floor, ofFloor), median: share(1) },
      others: others.map((other) => barOf(other, ofFloor)),
    };
  }
  const all = [figure, ...(floor ? [floor] : []), ...others].flatMap(({ values }) => values.map((value) => value ?? 0));
  const scale = promise ?? { limit: Math.max(...all) / LONGEST_WITHOUT_LIMIT, isUpper: true };
  const share = (value: number): number => usedShare(scale, value);
  return {
    own: barOf(figure, share),
    floor: floor && barOf(floor, share),
    others: others.map((other) => barOf(other, share)),
  };
}

function barOf(series: KeptSeries | undefined, share: (value: number) => number): Bar {
  if (!series || series.values.length === 0) return { median: undefined, values: [] };
  return {
    median: share(series.median ?? Number.NaN),
    values: series.values.map((value) => share(value ?? Number.NaN)),
  };
}

function wordsOf(figure: KeptFigure, promises: readonly Promised[]): string[] {
  const { median, unit, floor, ratio, others = {}, isKept } = figure;
  const verdict = isKept === undefined ? '' : isKept ? 'kept' : 'MISSED';
  const promised = promises.length === 0 ? '' : `promised ${promises.map(promiseText).join(', ')}`;
  const own = [withUnit(median ?? undefined, unit), promised, verdict];
  const compared = floor && [
    `floor ${withUnit(floor.median ?? undefined, unit)}`,
    ratio ? `ratio ${withUnit(ratio.median ?? undefined, '')}` : '',
  ];
  const beside = Object.entries(others).map(([name, other]) => [
    `${name} ${withUnit(other.median ?? undefined, unit)}`,
  ]);
  return [own, ...(compared ? [compared] : []), ...beside].map((parts) => parts.filter(Boolean).join(' · '));
}
