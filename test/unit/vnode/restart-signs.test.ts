import { describe, expect, it } from 'vitest';
import { isOffBeat, isOfKnownProcess, isOtherProcess } from '../../../src/vnode/restart-signs.ts';

describe('a heartbeat over HTTP, expected every 12 s', () => {
  it.each([
    [9_999, true],
    [10_000, false],
    [12_000, false],
    [14_000, false],
    [14_001, true],
    [0, true],
  ])('that comes %d ms after the last one is at an odd moment: %s', (afterMs, isOdd) => {
    expect(isOffBeat(5_000, 5_000 + afterMs)).toBe(isOdd);
  });
});

describe('a run time', () => {
  const before = { seconds: 100, heardAt: 1_000_000 };

  it.each([
    [99, false],
    [98, true],
  ])('of 100 s and then of %d s is of another process: %s', (seconds, isOther) => {
    expect(isOtherProcess(before, seconds, undefined)).toBe(isOther);
  });

  it.each([
    ['as its process would have', 160, false],
    ['with a second less than its process, which is rounding', 159, false],
    ['of a process that started later than the first answer allows', 158, true],
  ])('that goes on for a minute %s', (_, seconds, isOther) => {
    expect(isOtherProcess(before, seconds, 1_060_000)).toBe(isOther);
  });

  it('that is larger says nothing while it is not known when the base was asked', () => {
    expect(isOtherProcess(before, 101, undefined)).toBe(false);
  });
});

describe('a query for the baseline is of the process that is known', () => {
  it.each([
    ['when it was sent before the first message', 999, true],
    ['when it was sent at the same moment', 1_000, true],
    ['not when it was sent later', 1_001, false],
  ])('%s', (_, askedForAt, isKnown) => {
    expect(isOfKnownProcess(askedForAt, 1_000)).toBe(isKnown);
  });

  it('not without a time', () => {
    expect([isOfKnownProcess(undefined, undefined), isOfKnownProcess(undefined, 1_000)]).toEqual([false, false]);
  });
});
