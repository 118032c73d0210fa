import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { microTime, secondsTime } from '../../../src/kube/micro-time.ts';
import { compareResourceVersions } from '../../../src/kube/resource-version.ts';
import { LruMap } from '../../../src/lru-map.ts';
import { TokenBucket } from '../../../src/token-bucket.ts';

describe('microTime and secondsTime', () => {
  it.each([
    ['2026-11-21T08:09:10.123Z', '2026-11-21T08:09:10.123000Z', '2026-11-21T08:09:10Z'],
    ['2026-11-21T08:09:10Z', '2026-11-21T08:09:10.000000Z', '2026-11-21T08:09:10Z'],
    ['2026-12-31T23:59:59.999Z', '2026-12-31T23:59:59.999000Z', '2026-12-31T23:59:59Z'],
  ])('write %s as %s and %s', (date, micro, seconds) => {
    expect([microTime(new Date(date)), secondsTime(new Date(date))]).toEqual([micro, seconds]);
  });
});

describe('compareResourceVersions', () => {
  it('orders decimal numbers of any length', () => {
    const version = fc.bigInt({ min: 0n, max: 10n ** 40n });
    fc.assert(
      fc.property(version, version, (a, b) => {
        const sign = Math.sign(compareResourceVersions(String(a), String(b)));
        expect(sign).toBe(a === b ? 0 : a < b ? -1 : 1);
      }),
    );
  });
});

describe('LruMap', () => {
  it('forgets what was used least recently', () => {
    const map = new LruMap<number>(2);
    let made = 0;
    const get = (key: string): number => map.getOrCreate(key, () => ++made);
    expect([get('a'), get('b'), get('a'), get('c'), get('a'), get('b')]).toEqual([1, 2, 1, 3, 1, 4]);
  });
});

describe('TokenBucket', () => {
  it('lets a burst through and then one each interval, and saves up no more than the burst', () => {
    const bucket = new TokenBucket({ burst: 2, refillMs: 100 }, 0);
    const taken = [0, 0, 0, 99, 100, 100, 1000, 1000, 1000].map((now) => bucket.tryTake(now));
    expect(taken).toEqual([true, true, false, false, true, false, true, true, false]);
  });

  it('takes a token back, and holds no more than the burst', () => {
    const bucket = new TokenBucket({ burst: 2, refillMs: 100 }, 0);
    bucket.tryTake(0);
    for (let times = 0; times < 3; times++) bucket.giveBack();
    expect([0, 0, 0].map((now) => bucket.tryTake(now))).toEqual([true, true, false]);
  });

  it('tells how long to wait, and is ready then', () => {
    fc.assert(
      fc.property(fc.nat(5000), fc.integer({ min: 1, max: 1000 }), (now, refillMs) => {
        const bucket = new TokenBucket({ burst: 1, refillMs }, 0);
        bucket.tryTake(now);
        const wait = bucket.waitMs(now + 0.3);
        expect(wait).toBeGreaterThan(0);
        expect(bucket.waitMs(now + 0.3 + wait)).toBeLessThanOrEqual(1);
      }),
    );
  });
});
