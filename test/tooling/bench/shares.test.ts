import { describe, expect, it } from 'vitest';
import { fewestMoves, isBalanced, ratioOf } from '../../bench/sharding/shares.ts';

describe('shares of leases', () => {
  it.each([
    [[100, 100, 100], 1],
    [[115, 100], 1.15],
    [[10, 0], Infinity],
  ])('%j: the most over the fewest is %s', (counts, ratio) => {
    expect(ratioOf(counts)).toBeCloseTo(ratio);
  });

  it.each([
    [[100, 100, 100, 0], 75],
    [[98, 103, 99, 0], 75],
    [[10, 10, 10, 0], 7],
    [[75, 75, 75, 75], 0],
    [[11, 10], 0],
    [[12, 10], 1],
    [[5, 0, 0], 3],
  ])('%j are shared with %i moves at least', (counts, moves) => {
    expect(fewestMoves(counts)).toBe(moves);
  });

  it.each([
    [[100, 105, 95], false],
    [[100, 102, 98], true],
    [[10, 11, 10], true],
    [[9, 11, 10], false],
  ])('%j are balanced: %s', (counts, balanced) => {
    expect(isBalanced(counts)).toBe(balanced);
  });
});
