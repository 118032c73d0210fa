import { describe, expect, it } from 'vitest';
import { costOf, IntakeLimiter, type IntakeLimits, type Sender } from '../../../../tunnels/arklet/intake.ts';
import { HTTP_INTAKE } from '../../../../tunnels/http/message-intake.ts';
import { MQTT_INTAKE } from '../../../../tunnels/mqtt/mqtt-tunnel.ts';

const LIMITS = {
  known: { burst: 5, refillMs: 100 },
  unknown: { burst: 2, refillMs: 1_000 },
  allUnknown: { burst: 2_500, refillMs: 4 },
};
const create = (limits: IntakeLimits = LIMITS): IntakeLimiter => new IntakeLimiter(limits, { now: 0, seed: 1 });

/** How many of `count` messages of one source are taken. */
function taken(limiter: IntakeLimiter, source: string, sender: Sender, count: number, now = 0): number {
  return Array.from({ length: count }).filter(() => limiter.refusalOf(source, sender, now) === undefined).length;
}

/** A message of each of `count` new sources; returns how many are taken. */
function flood(limiter: IntakeLimiter, name: string, count: number, now = 0): number {
  const sources = Array.from({ length: count }, (_, index) => `${name}-${index}`);
  return sources.filter((source) => limiter.refusalOf(source, 'Unknown', now) === undefined).length;
}

describe('IntakeLimiter', () => {
  it('limits each source by itself, and known ones less', () => {
    const limiter = create();
    expect(taken(limiter, 'a', 'Known', 10)).toBe(5);
    expect(taken(limiter, 'b', 'Unknown', 10)).toBe(2);
    expect(taken(limiter, 'c', 'Known', 10)).toBe(5);
    expect(taken(limiter, 'a', 'Known', 10, 300)).toBe(3);
    expect(limiter.refusalOf('a', 'Known', 300)).toBe('Source');
  });

  it('takes fewer messages that cost more, and one of any cost when the source owes nothing', () => {
    const limiter = create();
    const isTaken = (cost: number, now: number) => limiter.refusalOf('a', 'Known', now, cost) === undefined;
    expect([2, 2, 2, 2].map((cost) => isTaken(cost, 0))).toEqual([true, true, true, false]);
    expect([100, 200].map((now) => isTaken(100, now))).toEqual([false, true]);
    expect([10_100, 10_200].map((now) => isTaken(1, now))).toEqual([false, true]);
    expect(limiter.refusalOf('b', 'Known', 0, 1)).toBeUndefined();
  });

  it('takes fewer messages of all unknown sources together that cost more', () => {
    const limiter = create();
    const sources = Array.from({ length: 2_000 }, (_, index) => `large-${index}`);
    expect(sources.filter((source) => limiter.refusalOf(source, 'Unknown', 0, 2) === undefined)).toHaveLength(1_250);
  });

  it.each([
    [0, 1],
    [300, 1],
    [8_192, 1],
    [8_193, 2],
    [1_048_576, 128],
  ])('a message of %i bytes costs %i', (byteLength, cost) => {
    expect(costOf(byteLength)).toBe(cost);
  });

  it('takes 2,500 new sources at once and then 250 a second, and all of the known ones beside them', () => {
    const limiter = create();
    expect(flood(limiter, 'new', 10_000)).toBe(2_500);
    expect(limiter.refusalOf('another', 'Unknown', 0)).toBe('Unknown');
    expect(limiter.refusalOf('base-1', 'Known', 0)).toBeUndefined();
    expect(limiter.refusalOf('base-2', 'Asked', 0)).toBeUndefined();
    expect(flood(limiter, 'later', 10_000, 1_000)).toBe(250);
  });

  it('prefers sources that come again after an interval of heartbeats to those that come once', () => {
    const limiter = create();
    flood(limiter, 'first', 10_000);
    expect(limiter.refusalOf('honest', 'Unknown', 0)).toBe('Unknown');
    flood(limiter, 'second', 10_000, 1_000);
    expect(limiter.refusalOf('honest', 'Unknown', 1_000)).toBe('Unknown');
    flood(limiter, 'third', 10_000, 10_000);
    expect(limiter.refusalOf('stranger', 'Unknown', 10_000)).toBe('Unknown');
    expect(limiter.refusalOf('honest', 'Unknown', 10_000)).toBeUndefined();
  });

  it('takes no more than 500 at once of those either', () => {
    const limiter = create();
    flood(limiter, 'used', 10_000);
    for (const now of [20_000, 30_000]) flood(limiter, 'x', 2_500, now);
    flood(limiter, 'again', 5_000, 30_000);
    expect(flood(limiter, 'again', 5_000, 35_000)).toBe(1_250 + 500);
  });

  it('takes 100 a second of those after that', () => {
    const limiter = create();
    flood(limiter, 'a', 5_000);
    flood(limiter, 'b', 5_000, 5_000);
    expect(flood(limiter, 'a', 5_000, 10_000)).toBe(1_250 + 500);
    expect(flood(limiter, 'b', 5_000, 11_000)).toBe(250 + 100);
  });

  it('knows a source for a minute after a known base was heard from it', () => {
    const limiter = create();
    expect(limiter.isKnown('a', 0)).toBe(false);
    limiter.noteKnown('a', 90_000);
    expect([limiter.isKnown('a', 149_999), limiter.isKnown('a', 150_000), limiter.isKnown('b', 90_000)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('keeps 10,000 sources at most, and no unknown one pushes out a known one', () => {
    const limiter = create();
    taken(limiter, 'known', 'Known', 5);
    taken(limiter, 'unknown', 'Unknown', 2);
    flood(limiter, 'new', 10_000);
    expect(limiter.refusalOf('known', 'Known', 0)).toBe('Source');
    expect(limiter.refusalOf('unknown', 'Unknown', 0)).toBe('Unknown');
  });
});

describe.each([
  ['MQTT', MQTT_INTAKE, { known: [10_000, 100], unknown: [10, 1], all: [2_500, 250] }],
  ['HTTP', HTTP_INTAKE, { known: [2_500, 250], unknown: [2_500, 250], all: [10_000, 1_000] }],
] as const)('over %s', (_, limits, { known, unknown, all }) => {
  it(`the source of a known base has ${known[0]} messages at once and ${known[1]} a second`, () => {
    const limiter = create(limits);
    const taking = [0, 1_000].map((now) => taken(limiter, 'a', 'Known', 20_000, now));
    expect(taking).toEqual(known);
  });

  it(`any other source has ${unknown[0]} at once and ${unknown[1]} a second`, () => {
    const limiter = create(limits);
    const taking = [0, 1_000].map((now) => taken(limiter, 'a', 'Asked', 20_000, now));
    expect(taking).toEqual(unknown);
  });

  it(`all unknown ones together have ${all[0]} at once and ${all[1]} a second`, () => {
    const limiter = create(limits);
    expect([0, 1_000].map((now) => flood(limiter, `at ${now}`, 20_000, now))).toEqual(all);
  });
});
