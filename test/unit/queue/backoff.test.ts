import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../../src/queue/backoff.ts';
import { phaseOf } from '../../../src/queue/phase.ts';

const options = { baseMs: 100, maxMs: 30_000 };

describe('back-off', () => {
  it('is none before the first failure', () => {
    expect(backoffMs(0, options)).toBe(0);
  });

  it('doubles from its base up to its limit', () => {
    const delays = [1, 2, 3, 9, 10, 11].map((failures) => backoffMs(failures, options));
    expect(delays).toEqual([100, 200, 400, 25_600, 30_000, 30_000]);
  });

  it('stays at its limit however many failures there are', () => {
    fc.assert(
      fc.property(fc.integer({ min: 10, max: 1e9 }), (failures) => {
        expect(backoffMs(failures, options)).toBe(30_000);
      }),
    );
  });
});

describe('the phase of a name', () => {
  it('is the same each time and lies in [0, 1)', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        expect(phaseOf(name)).toBe(phaseOf(name));
        expect(phaseOf(name)).toBeGreaterThanOrEqual(0);
        expect(phaseOf(name)).toBeLessThan(1);
      }),
    );
  });

  it.each([
    ['numbered names', (index: number) => `vnode.base-${index}`],
    ['addresses', (index: number) => `vnode.198.51.${index >> 8}.${index & 255}`],
  ])('spreads 1000 %s evenly over ten seconds', (_, nameOf) => {
    const perSecond = new Array<number>(10).fill(0);
    for (let index = 0; index < 1000; index++) {
      const second = Math.floor(phaseOf(nameOf(index)) * 10);
      perSecond[second] = (perSecond[second] ?? 0) + 1;
    }
    expect(Math.min(...perSecond)).toBeGreaterThan(60);
    expect(Math.max(...perSecond)).toBeLessThan(150);
  });
});
