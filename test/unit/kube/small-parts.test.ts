import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { microTime, renewTimeAfter, secondsTime } from '../../../src/kube/micro-time.ts';
import { quantityOf } from '../../../src/kube/quantity.ts';
import { compareResourceVersions } from '../../../src/kube/resource-version.ts';
import { WorkSlice } from '../../../src/kube/watch/work-slice.ts';
import { LruMap } from '../../../src/lru-map.ts';
import { shortened } from '../../../src/shortened.ts';
import { TokenBucket } from '../../../src/token-bucket.ts';
import { FakeClock } from '../../support/fake-clock.ts';

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
    for (let times = 0; times < 3; times++) bucket.refund();
    expect([0, 0, 0].map((now) => bucket.tryTake(now))).toEqual([true, true, false]);
  });

  it('promises tokens that are yet to come, each a while after the other', () => {
    const bucket = new TokenBucket({ burst: 1, refillMs: 100 }, 0);
    expect([bucket.reserve(0), bucket.reserve(0), bucket.reserve(0)]).toEqual([0, 100, 200]);
    expect(bucket.tryTake(299)).toBe(false);
    expect(bucket.tryTake(300)).toBe(true);
  });

  it('has nothing to wait for while there is a token', () => {
    const bucket = new TokenBucket({ burst: 1, refillMs: 100 }, 0);
    expect(bucket.waitMs(0)).toBe(0);
    bucket.tryTake(0);
    expect([bucket.waitMs(0), bucket.waitMs(40), bucket.waitMs(99.5), bucket.waitMs(100)]).toEqual([100, 60, 1, 0]);
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

describe('WorkSlice', () => {
  it('is over after 5 ms, and begins again when others had their turn', async () => {
    const clock = new FakeClock();
    const slice = new WorkSlice(clock);
    clock.advance(4);
    expect(slice.isOver()).toBe(false);
    clock.advance(1);
    expect(slice.isOver()).toBe(true);
    await slice.yield();
    expect(slice.isOver()).toBe(false);
  });
});

describe('LruMap', () => {
  it('holds as many as it has room for, and tells what it holds without a use', () => {
    const map = new LruMap<string>(2);
    for (const key of ['a', 'b']) map.getOrCreate(key, () => key);
    expect([map.get('a'), map.get('b')]).toEqual(['a', 'b']);
    map.getOrCreate('c', () => 'c');
    expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([undefined, 'b', 'c']);
  });
});

describe('renewTimeAfter', () => {
  it.each([
    ['', '2026-01-01T00:00:00.000000Z'],
    ['2025-12-31T23:59:59.999999Z', '2026-01-01T00:00:00.000000Z'],
    ['2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000001Z'],
    ['2026-01-01T00:00:00.000998Z', '2026-01-01T00:00:00.000999Z'],
    ['2026-01-01T00:00:00.000999Z', '2026-01-01T00:00:00.001000Z'],
    ['2026-01-01T00:00:59.999999Z', '2026-01-01T00:01:00.000000Z'],
    ['9998-12-31T23:59:59.000000Z', '2026-01-01T00:00:00.000000Z'],
    ['2026-01-01T00:00:01Z', '2026-01-01T00:00:00.000000Z'],
  ])('after %j is %s', (previous, renewTime) => {
    expect(renewTimeAfter(previous, new Date('2026-01-01T00:00:00Z'))).toBe(renewTime);
  });
});

describe('quantityOf', () => {
  it.each([
    ['1', 1],
    ['1n', 1e-9],
    ['1u', 1e-6],
    ['500m', 0.5],
    ['2k', 2_000],
    ['2M', 2e6],
    ['2G', 2e9],
    ['2T', 2e12],
    ['2P', 2e15],
    ['2E', 2e18],
    ['2Ki', 2_048],
    ['1Mi', 1_048_576],
    ['1Gi', 1_073_741_824],
    ['1Ti', 1_099_511_627_776],
    ['1Pi', 2 ** 50],
    ['1Ei', 2 ** 60],
    ['128e6', 128e6],
    ['1.5E3', 1_500],
    ['.5', 0.5],
    ['x', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('of %j is %s', (text, value) => {
    expect(quantityOf(text)).toBe(value);
  });
});

describe('shortened', () => {
  it.each([
    ['abc', 3, 'abc'],
    ['abcd', 3, 'ab…'],
    ['', 3, ''],
  ])('%s to %i', (text, maxLength, wanted) => {
    expect(shortened(text, maxLength)).toBe(wanted);
  });
});
