import { describe, expect, it } from 'vitest';
import {
  balancedSince,
  countsAt,
  heldSince,
  type LeaseHistory,
  leasesAt,
  successionsOf,
  transitionsSince,
} from '../../bench/sharding/lease-history.ts';
import type { LeaseFact } from '../../support/cluster/facts.ts';

/** Writes versions as the replicas do. */
class Leases {
  readonly history: LeaseFact[] = [];
  readonly #newest = new Map<string, LeaseFact>();

  /** Somebody writes that holder: takes the lease, or gives it away. */
  holder(base: string, holder: string, at: number): this {
    const before = this.#newest.get(base);
    return this.#write({ ...this.#of(base, at), holder, acquiredAt: at, transitions: (before?.transitions ?? -1) + 1 });
  }

  renew(base: string, at: number): this {
    return this.#write(this.#of(base, at));
  }

  gone(base: string, at: number): this {
    return this.#write({ ...this.#of(base, at), isGone: true });
  }

  #of(base: string, at: number): LeaseFact {
    const empty = { base, holder: '', acquiredAt: at, transitions: 0, resourceVersion: '1', isGone: false };
    return { ...empty, ...this.#newest.get(base), renewedAt: at, at };
  }

  #write(version: LeaseFact): this {
    this.history.push(version);
    this.#newest.set(version.base, version);
    return this;
  }
}

const leases = (): Leases => new Leases();

describe('who holds what', () => {
  const { history } = leases()
    .holder('a', 'r0', 10)
    .holder('b', 'r0', 20)
    .holder('c', 'r1', 30)
    .holder('b', 'r1', 40)
    .gone('a', 50);

  it('is known for every moment', () => {
    expect(countsAt(history, ['r0', 'r1'], 35)).toEqual([2, 1]);
    expect(countsAt(history, ['r0', 'r1'], 45)).toEqual([1, 2]);
    expect(countsAt(history, ['r0', 'r1', 'r2'])).toEqual([0, 2, 0]);
    expect([...leasesAt(history).keys()]).toEqual(['b', 'c']);
  });

  it('and when so many had a holder', () => {
    expect(heldSince(history, 3)).toBe(30);
    expect(heldSince(history, 4)).toBeUndefined();
    expect(heldSince(leases().holder('a', 'r0', 1).holder('a', '', 2).holder('b', 'r0', 3).history, 2)).toBeUndefined();
  });

  it('and how often a lease changed hands', () => {
    expect(transitionsSince(history, 30)).toBe(1);
    expect(transitionsSince(history, 0)).toBe(1);
  });
});

describe('the succession of a replica', () => {
  const options = { bases: ['a'], since: 100, others: ['r1', 'r2'], isHolderDead: true };
  const begin = (): Leases => leases().holder('a', 'r0', 10).renew('a', 90);
  const of = (history: LeaseHistory, changes = {}) => successionsOf(history, { ...options, ...changes })[0];

  it('has not begun with renewals of the dead one that arrive late', () => {
    expect(of(begin().renew('a', 101).history)).toEqual({ base: 'a', heldAt: undefined, confirmedAt: undefined });
  });

  it('is complete when another one has taken the lease of a dead one: nobody else can have written that', () => {
    expect(of(begin().holder('a', 'r1', 700).renew('a', 800).history)).toMatchObject({ heldAt: 700, confirmedAt: 700 });
  });

  it('needs a write of the new holder when the former one gave the lease away', () => {
    const given = begin().holder('a', 'r1', 110);
    expect(of(given.history, { isHolderDead: false })).toMatchObject({ heldAt: 110, confirmedAt: undefined });
    expect(of(given.renew('a', 130).history, { isHolderDead: false })).toMatchObject({ heldAt: 110, confirmedAt: 130 });
  });

  it('is complete when a lease that was given to nobody is taken', () => {
    const released = begin().holder('a', '', 110).holder('a', 'r2', 140);
    expect(of(released.history, { isHolderDead: false })).toMatchObject({ heldAt: 140, confirmedAt: 140 });
  });

  it('begins anew when the lease goes back, or is gone', () => {
    const back = begin().holder('a', 'r1', 110).renew('a', 120).holder('a', 'r0', 130);
    expect(of(back.history)).toMatchObject({ heldAt: undefined, confirmedAt: undefined });
    expect(of(begin().holder('a', 'r1', 110).gone('a', 120).history)).toMatchObject({ heldAt: undefined });
  });

  it('stays complete when the lease moves on among the others', () => {
    const moved = begin().holder('a', 'r1', 110).holder('a', 'r2', 120);
    expect(of(moved.history)).toMatchObject({ heldAt: 110, confirmedAt: 110 });
  });

  it('is not there for a base whose lease never had a version', () => {
    expect(of([])).toEqual({ base: 'a', heldAt: undefined, confirmedAt: undefined });
  });
});

describe('balance', () => {
  const among = ['r0', 'r1'];
  const four = (): Leases =>
    leases().holder('a', 'r0', 1).holder('b', 'r0', 2).holder('c', 'r0', 3).holder('d', 'r0', 4);
  const since = (history: LeaseHistory, ratio = 1.25) => balancedSince(history, { since: 10, among, ratio });

  it('is there from the last move on that it needed', () => {
    const moved = four().holder('a', 'r1', 20).renew('b', 25).holder('b', 'r1', 30).renew('c', 40);
    expect(since(moved.history)).toBe(30);
    expect(since(moved.history, 3)).toBe(20);
  });

  it('counts for good only', () => {
    const flapping = four().holder('a', 'r1', 20).holder('b', 'r1', 30).holder('c', 'r1', 40).holder('c', 'r0', 50);
    expect(since(flapping.history)).toBe(50);
    expect(since(flapping.holder('d', 'r1', 60).history)).toBeUndefined();
  });

  it('is not there while somebody else, or nobody, holds a lease', () => {
    const released = four().holder('a', 'r1', 20).holder('b', 'r1', 30).holder('c', '', 40);
    expect(since(released.history, 2)).toBeUndefined();
    expect(since(released.holder('c', 'r2', 50).history, 2)).toBeUndefined();
    expect(since(released.holder('c', 'r0', 60).history, 2)).toBe(60);
  });

  it('may have been there before', () => {
    const before = leases().holder('a', 'r0', 1).holder('b', 'r1', 2);
    expect(since(before.history)).toBe(10);
    expect(since(before.gone('b', 20).history)).toBeUndefined();
  });
});
