import { describe, expect, it } from 'vitest';
import { restMs } from '../../../samples/control-plane/poll.ts';

describe('the rest between two checks', () => {
  it.each([
    ['is the interval after a quick check', { tookMs: 10, leftMs: 60_000 }, 100],
    ['grows with the time that a check takes', { tookMs: 80, leftMs: 60_000 }, 320],
    ['is a second at most', { tookMs: 5_000, leftMs: 60_000 }, 1_000],
    ['ends at the deadline', { tookMs: 200, leftMs: 300 }, 300],
    ['is never shorter than the interval', { tookMs: 200, leftMs: 7 }, 100],
  ])('%s', (_promise, check, expected) => {
    expect(restMs({ intervalMs: 100, restFactor: 4, ...check })).toBe(expected);
  });

  it('is the interval where no factor is given', () => {
    expect(restMs({ tookMs: 5_000, leftMs: 60_000 })).toBe(25);
  });
});
