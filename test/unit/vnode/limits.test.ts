import { describe, expect, it } from 'vitest';
import { ChangeLimit } from '../../../src/vnode/change-limit.ts';
import { ArrivalRate } from '../../../src/vnode/new-bases.ts';

describe('the rate of new bases', () => {
  it('is low up to a minute’s number at once, and again as that number passes', () => {
    const rate = new ArrivalRate(60, 0);
    const arrivals = Array.from({ length: 62 }, () => rate.isLow(0));
    expect(arrivals.indexOf(false)).toBe(60);
    expect([rate.isLow(1_000), rate.isLow(2_000), rate.isLow(3_001)]).toEqual([false, false, false]);
    expect([rate.isLow(5_001), rate.isLow(5_001)]).toEqual([true, false]);
  });

  it('that was far too high is forgotten a minute later', () => {
    const rate = new ArrivalRate(60, 0);
    for (let index = 0; index < 1_000; index++) rate.isLow(0);
    const arrivals = Array.from({ length: 62 }, () => rate.isLow(61_000));
    expect(arrivals.indexOf(false)).toBe(60);
  });
});

describe('what a base says of itself may change', () => {
  it('every 10 s', () => {
    const limit = new ChangeLimit(0);
    expect([0, 9_999, 10_000, 19_999, 20_000].map((now) => limit.admit(false, now))).toEqual([
      true,
      false,
      true,
      false,
      true,
    ]);
  });

  it('with three moves more, and one every minute', () => {
    const limit = new ChangeLimit(0);
    const moves = [0, 1, 2, 3, 4, 5].map((now) => limit.admit(true, now));
    expect(moves).toEqual([true, true, true, true, false, false]);
    expect([limit.admit(true, 10_003), limit.admit(true, 10_004), limit.admit(true, 20_002)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('again with a further move when a minute has passed', () => {
    const limit = new ChangeLimit(0);
    for (const now of [0, 1, 2, 3]) limit.admit(true, now);
    expect([60_001, 60_002, 60_003].map((now) => limit.admit(true, now))).toEqual([true, true, false]);
  });

  it('to another name 10 s after a move', () => {
    const limit = new ChangeLimit(0);
    expect([limit.admit(false, 0), limit.admit(true, 5_000), limit.admit(false, 14_999)]).toEqual([true, true, false]);
    expect(limit.admit(false, 15_000)).toBe(true);
  });
});
