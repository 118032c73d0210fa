import { describe, expect, it } from 'vitest';
import { RecentSources } from '../../../../tunnels/arklet/intake.ts';

const SEED = 12_345;

/** Whether a source returns that was heard first at 0 and then at each of the times. */
function returnsAt(...seconds: readonly number[]): boolean[] {
  const sources = new RecentSources(SEED);
  sources.isReturning('b1', 0);
  return seconds.map((second) => sources.isReturning('b1', second * 1_000));
}

describe('a source', () => {
  it('that was never heard does not return', () => {
    expect(new RecentSources(SEED).isReturning('b1', 10_000)).toBe(false);
  });

  it.each([
    [3.999, false],
    [4, true],
    [12, true],
    [30.999, true],
    [31, false],
  ])('that was heard %d s ago returns: %s', (second, isReturning) => {
    expect(returnsAt(second)).toEqual([isReturning]);
  });

  it('that repeats itself faster counts from its first message', () => {
    expect(returnsAt(1, 2, 3, 4, 7, 8)).toEqual([false, false, false, true, false, true]);
  });

  it('that repeats itself each 4 s counts from its last message', () => {
    expect(returnsAt(4, 34)).toEqual([true, true]);
  });

  it.each(['1', '1'.repeat(60)])('is told from one whose name begins with another character: b%s', (rest) => {
    const sources = new RecentSources(SEED);
    sources.isReturning(`b${rest}`, 0);
    expect(sources.isReturning(`c${rest}`, 10_000)).toBe(false);
  });

  it('is known again also when the count of seconds has begun anew', () => {
    const sources = new RecentSources(SEED);
    sources.isReturning('b1', 4_095_000);
    expect(sources.isReturning('b1', 4_106_000)).toBe(true);
  });

  it('is told from 1,000 others', () => {
    const sources = new RecentSources(SEED);
    for (let index = 0; index < 1_000; index++) sources.isReturning(`b${index}`, 0);
    const strangers = Array.from({ length: 1_000 }, (_, index) => sources.isReturning(`s${index}`, 10_000));
    expect(strangers).not.toContain(true);
    const own = Array.from({ length: 1_000 }, (_, index) => sources.isReturning(`b${index}`, 10_000));
    expect(own.filter((isReturning) => isReturning).length).toBeGreaterThan(990);
  });

  it('gives its place to another one that falls on it, and neither is taken for the other', () => {
    // As many as make two of them share a place almost surely: about one pair in 2^20.
    const sources = new RecentSources(SEED);
    const names = Array.from({ length: 4_000 }, (_, index) => `x${index}`);
    for (const name of names) sources.isReturning(name, 0);
    const displaced = names.filter((name) => !sources.isReturning(name, 10_000));
    expect(displaced.length).toBeGreaterThan(0);
    expect(displaced.length).toBeLessThan(60);
  });
});
