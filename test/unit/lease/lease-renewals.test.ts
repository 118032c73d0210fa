import { describe, expect, it } from 'vitest';
import { firstRenewalInMs, nextRenewalInMs } from '../../../src/lease/lease.ts';

const NAMES = Array.from({ length: 2_000 }, (_, index) => `vnode.base-${index}`);

describe.each([10_000, 20_000])('the moment at which a lease is renewed, every %i ms', (intervalMs) => {
  const firstIn = (name: string, now: number): number => firstRenewalInMs(name, { now, intervalMs });
  const nextIn = (name: string, now: number): number => nextRenewalInMs(name, { now, intervalMs });
  const evenShare = NAMES.length / (intervalMs / 1_000);

  /** How many of `times` lie in the fullest second of the interval. */
  function fullestSecond(times: readonly number[]): number {
    const seconds = new Array<number>(intervalMs / 1_000).fill(0);
    for (const time of times) {
      const second = Math.floor((time % intervalMs) / 1_000);
      seconds[second] = (seconds[second] ?? 0) + 1;
    }
    return Math.max(...seconds);
  }

  it('is each lease’s own, though all were taken at once', () => {
    const taken = 123_456;
    const due = NAMES.map((name) => taken + firstIn(name, taken));
    expect(Math.min(...due)).toBeGreaterThanOrEqual(taken + 2_000);
    expect(Math.max(...due)).toBeLessThan(taken + intervalMs + 101);
    const later = NAMES.map((name, index) => (due[index] ?? 0) + nextIn(name, due[index] ?? 0));
    expect(fullestSecond(later)).toBeLessThan(1.3 * evenShare);
  });

  it('is shared by the leases of half a second', () => {
    const settled = NAMES.map((name) => {
      const due = 50_000 + firstIn(name, 50_000);
      return (due + nextIn(name, due)) % intervalMs;
    });
    expect(new Set(settled).size).toBe(intervalMs / 500);
  });

  it('comes once an interval, and does not drift, though each renewal ends a little late', () => {
    for (const name of NAMES.slice(0, 100)) {
      let now = 50_000 + firstIn(name, 50_000);
      // The first may be later than its moment, when that was too soon.
      now += nextIn(name, now);
      const begin = now;
      for (let times = 0; times < 60; times++) now += 130 + nextIn(name, now + 130);
      expect(now - begin).toBeCloseTo(60 * intervalMs, 3);
    }
  });

  it.each([0.001, 1, 99])('is not taken for the next one when a timer was %f ms early', (earlyMs) => {
    const [name = ''] = NAMES;
    const moment = 50_000 + nextIn(name, 50_000 + nextIn(name, 50_000));
    const exact = moment + nextIn(name, moment);
    expect(nextIn(name, exact - earlyMs)).toBeGreaterThan(intervalMs - 2_100);
  });

  it('is reached again within ten renewals, none of them more than 2 s early, when all were held up', () => {
    const heldUpUntil = 200_000;
    let times = NAMES.map(() => heldUpUntil);
    for (let round = 0; round < intervalMs / 2_000; round++) {
      times = times.map((time, index) => {
        const delayMs = nextIn(NAMES[index] ?? '', time);
        expect(delayMs).toBeGreaterThanOrEqual(intervalMs - 2_000);
        expect(delayMs).toBeLessThan(intervalMs + 101);
        return time + delayMs;
      });
    }
    expect(fullestSecond(times)).toBeLessThan(1.3 * evenShare);
  });
});
