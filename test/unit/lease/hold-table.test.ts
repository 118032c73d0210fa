import { beforeEach, describe, expect, it } from 'vitest';
import { DeletedLeases, HoldTable } from '../../../src/lease/hold-table.ts';
import type { CachedLease } from '../../../src/lease/lease.ts';
import { type Hold, newHold } from '../../../src/lease/lease-hold.ts';
import { makeCachedLease } from '../../support/builders.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeMembership } from '../../support/fake-membership.ts';

const NODE = 'vnode.b1';
const lease = (holder = 'me'): CachedLease => makeCachedLease({ name: NODE, holder });
const HAND_OVER = { to: 'b', reason: 'Leaving', done: () => {} } as const;

let clock: FakeClock;
let membership: FakeMembership;

beforeEach(() => {
  clock = new FakeClock();
  membership = new FakeMembership(clock);
});

function tableOf(holds: Record<string, Partial<Hold>>, isCluster = true): HoldTable {
  const table = new HoldTable({ membership, holder: 'me', isCluster, clock });
  for (const [name, hold] of Object.entries(holds)) table.set(name, { ...newHold(0), ...hold });
  return table;
}

const HELD: Partial<Hold> = { lease: lease(), term: 1, renewedAt: 0 };

describe('a VNode', () => {
  it.each<[string, Partial<Hold>, boolean]>([
    ['is led on a lease that was confirmed in this term', {}, true],
    ['is not led before its lease was confirmed', { term: undefined }, false],
    ['is not led on a lease of an earlier term', { term: 0 }, false],
    ['is not led while its lease is in doubt', { isDoubted: true }, false],
    ['is not led while its lease is being given away', { handOver: HAND_OVER }, false],
    ['is not led when its lease was deleted', { lease: undefined }, false],
  ])('%s', (_, more, isHeld) => {
    const table = tableOf({ [NODE]: { ...HELD, ...more } });
    expect([table.isHeld(NODE), table.heldNames()]).toEqual([isHeld, isHeld ? [NODE] : []]);
  });

  it('is led for 36 s after the last renewal that succeeded was sent, by one of several replicas', () => {
    const [cluster, alone] = [tableOf({ [NODE]: HELD }), tableOf({ [NODE]: HELD }, false)];
    clock.advance(35_999);
    expect([cluster.isHeld(NODE), alone.isHeld(NODE)]).toEqual([true, true]);
    clock.advance(1);
    expect([cluster.isHeld(NODE), alone.isHeld(NODE)]).toEqual([false, true]);
  });

  it('is led by no replica that is no member', () => {
    membership.valid = false;
    expect(tableOf({ [NODE]: HELD }).isHeld(NODE)).toBe(false);
  });

  it.each<[string, Partial<Hold>, boolean]>([
    ['that is led is not', {}, false],
    ['that is not led while its lease is in doubt is', { isDoubted: true }, true],
    ['that is not led while its lease is made again is', { lease: undefined }, true],
    ['that is not held is not', { term: undefined, isDoubted: true }, false],
    ['that was led in an earlier term is not', { term: 0 }, false],
    ['that is being given away is not', { handOver: HAND_OVER }, false],
  ])('%s interrupted', (_, more, isInterrupted) => {
    expect(tableOf({ [NODE]: { ...HELD, ...more } }).isInterrupted(NODE)).toBe(isInterrupted);
  });

  it('is interrupted while the membership is not valid, and one that is not known is not', () => {
    membership.valid = false;
    const table = tableOf({ [NODE]: HELD });
    expect([table.isInterrupted(NODE), table.isInterrupted('vnode.b2')]).toEqual([true, false]);
  });

  it('is not led when nothing is known of it', () => {
    expect(tableOf({}).isHeld(NODE)).toBe(false);
  });

  it.each<[string, Partial<Hold> | undefined, boolean]>([
    ['that is led is', HELD, true],
    ['that was led in an earlier term is', { ...HELD, term: 0 }, true],
    ['that names this replica, which was fenced, is', { ...HELD, term: undefined }, true],
    ['that is being given away is', { handOver: HAND_OVER }, true],
    ['that this replica held, and somebody has deleted, is', { deleted: lease('me') }, true],
    ['that another one held, and somebody has deleted, is not', { deleted: lease('other') }, false],
    ['of another replica is not', { lease: lease('other') }, false],
    ['that is not known is not', undefined, false],
  ])('%s written about before one that would be gained', (_, hold, isFirst) => {
    expect(tableOf(hold ? { [NODE]: hold } : {}).isOwnOrReleasing(NODE)).toBe(isFirst);
  });
});

it('leases count for who holds them, is about to, or held them when they were deleted', () => {
  const table = tableOf({
    own: HELD,
    given: { ...HELD, handOver: HAND_OVER },
    claimed: { lease: lease('other'), isClaiming: true },
    other: { lease: lease('other') },
    deleted: { deleted: lease('other') },
    free: { lease: lease('') },
    none: {},
  });
  const counts = new Map([
    ['me', 2],
    ['b', 1],
    ['other', 2],
  ]);
  expect(table.counts()).toEqual(counts);
});

describe('a lease that was deleted', () => {
  it('is remembered until its holder is gone', () => {
    const deleted = new DeletedLeases({ membership, isCluster: true, clock });
    deleted.add(lease('other'));
    deleted.sweep();
    expect(deleted.get(NODE)).toEqual({ lease: lease('other'), at: 0 });
    membership.gone.add('other');
    deleted.sweep();
    expect(deleted.get(NODE)).toBeUndefined();
  });

  it('is remembered for 40 s, though its holder lives', () => {
    const deleted = new DeletedLeases({ membership, isCluster: true, clock });
    clock.advance(1_000);
    deleted.add(lease('other'));
    clock.advance(39_999);
    deleted.sweep();
    expect(deleted.get(NODE)?.at).toBe(1_000);
    clock.advance(1);
    deleted.sweep();
    expect(deleted.get(NODE)).toBeUndefined();
  });

  it('is not remembered by a controller that is alone', () => {
    const deleted = new DeletedLeases({ membership, isCluster: false, clock });
    deleted.add(lease('other'));
    expect(deleted.get(NODE)).toBeUndefined();
  });
});
