import { beforeEach, describe, expect, it } from 'vitest';
import { claimDelayMs } from '../../../src/lease/claim-order.ts';
import { FreeLeases } from '../../../src/lease/free-leases.ts';
import { type Hold, newHold } from '../../../src/lease/lease-hold.ts';
import type { Member } from '../../../src/lease/member.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeMembership } from '../../support/fake-membership.ts';

const OTHER: Member = { id: 'other', nonce: 'o#0', address: undefined, tunnels: [], isLeaving: false };

let clock: FakeClock;
let membership: FakeMembership;
let holds: Map<string, Hold>;
let held: Map<string, number>;
let unwanted: Set<string>;
let turns: string[];
let free: FreeLeases;

beforeEach(() => {
  clock = new FakeClock();
  membership = new FakeMembership(clock);
  holds = new Map();
  held = new Map();
  unwanted = new Set();
  turns = [];
  free = new FreeLeases({
    membership,
    holder: 'me',
    maxLevel: 3,
    tunnelOf: () => undefined,
    isWanted: (nodeName) => !unwanted.has(nodeName),
    holds: {
      counts: () => new Map(held),
      get: (nodeName) => holds.get(nodeName),
      get size() {
        return holds.size;
      },
    },
    onTurn: (nodeName) => turns.push(`${nodeName} ${clock.now()}`),
    clock,
  });
});

function add(...nodeNames: string[]): void {
  for (const nodeName of nodeNames) {
    holds.set(nodeName, newHold(0));
    free.add(nodeName);
  }
}

/** Names of Nodes whose leases this replica takes first (`isFirst`), or the other one. */
function namesOf(isFirst: boolean, count: number, known = 100): string[] {
  const names = Array.from({ length: 100 }, (_, index) => `vnode.b${index}`);
  const delayOf = (nodeName: string): number | undefined =>
    claimDelayMs({ nodeName, tunnel: undefined, self: 'me', members: membership.members(), held, known, maxLevel: 3 });
  return names.filter((nodeName) => (delayOf(nodeName) === 0) === isFirst).slice(0, count);
}

describe('free leases', () => {
  it('are taken within 100 ms by the only replica, and then there is no timer', () => {
    add('a', 'b');
    clock.advance(99);
    expect([turns, free.size]).toEqual([[], 2]);
    clock.advance(1);
    expect([turns, free.size, clock.pending]).toEqual([['a 100', 'b 100'], 0, 0]);
    add('c');
    clock.advance(100);
    expect(turns.at(-1)).toBe('c 200');
  });

  it('of which another replica is first in order are taken 2 s after they became free', () => {
    membership.others = [OTHER];
    const [name = ''] = namesOf(false, 1);
    add(name);
    clock.advance(1_000);
    free.add(name);
    clock.advance(999);
    expect(turns).toEqual([]);
    clock.advance(1);
    expect(turns).toEqual([`${name} 2000`]);
  });

  it('do not wait for those before them whose turn has not come', () => {
    membership.others = [OTHER];
    const [later = ''] = namesOf(false, 1);
    const [now = ''] = namesOf(true, 1);
    add(later, now);
    clock.advance(100);
    expect([turns, free.size]).toEqual([[`${now} 100`], 1]);
  });

  it('do not wait for those before them that nobody wants, or that are not known any more', () => {
    unwanted.add('a');
    add('a', 'b', 'c');
    holds.delete('b');
    clock.advance(100);
    expect(turns).toEqual(['c 100']);
    unwanted.clear();
    clock.advance(100);
    expect(turns).toEqual(['c 100', 'a 200']);
  });

  it('that are taken in one round count in it: a replica that rises a level lets the other go first', () => {
    membership.others = [OTHER];
    const names = namesOf(true, 6, 6);
    add(...names);
    clock.advance(100);
    // With three levels, two leases of six are level 1.
    expect(turns).toEqual(names.slice(0, 2).map((name) => `${name} 100`));
  });

  it('that another replica has taken are not taken', () => {
    add('a', 'b');
    free.delete('a');
    clock.advance(100);
    expect(turns).toEqual(['b 100']);
  });

  it('are taken by no replica that is no member, or leaves, and not after the stop', () => {
    membership.valid = false;
    add('a');
    clock.advance(10_000);
    expect([turns, clock.pending]).toEqual([[], 0]);
    membership.valid = true;
    free.add('a');
    free.stop();
    clock.advance(10_000);
    expect(turns).toEqual([]);
  });
});
