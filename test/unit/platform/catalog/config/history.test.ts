import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type History, historyOf, presentVersion } from '../../../../../src/platform/catalog/config/history.ts';
import type { ConfigVersion } from '../../../../../src/platform/catalog/config/module-config.ts';
import { digestOf, sourceOf, versionIdOf } from '../../../../../src/platform/catalog/config/version.ts';
import { runsOf } from '../../../../support/property-runs.ts';

const START = Date.UTC(2026, 10, 28, 23, 59, 58);

/** A ModuleConfig whose controller does what `historyOf` decides. */
class Config {
  versions: readonly ConfigVersion[] = [];
  inForce: string | undefined;
  now = START;
  content = 'a';
  parent: string | undefined;
  isFaulty = false;
  activation: 'Automatic' | 'Manual' = 'Automatic';
  wanted = '';
  inUse = new Set<string>();
  limit = 10;
  last!: History;

  reconcile(): History {
    const parents = this.parent === undefined ? [] : [`p@${this.parent}`];
    const instances = {};
    const digest = digestOf({ content: `${this.parent} ${this.content}`, instances, parents });
    const source = sourceOf({ content: this.content, instances, parent: this.parent === undefined ? undefined : 'p' });
    const present = this.isFaulty
      ? { fault: { reason: 'ContentInvalid' as const, message: 'line 1: wrong' } }
      : presentVersion(this.versions, { digest, source, size: 1 }, { now: this.now });
    const { activation, wanted, inUse, limit, now, versions, inForce } = this;
    this.last = historyOf({ versions, inForce, present, activation, wanted, inUse, limit, now });
    this.versions = this.last.versions;
    this.inForce = this.last.inForce;
    return this.last;
  }

  /** The id in force after this content was applied. */
  apply(content: string): string | undefined {
    this.now += 1000;
    this.content = content;
    return this.reconcile().inForce;
  }
}

describe('automatic activation', () => {
  it('has new content in force at once, and the same content as the same version', () => {
    const config = new Config();
    const [b, a, again] = [config.apply('b'), config.apply('a'), config.apply('b')];
    expect([again, config.apply('a')]).toEqual([b, a]);
    expect(config.versions.map(({ id }) => id)).toEqual([a, b]);
    const times = config.versions.map(({ time, lastActivated }) => [time, lastActivated]);
    expect(times).toEqual([
      ['2026-11-29T00:00:00.000Z', '2026-11-29T00:00:02.000Z'],
      ['2026-11-28T23:59:59.000Z', '2026-11-29T00:00:01.000Z'],
    ]);
    expect(config.last.state).toEqual({ isReady: true, reason: 'Active', message: 'the content is active' });
  });

  it('changes nothing without a change', () => {
    const config = new Config();
    config.apply('a');
    const { versions } = config;
    config.now += 5000;
    config.reconcile();
    expect(config.versions).toEqual(versions);
  });

  it('keeps what is in force while the content is wrong', () => {
    const config = new Config();
    const a = config.apply('a');
    config.isFaulty = true;
    expect(config.apply('b')).toBe(a);
    expect(config.last.state).toEqual({
      isReady: false,
      reason: 'ContentInvalid',
      message: `line 1: wrong; version ${a} stays active`,
    });
  });
});

describe('a version that is named', () => {
  it('is in force until another one is named', () => {
    const config = new Config();
    const a = config.apply('a');
    const b = config.apply('b');
    config.wanted = a ?? '';
    expect(config.reconcile().inForce).toBe(a);
    expect(config.last.state).toMatchObject({ isReady: true, reason: 'Pinned' });
    expect(config.apply('c')).toBe(a);
    expect(config.versions).toHaveLength(3);
    config.wanted = '';
    expect([a, b]).not.toContain(config.reconcile().inForce);
  });

  it('that is unknown changes nothing', () => {
    const config = new Config();
    const a = config.apply('a');
    config.wanted = '20000101000000-00000000';
    expect(config.apply('b')).toBe(a);
    const message = `there is no version 20000101000000-00000000: version ${a} stays active`;
    expect(config.last.state).toEqual({ isReady: false, reason: 'VersionNotFound', message });
  });
});

it('manual activation: a version waits until it is named', () => {
  const config = new Config();
  config.activation = 'Manual';
  expect(config.apply('a')).toBeUndefined();
  expect(config.last.state).toMatchObject({ isReady: false, reason: 'Waiting' });
  config.wanted = config.versions[0]?.id ?? '';
  const a = config.reconcile().inForce;
  expect(a).toBe(config.wanted);
  config.wanted = '';
  expect(config.reconcile().inForce).toBe(a);
  expect(config.apply('b')).toBe(a);
  const { id } = config.versions[0] ?? {};
  const message = `version ${id} waits; version ${a} stays active`;
  expect(config.last.state).toEqual({ isReady: true, reason: 'Waiting', message });
});

describe("a parent's new version", () => {
  it('makes a version that waits, the newest only', () => {
    const config = new Config();
    config.parent = '1';
    const a = config.apply('a');
    for (const parent of ['2', '3']) {
      config.parent = parent;
      config.now += 1000;
      expect(config.reconcile()).toMatchObject({ inForce: a, parentChanged: config.versions[0]?.id });
    }
    expect(config.versions).toHaveLength(2);
    config.wanted = config.last.parentChanged ?? '';
    expect(config.reconcile()).toMatchObject({ parentChanged: undefined, inForce: config.wanted });
    const taken = config.wanted;
    config.wanted = '';
    expect(config.reconcile()).toMatchObject({ parentChanged: undefined, inForce: taken });
  });

  it('comes into force with the next content', () => {
    const config = new Config();
    config.parent = '1';
    config.apply('a');
    config.parent = '2';
    const b = config.apply('b');
    expect(config.last.parentChanged).toBeUndefined();
    expect(b).toBe(config.versions[0]?.id);
  });
});

describe('pruning', () => {
  it('removes those that were in force longest ago, and none in use', () => {
    const config = new Config();
    config.limit = 3;
    const [a, b, c] = [config.apply('a'), config.apply('b'), config.apply('c')];
    config.apply('a');
    const d = config.apply('d');
    expect(config.versions.map(({ id }) => id)).toEqual([d, c, a]);
    expect(config.last.prune.map(({ id }) => id)).toEqual([b]);
    config.inUse = new Set([c ?? '']);
    const e = config.apply('e');
    expect(config.versions.map(({ id }) => id)).toEqual([e, d, c, a]);
    const f = config.apply('f');
    expect(config.versions.map(({ id }) => id)).toEqual([f, e, d, c]);
  });
});

describe('whatever happens', () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ content: fc.constantFrom('a', 'b', 'c', 'd', 'e') }) },
    fc.record({ parent: fc.option(fc.constantFrom('1', '2', '3'), { nil: undefined }) }),
    fc.record({ activation: fc.constantFrom('Automatic' as const, 'Manual' as const) }),
    fc.record({ isFaulty: fc.boolean() }),
    { weight: 2, arbitrary: fc.record({ wanted: fc.option(fc.nat(8), { nil: undefined }) }) },
    fc.record({ used: fc.array(fc.nat(8), { maxLength: 3 }) }),
    fc.record({ limit: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ seconds: fc.integer({ min: -5, max: 5 }) }),
  );

  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

  function happen(config: Config, one: Step): void {
    const idOf = (at: number): string => config.versions[at]?.id ?? '20000101000000-00000000';
    config.now += 1000;
    if ('wanted' in one) config.wanted = one.wanted === undefined ? '' : idOf(one.wanted);
    else if ('used' in one) config.inUse = new Set(one.used.map(idOf));
    else if ('seconds' in one) config.now += one.seconds * 1000;
    else Object.assign(config, one);
  }

  /** Nothing is lost: a version stays or is pruned, and none that somebody needs is pruned. */
  function checkKept(config: Config, before: readonly ConfigVersion[]): void {
    const { inForce, prune } = config.last;
    const [kept, pruned] = [config.versions, prune].map((all) => all.map(({ id }) => id));
    expect(new Set(kept).size).toBe(kept?.length);
    expect([...(kept ?? []), ...(pruned ?? [])]).toEqual(expect.arrayContaining(before.map(({ id }) => id)));
    const needed = before.filter(({ id }) => config.inUse.has(id) || id === inForce).map(({ id }) => id);
    expect(kept).toEqual(expect.arrayContaining(needed));
    // In force, present and named ones come on top of the limit at most, besides those in use.
    expect(kept?.length).toBeLessThanOrEqual(config.limit + config.inUse.size + 3);
  }

  function checkActive(config: Config, former: string | undefined): void {
    const { wanted, isFaulty, activation, content, parent, versions, inForce } = config;
    if (former !== undefined) expect(versions.map(({ id }) => id)).toContain(inForce);
    if (wanted !== '') {
      expect(inForce).toBe(versions.some(({ id }) => id === wanted) ? wanted : former);
    } else if (isFaulty || activation === 'Manual') {
      expect(inForce).toBe(former);
    } else {
      const source = sourceOf({ content, instances: {}, parent: parent === undefined ? undefined : 'p' });
      expect(versions.find(({ id }) => id === inForce)?.source).toBe(source);
      expect(config.last.state.reason).toBe('Active');
    }
  }

  it('keeps the version in force and those in use, and activates only what it may', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const config = new Config();
        config.limit = 2;
        config.reconcile();
        for (const one of steps) {
          const [versions, former] = [config.versions, config.inForce];
          happen(config, one);
          config.reconcile();
          checkKept(config, versions);
          checkActive(config, former);
          const { inForce, versions: after } = config;
          // Once more, with nothing new.
          expect(config.reconcile()).toMatchObject({ inForce, versions: after, prune: [] });
        }
      }),
      { numRuns: runsOf(150), endOnFailure: true },
    );
  });
});

describe('ids and digests', () => {
  it('ids have the time in UTC, of 24 hours', () => {
    const times = ['2026-01-02T00:04:05.999Z', '2026-01-02T12:04:05Z', '2026-01-02T23:59:59Z'].map(Date.parse);
    expect(times.map((time) => versionIdOf('0123456789abcdef', time))).toEqual([
      '20260102000405-01234567',
      '20260102120405-01234567',
      '20260102235959-01234567',
    ]);
  });

  it('digests differ by each part, not by the order of instances', () => {
    const base = { content: 'x', instances: {}, parents: [] };
    const all = [
      base,
      { ...base, content: 'y' },
      { ...base, parents: ['p@1'] },
      { ...base, parents: ['p@2'] },
      { ...base, parents: ['p@1', 'q@1'] },
      { ...base, instances: { a: 'x' } },
      { ...base, instances: { a: 'x', b: '' } },
      { content: '', instances: { a: 'x' }, parents: [] },
    ];
    expect(new Set(all.map(digestOf)).size).toBe(all.length);
    const [ab, ba] = [
      { a: '1', b: '2' },
      { b: '2', a: '1' },
    ];
    expect(digestOf({ ...base, instances: ab })).toBe(digestOf({ ...base, instances: ba }));
    expect(sourceOf({ content: 'x', instances: ab, parent: 'p' })).toBe(
      sourceOf({ content: 'x', instances: ba, parent: 'p' }),
    );
  });
});
