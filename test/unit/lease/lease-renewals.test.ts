import { describe, expect, it } from 'vitest';
import { firstRenewalInMs, nextRenewalInMs } from '../../../src/lease/lease.ts';

const NAMES = Array.from({ length: 2_000 }, (_, index) => `vnode.base-${index}`);
const INTERVAL_MS = 10_000;

/** How many of `times` lie in the fullest second of the interval. */
function fullestSecond(times: readonly number[]): number {
  const seconds = new Array<number>(10).fill(0);
  for (const time of times) {
    const second = Math.floor((time % INTERVAL_MS) / 1_000);
    seconds[second] = (seconds[second] ?? 0) + 1;
  }
  return Math.max(...seconds);
}

describe('the moment at which a lease is renewed', () => {
  it('is each lease’s own, though all were taken at once', () => {
    const taken = 123_456;
    const due = NAMES.map((name) => taken + firstRenewalInMs(name, taken));
    expect(Math.min(...due)).toBeGreaterThanOrEqual(taken + 2_000);
    expect(Math.max(...due)).toBeLessThan(taken + INTERVAL_MS + 101);
    const later = NAMES.map((name, index) => (due[index] ?? 0) + nextRenewalInMs(name, due[index] ?? 0));
    expect(fullestSecond(later)).toBeLessThan(260);
  });

  it('comes once an interval, and does not drift, though each renewal ends a little late', () => {
    for (const name of NAMES.slice(0, 100)) {
      let now = 50_000 + firstRenewalInMs(name, 50_000);
      // The first may be later than its moment, when that was too soon.
      now += nextRenewalInMs(name, now);
      const begin = now;
      for (let times = 0; times < 60; times++) now += 130 + nextRenewalInMs(name, now + 130);
      expect(now - begin).toBeCloseTo(60 * INTERVAL_MS, 3);
    }
  });

  it.each([0.001, 1, 99])('is not taken for the next one when a timer was %f ms early', (earlyMs) => {
    const [name = ''] = NAMES;
    const moment = 50_000 + nextRenewalInMs(name, 50_000 + nextRenewalInMs(name, 50_000));
    const exact = moment + nextRenewalInMs(name, moment);
    expect(nextRenewalInMs(name, exact - earlyMs)).toBeGreaterThan(7_900);
  });

  it('is reached again within five renewals, none of them more than 2 s early, when all were held up', () => {
    const heldUpUntil = 200_000;
    let times = NAMES.map(() => heldUpUntil);
    for (let round = 0; round < 5; round++) {
      times = times.map((time, index) => {
        const delayMs = nextRenewalInMs(NAMES[index] ?? '', time);
        expect(delayMs).toBeGreaterThanOrEqual(8_000);
        expect(delayMs).toBeLessThan(INTERVAL_MS + 101);
        return time + delayMs;
      });
    }
    expect(fullestSecond(times)).toBeLessThan(260);
  });
});
