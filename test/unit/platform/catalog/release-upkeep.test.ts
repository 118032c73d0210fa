import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { platformConfigStatus } from '../../../../src/platform/catalog/platform-config/platform-config.ts';
import {
  moduleReleaseStatus,
  releasesInUse,
  releasesToPrune,
} from '../../../../src/platform/catalog/release/release-upkeep.ts';

const image = 'https://jars.example.com/cart-1.0.0-ark-biz.jar';
const NOW = '2026-05-01T00:00:00Z';
const published = (...ids: string[]) => ({ releases: ids.map((id) => ({ id, image })) });

describe('releases in use', () => {
  it('are those that a Module asks for, runs, and ran, and those of its Pods', () => {
    const revision = (id: string, number: number) => ({ revision: number, id, image, time: NOW });
    const module = {
      spec: { release: { id: 'wanted' } },
      status: {
        release: { id: 'runs', image, time: NOW },
        history: [revision('runs', 2), revision('ran', 1)],
      } as never,
    };
    expect(releasesInUse({ module, ofPods: ['of-a-pod', 'runs'] })).toEqual(['of-a-pod', 'ran', 'runs', 'wanted']);
    expect(releasesInUse({ module: undefined, ofPods: ['of-a-pod'] })).toEqual(['of-a-pod']);
  });

  it('stand in the status with the time at which each release was first seen; what is not published does not', () => {
    const module = { spec: { release: { id: 'r2' } } };
    const before = { firstSeen: { r1: '2026-01-01T00:00:00Z', gone: '2025-01-01T00:00:00Z' } };
    expect(moduleReleaseStatus({ spec: published('r1', 'r2'), before, module, ofPods: ['r9'], now: NOW })).toEqual({
      firstSeen: { r1: '2026-01-01T00:00:00Z', r2: NOW },
      inUse: ['r2'],
      newest: 'r2',
    });
    expect(moduleReleaseStatus({ spec: published(), before, module, ofPods: [], now: NOW })).toEqual({});
  });
});

describe('the newest release', () => {
  const newestOf = (releases: { id: string; time?: string }[], firstSeen: Record<string, string> = {}) => {
    const spec = { releases: releases.map((release) => ({ image, ...release })) };
    return moduleReleaseStatus({ spec, before: { firstSeen }, module: undefined, ofPods: [], now: NOW }).newest;
  };

  it('is that with the latest time, wherever it stands in the list', () => {
    const [old, recent] = [
      { id: 'old', time: '2026-01-01T00:00:00Z' },
      { id: 'new', time: '2026-03-01T00:00:00Z' },
    ] as const;
    expect([newestOf([old, recent]), newestOf([recent, old])]).toEqual(['new', 'new']);
  });

  it('is that which was first seen last, where none has a time', () => {
    const seen = { r1: '2026-03-01T00:00:00Z', r2: '2026-02-01T00:00:00Z' };
    expect(newestOf([{ id: 'r1' }, { id: 'r2' }], seen)).toBe('r1');
    expect(newestOf([{ id: 'r3' }, { id: 'r1' }, { id: 'r2' }], seen)).toBe('r3');
  });

  it('is the last one of a list that is published at once', () => {
    expect(newestOf([{ id: 'r1' }, { id: 'r2' }])).toBe('r2');
  });
});

describe('releases beyond the limit', () => {
  it('are the oldest by their own time, else by the time at which they were first seen, else by their place', () => {
    const spec = {
      releases: [
        { id: 'new', image, time: '2026-03-01T00:00:00Z' },
        { id: 'old', image, time: '2026-01-01T00:00:00Z' },
        { id: 'seen', image },
        { id: 'unknown', image },
      ],
    };
    const status = { firstSeen: { seen: '2026-02-01T00:00:00Z', new: '2020-01-01T00:00:00Z' } };
    expect([4, 3, 2, 1].map((limit) => releasesToPrune(spec, status, limit))).toEqual([
      [],
      ['unknown'],
      ['unknown', 'old'],
      ['unknown', 'old', 'seen'],
    ]);
  });

  it('are never the default, nor in use, and leave the others in their order: whatever the limit', () => {
    const ids = fc.uniqueArray(fc.constantFrom(...'abcdefg'), { minLength: 1 });
    fc.assert(
      fc.property(ids, fc.subarray([...'abc']), fc.nat(7), (all, inUse, limit) => {
        const spec = { ...published(...all), default: all[0] as string };
        const pruned = releasesToPrune(spec, { inUse }, limit);
        expect(pruned).not.toContain(all[0]);
        expect(pruned.filter((id) => inUse.includes(id))).toEqual([]);
        const kept = new Set([all[0], ...inUse.filter((id) => all.includes(id))]);
        expect(all.length - pruned.length).toBe(Math.max(Math.min(limit, all.length), kept.size));
      }),
    );
  });
});

describe('the status of a PlatformConfig', () => {
  it('has each application once, with its business where there is one of that name', () => {
    const businesses = [{ name: 'retail', show: 'Retail' }];
    const apps = [
      { name: 'shop', business: 'retail' },
      { name: 'stock', business: 'nothing' },
      { name: 'unused', business: 'retail' },
    ];
    expect(
      platformConfigStatus({ generation: 3, spec: { businesses, apps } }, ['stock', 'shop', 'shop', 'pay']),
    ).toEqual({
      observedGeneration: 3,
      apps: [
        { name: 'pay', business: '' },
        { name: 'shop', business: 'retail' },
        { name: 'stock', business: '' },
      ],
    });
  });

  it('has 256 applications at most', () => {
    const used = Array.from({ length: 300 }, (_, index) => `app${1000 + index}`);
    expect(platformConfigStatus({ generation: 1, spec: {} }, used).apps).toHaveLength(256);
  });
});
