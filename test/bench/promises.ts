import type { Figure } from './suite.ts';

/** One promise of a figure. */
export interface Promised {
  readonly limit: number;
  readonly isUpper: boolean;
  /** Of the number itself, or of what it is in relation to the second subject. */
  readonly of: 'value' | 'ratio';
}

export function promisesOf({ atMost, atLeast, timesFloorAtMost }: Figure): Promised[] {
  return [
    ...(atMost === undefined ? [] : [{ limit: atMost, isUpper: true, of: 'value' } as const]),
    ...(atLeast === undefined ? [] : [{ limit: atLeast, isUpper: false, of: 'value' } as const]),
    ...(timesFloorAtMost === undefined ? [] : [{ limit: timesFloorAtMost, isUpper: true, of: 'ratio' } as const]),
  ];
}

export function promiseText({ limit, isUpper, of }: Promised): string {
  return `${isUpper ? '≤' : '≥'} ${limit}${of === 'ratio' ? ' × floor' : ''}`;
}

/** The medians that promises are held against. */
export interface Medians {
  readonly value: number | undefined;
  readonly ratio: number | undefined;
}

/** All promises together: one that is missed decides, one that was not measured leaves it open. */
export function isKept(promises: readonly Promised[], medians: Medians): boolean | undefined {
  const verdicts = promises.map((promise) => {
    const median = medians[promise.of];
    if (median === undefined) return undefined;
    return promise.isUpper ? median <= promise.limit : median >= promise.limit;
  });
  if (verdicts.includes(false)) return false;
  return verdicts.length === 0 || verdicts.includes(undefined) ? undefined : true;
}

/** How much of what is allowed a number uses up: more than 1 is too much, in either direction. */
export function usedShare({ limit, isUpper }: Omit<Promised, 'of'>, value: number): number {
  const [much, allowed] = isUpper ? [value, limit] : [limit, value];
  if (Number.isNaN(value)) return Number.POSITIVE_INFINITY;
  if (much <= 0) return 0;
  return allowed <= 0 ? Number.POSITIVE_INFINITY : much / allowed;
}
