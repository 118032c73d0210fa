import { describe, expect, it } from 'vitest';
import { afterWarmUp, growthPerPodOf, hourlyGrowthOf, isLeak, LEAKED_BYTES } from '../../bench/soak/growth.ts';
import { slopeOf } from '../../bench/soak/least-squares.ts';
import type { ReplicaSample, Sample } from '../../bench/soak/sample.ts';
import { seededRandom } from '../../support/api-fault-proxy.ts';

describe('a slope by least squares', () => {
  it('is exact where nothing is noise', () => {
    const fit = slopeOf([0, 1, 2, 3].map((x) => ({ x, y: 5 + 2 * x })));
    expect(fit?.slope).toBeCloseTo(2);
    expect(fit?.error).toBeCloseTo(0);
  });

  // By hand: the residuals of 0 1 1 2 around 0.1 + 0.6 x sum up to 0.2, over 2 degrees of freedom and a spread of 5.
  it('has the standard error of a text book', () => {
    const fit = slopeOf([0, 1, 1, 2].map((y, x) => ({ x, y })));
    expect(fit?.slope).toBeCloseTo(0.6);
    expect(fit?.error).toBeCloseTo(Math.sqrt(0.2 / 2 / 5));
  });

  it('leaves out what something else explains', () => {
    const others = [3, 9, 4, 1, 8, 2];
    const fit = slopeOf(others.map((other, x) => ({ x, y: 100 * other + 2 * x, others: [other, 7] })));
    expect(fit?.slope).toBeCloseTo(2);
    expect(fit?.error).toBeCloseTo(0);
  });

  it('is none where x does not vary, or only goes with another', () => {
    expect(slopeOf([1, 2, 3].map((y) => ({ x: 4, y })))).toBeUndefined();
    expect(slopeOf([1, 2, 3, 7].map((y, x) => ({ x, y, others: [2 * x] })))).toBeUndefined();
    expect(slopeOf([])).toBeUndefined();
  });

  it('of two points has no error that could be told', () => {
    expect(slopeOf([0, 1].map((x) => ({ x, y: x })))?.error).toBe(Infinity);
  });
});

const MIB = 1024 ** 2;

function sampleOf(
  { seconds = 0, phase = 'churn' as Sample['phase'], pods = 0, churned = 0 },
  own: Partial<ReplicaSample> = {},
): Sample {
  const replica = { replica: 'a', heap: 0, code: 0, external: 0, resident: 0, sockets: 0, loopDelayP99: 0, ended: 0 };
  const world = { bases: 1, nodes: 1, pods, churned, rollouts: 0 };
  return { seconds, phase, world, replicas: [{ ...replica, gauges: {}, ...own }] };
}

/** Evenly in [-1, 1). */
const noise = seededRandom(1);
const noiseOf = (bytes: number): number => bytes * (2 * noise() - 1);

describe('growth of the heap in an hour', () => {
  /** A heap of 40 MiB, with 10 kB for each Pod that is there. */
  const hourOf = (bytesPerHour: number): Sample[] =>
    Array.from({ length: 121 }, (_, index) => {
      const [seconds, pods] = [30 * index, Math.round(100 + noiseOf(20))];
      const heap = 40 * MIB + (bytesPerHour * seconds) / 3600 + 10_000 * pods + noiseOf(100_000);
      return sampleOf({ seconds, pods }, { heap, ended: 50 * index });
    });

  it('is found below what Pods come and go with', () => {
    const { meanBytes, percentPerHour } = hourlyGrowthOf(hourOf(MIB), 'a');
    expect(percentPerHour?.slope).toBeCloseTo((100 * MIB) / meanBytes, 0);
    expect(percentPerHour?.error).toBeLessThan(0.1);
  });

  it('is none where only noise is', () => {
    const { percentPerHour } = hourlyGrowthOf(hourOf(0), 'a');
    expect(Math.abs(percentPerHour?.slope ?? NaN)).toBeLessThan(3 * (percentPerHour?.error ?? NaN));
  });

  it('counts after the warm-up, which ends when so many Pods have gone, or with half of the time', () => {
    const all = hourOf(0);
    const firstOf = (samples: readonly Sample[]): number | undefined => samples[0]?.seconds;
    expect(firstOf(afterWarmUp(all, { replica: 'a', share: 0.25 }))).toBe(900);
    expect(firstOf(afterWarmUp(all, { replica: 'a', share: 0.25, ended: 2000 }))).toBe(1200);
    expect(firstOf(afterWarmUp(all, { replica: 'a', share: 0.25, ended: 1e6 }))).toBe(1800);
    expect(afterWarmUp([sampleOf({ phase: 'rest' })], { replica: 'a', share: 0.25 })).toEqual([]);
  });
});

describe('growth of the heap for each Pod', () => {
  const burstsOf = ({ leaked = 0, noiseBytes = 0 }): Sample[] =>
    Array.from({ length: 6 }, (_, index) => {
      const churned = 1000 + 300 * index;
      // Something is made once, in the first burst.
      const once = index === 0 ? 0 : 2 * MIB;
      return sampleOf({ phase: 'calm', churned }, { heap: 40 * MIB + once + leaked * churned + noiseOf(noiseBytes) });
    });

  it('of one object is a leak', () => {
    const growth = growthPerPodOf(burstsOf({ leaked: LEAKED_BYTES, noiseBytes: 10_000 }), 'a');
    expect(growth.isSharp).toBe(true);
    expect(growth.bytes?.slope).toBeCloseTo(LEAKED_BYTES, -2);
    expect(isLeak(growth)).toBe(true);
  });

  it('is none where only noise is', () => {
    const growth = growthPerPodOf(burstsOf({ noiseBytes: 10_000 }), 'a');
    expect(growth.isSharp).toBe(true);
    expect(isLeak(growth)).toBe(false);
  });

  it('is not told where the noise is larger', () => {
    const growth = growthPerPodOf(burstsOf({ leaked: LEAKED_BYTES, noiseBytes: 1_000_000 }), 'a');
    expect(growth.isSharp).toBe(false);
    expect(isLeak(growth)).toBe(false);
  });

  it('is unknown without calm samples', () => {
    expect(growthPerPodOf([sampleOf({})], 'a')).toEqual({ bytes: undefined, isSharp: false });
  });
});
