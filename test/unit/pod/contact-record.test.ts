import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Demand,
  decodeEntry,
  encodeEntry,
  keptOf,
  planShard,
  SHARD_LIMITS,
  SHARDS,
  shardOf,
} from '../../../src/pod/contact-record.ts';
import { recordNameOf } from '../../../src/pod/contact-store.ts';

const NOW = '2026-01-02T03:04:05.000Z';
const MANY = Array.from({ length: 201 }, (_, index) => `m${index}:1`);

function demand(identity: string, kept: readonly string[] | 'all' = [], claimed: readonly string[] = []): Demand {
  return { identity, kept: kept === 'all' ? kept : new Set(kept), claimed: new Set(claimed) };
}

function entryOf(kept: readonly string[] | 'all', metAt = '2026-01-01T00:00:00.000Z'): string {
  return encodeEntry(kept === 'all' ? kept : new Set(kept), metAt);
}

const nobody = { now: NOW, isInUse: () => false };

/** As the API server merges it. */
function patched(stored: ReadonlyMap<string, string>, data: Readonly<Record<string, string | null>>) {
  const after = new Map(stored);
  for (const [name, text] of Object.entries(data)) {
    if (text === null) after.delete(name);
    else after.set(name, text);
  }
  return after;
}

function bytesOf(map: ReadonlyMap<string, string>): number {
  return [...map].reduce((sum, [name, text]) => sum + name.length + text.length, 0);
}

describe('an entry', () => {
  it('is read as it was written', () => {
    const entry = { kept: new Set(['b:2', 'a:1']), metAt: Date.parse(NOW), isReadable: true };
    expect(decodeEntry(encodeEntry(entry.kept, NOW))).toEqual(entry);
    expect(encodeEntry(entry.kept, NOW)).toBe(`{"metAt":"${NOW}","kept":["a:1","b:2"]}`);
    expect(decodeEntry(encodeEntry('all', NOW))).toEqual({ ...entry, kept: 'all' });
  });

  it.each([
    ['more than 200 modules', MANY],
    ['more than 8 KiB', Array.from({ length: 90 }, (_, index) => `${'long'.repeat(25)}:${index}`)],
  ])('of %s says all, and is small', (_what, keys) => {
    expect(keptOf(keys)).toBe('all');
    expect(encodeEntry(new Set(keys), NOW)).toBe(`{"metAt":"${NOW}","kept":"all"}`);
  });

  it.each([
    ['200 modules', MANY.slice(1)],
    ['8 KiB', ['x'.repeat(8 * 1024 - '["",""]'.length - 'a:1'.length), 'a:1']],
  ])('of %s says each of them', (_what, keys) => {
    expect(keptOf(keys)).toEqual(new Set(keys));
    expect(decodeEntry(encodeEntry(new Set(keys), NOW)).kept).toEqual(new Set(keys));
  });

  it.each([
    ['no JSON', '{'],
    ['nothing', ''],
    ['no text', 7],
    ['null', 'null'],
    ['a list', '["a:1"]'],
    ['another word', '{"kept":"none"}'],
    ['no kept modules', '{"metAt":"2026-01-01T00:00:00Z"}'],
    ['kept modules that are no texts', '{"kept":["a:1",7]}'],
    ['too many kept modules', JSON.stringify({ kept: MANY })],
    ['more than anybody writes', `{"kept":["${'x'.repeat(100_000)}"]}`],
  ])('that is %s keeps all', (_what, text) => {
    expect(decodeEntry(text)).toMatchObject({ kept: 'all', isReadable: false });
  });

  it('without a date, or with one that is none, is the oldest', () => {
    for (const metAt of [undefined, 7, 'yesterday']) {
      expect(decodeEntry(JSON.stringify({ kept: [], metAt }))).toEqual({ kept: new Set(), metAt: 0, isReadable: true });
    }
  });

  it('never fails to be read, whatever it is', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json(), fc.anything()), (text) => void decodeEntry(text)));
  });
});

describe('the shard of an identity', () => {
  it('is the same for ever: another one would make all bases count as never met', () => {
    expect(['base-1', 'base-2', 'shop.eu', 'a'].map(shardOf)).toEqual([3, 3, 3, 0]);
    expect(SHARDS).toBe(8);
  });
});

describe('the name of a record', () => {
  it.each(['dev', 'Dev', 'DEV', 'd.ev', 'd_ev', 'a..b', 'A-._b', 'x'.repeat(63)])('is valid for ENV %s', (env) => {
    expect(`${recordNameOf(env)}-7`).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
  });

  it('is another one for each ENV', () => {
    const envs = ['dev', 'Dev', 'DEV', 'a-b', 'a_b', 'a.b', 'a--b'];
    expect(new Set(envs.map(recordNameOf)).size).toBe(envs.length);
  });
});

describe('a shard that is full to the byte', () => {
  const stored = new Map([['b1', entryOf([])]]);
  const bytes = 2 * bytesOf(stored);

  it('takes an entry that just fits, and sends another one away for one that does not', () => {
    const options = { ...nobody, limits: { entries: 10, bytes } };
    expect(planShard(stored, [demand('b2')], options).data).toEqual({ b2: entryOf([], NOW) });
    const smaller = { ...nobody, limits: { entries: 10, bytes: bytes - 1 } };
    expect(planShard(stored, [demand('b2')], smaller).data).toEqual({ b1: null, b2: entryOf([], NOW) });
  });
});

describe('the plan of a shard', () => {
  it('records an identity that is not there with what it keeps', () => {
    const { data, entries } = planShard(new Map(), [demand('b1', ['a:1'])], nobody);
    expect(data).toEqual({ b1: entryOf(['a:1'], NOW) });
    expect(entries.get('b1')?.kept).toEqual(new Set(['a:1']));
  });

  it('leaves an identity that is there as it is, whatever the base has now', () => {
    const { data, entries } = planShard(new Map([['b1', entryOf(['old:1'])]]), [demand('b1', ['a:1'])], nobody);
    expect(data).toEqual({});
    expect(entries.get('b1')?.kept).toEqual(new Set(['old:1']));
  });

  it('takes claimed modules off an entry, which keeps its date', () => {
    const stored = new Map([['b1', entryOf(['a:1', 'b:1'])]]);
    const { data, entries } = planShard(stored, [demand('b1', [], ['a:1', 'other:1'])], nobody);
    expect(data).toEqual({ b1: entryOf(['b:1']) });
    expect(entries.get('b1')?.kept).toEqual(new Set(['b:1']));
  });

  it('dates an entry without a date when it takes claimed modules off', () => {
    const stored = new Map([['b1', '{"kept":["a:1","b:1"]}']]);
    const { data } = planShard(stored, [demand('b1', [], ['a:1'])], nobody);
    expect(data).toEqual({ b1: entryOf(['b:1'], NOW) });
  });

  it.each(['{', '{"kept":"all"}'])('never writes over an entry that keeps all: %s', (text) => {
    const { data, entries } = planShard(new Map([['b1', text]]), [demand('b1', [], ['a:1'])], nobody);
    expect(data).toEqual({});
    expect(entries.get('b1')?.kept).toBe('all');
  });

  it('knows an identity that is called as a property of every object', () => {
    const { data } = planShard(new Map(Object.entries({})), [demand('constructor', ['a:1'])], nobody);
    expect(Object.entries(data)).toEqual([['constructor', entryOf(['a:1'], NOW)]]);
  });

  it('evicts from a full shard who keeps nothing first, then the oldest, and nobody who is there', () => {
    const stored = new Map([
      ['young', entryOf([], '2026-01-01T12:00:00.000Z')],
      ['old', entryOf([], '2025-01-01T00:00:00.000Z')],
      ['live', entryOf([], '2024-01-01T00:00:00.000Z')],
      ['keeper', entryOf(['a:1'], '2023-01-01T00:00:00.000Z')],
    ]);
    const options = { now: NOW, isInUse: (identity: string) => identity === 'live' };
    const evicted = (news: number, limit = stored.size) => {
      const demands = Array.from({ length: news }, (_, index) => demand(`new${index}`));
      const limits = { ...SHARD_LIMITS, entries: limit };
      const { data } = planShard(stored, demands, { ...options, limits });
      return Object.keys(data).filter((identity) => data[identity] === null);
    };
    expect([0, 1, 2, 3].map((news) => evicted(news))).toEqual([
      [],
      ['old'],
      ['old', 'young'],
      ['old', 'young', 'keeper'],
    ]);
    expect(evicted(1, stored.size + 1)).toEqual([]);
  });

  it('evicts nobody who is asked about in the same plan', () => {
    const stored = new Map([['b1', entryOf([])]]);
    const limits = { entries: 1, bytes: 10_000 };
    const { data, entries } = planShard(stored, [demand('b2'), demand('b1')], { ...nobody, limits });
    expect(data).toEqual({});
    expect([entries.get('b1')?.kept, entries.get('b2')]).toEqual([new Set(), undefined]);
  });

  it('evicts nobody for an entry that has no room even then', () => {
    const stored = new Map([
      ['gone', entryOf([])],
      ['live', 'x'.repeat(1_000)],
    ]);
    const options = {
      now: NOW,
      isInUse: (identity: string) => identity === 'live',
      limits: { entries: 9, bytes: 1_100 },
    };
    const { data, entries } = planShard(stored, [demand('b1', ['much'.repeat(20)]), demand('b2')], options);
    expect(entries.get('b1')).toBeUndefined();
    expect(data).toEqual({ gone: null, b2: entryOf([], NOW) });
  });

  it('stays within the limits, and loses nobody who is there, whoever comes', () => {
    const identity = fc.stringMatching(/^[a-d][0-9]$/);
    const kept = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,9}:1$/), { maxLength: 4 });
    const plan = fc.record({
      stored: fc.dictionary(identity, kept),
      demands: fc.uniqueArray(fc.tuple(identity, kept), { selector: ([name]) => name }),
      limits: fc.record({ entries: fc.nat(12), bytes: fc.nat(900) }),
    });
    fc.assert(
      fc.property(plan, ({ stored, demands, limits }) => {
        const before = new Map(Object.entries(stored).map(([name, keys]) => [name, entryOf(keys)]));
        const isInUse = (name: string): boolean => name.startsWith('a');
        const wanted = demands.map(([name, keys]) => demand(name, keys));
        const { data, entries } = planShard(before, wanted, { now: NOW, isInUse, limits });
        const after = patched(before, data);
        if (after.size > before.size) expect(after.size).toBeLessThanOrEqual(limits.entries);
        if (bytesOf(after) > bytesOf(before)) expect(bytesOf(after)).toBeLessThanOrEqual(limits.bytes);
        expect([...before.keys()].filter((name) => isInUse(name) && !after.has(name))).toEqual([]);
        for (const [name, entry] of entries) expect(after.has(name)).toBe(entry !== undefined);
      }),
    );
  });
});
