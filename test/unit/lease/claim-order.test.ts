import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ClaimInput,
  claimDelayMs,
  eligibleFor,
  isFull,
  scoreOf,
  TURN_MS,
  workloadLevelOf,
} from '../../../src/lease/claim-order.ts';
import type { Member } from '../../../src/lease/member.ts';

const member = (id: string, more: Partial<Member> = {}): Member => ({
  id,
  nonce: `${id}#0`,
  address: undefined,
  tunnels: ['mqtt', 'http'],
  isLeaving: false,
  ...more,
});
const TRIO = ['a', 'b', 'c'].map((id) => member(id));

const input = (more: Partial<ClaimInput> = {}): ClaimInput => ({
  nodeName: 'vnode.b1',
  tunnel: 'mqtt',
  self: 'a',
  members: TRIO,
  held: new Map(),
  known: 30,
  maxLevel: 3,
  ...more,
});
const delays = (more: Partial<ClaimInput> = {}): (number | undefined)[] =>
  ['a', 'b', 'c'].map((self) => claimDelayMs(input({ ...more, self })));

describe('the level of a workload', () => {
  it.each([
    [0, 0, 3, 0],
    [0, 30, 3, 0],
    [0, 1, 3, 0],
    [1, 1, 3, 2],
    [9, 30, 3, 0],
    [10, 30, 3, 1],
    [19, 30, 3, 1],
    [20, 30, 3, 2],
    [30, 30, 3, 2],
    [31, 30, 3, 2],
    [30, 30, 1, 0],
  ])('of %i leases of %i, with %i levels, is %i', (held, known, maxLevel, level) => {
    expect(workloadLevelOf(held, known, maxLevel)).toBe(level);
  });
});

describe('who may lead a VNode', () => {
  const all = [member('a', { tunnels: [] }), member('b', { isLeaving: true }), member('c')];

  it('has its tunnel up, and stays', () => {
    expect(eligibleFor('mqtt', all).map(({ id }) => id)).toEqual(['c']);
  });

  it('is whoever stays, when nobody has the tunnel, or it is not known', () => {
    expect(eligibleFor('other', all).map(({ id }) => id)).toEqual(['a', 'c']);
    expect(eligibleFor(undefined, all).map(({ id }) => id)).toEqual(['a', 'c']);
  });

  it('is nobody when all leave', () => {
    expect(eligibleFor('mqtt', [member('b', { isLeaving: true })])).toEqual([]);
  });
});

describe('the turn to take a free lease', () => {
  it('is one replica’s at once, and the others’ one after the other', () => {
    expect(delays().sort()).toEqual([0, 2_000, 4_000]);
  });

  it('is that of the least loaded first, whatever the names say', () => {
    const held = new Map([
      ['a', 25],
      ['b', 12],
    ]);
    expect(delays({ held })).toEqual([4_200, 2_100, 0]);
  });

  it('is nobody’s before that of those who have less than their share', () => {
    // With one level only, a full one would else come first by its name.
    const held = new Map([['a', 11]]);
    expect(isFull(11, 30, 3)).toBe(true);
    expect(isFull(10, 30, 3)).toBe(false);
    for (let index = 0; index < 20; index++) {
      expect(claimDelayMs(input({ nodeName: `vnode.b${index}`, held, maxLevel: 1 }))).toBe(2 * TURN_MS);
    }
  });

  it('is that of one that holds nothing as of the least loaded', () => {
    expect(delays({ known: 3 }).sort()).toEqual([0, 2_000, 4_000]);
  });

  it('is nobody’s before others’ from one more than the share on, which is rounded up', () => {
    expect([11, 12].map((held) => isFull(held, 31, 3))).toEqual([false, true]);
  });

  it('never comes for one that leaves, or has not the tunnel while another one has', () => {
    const leaving = [member('a', { isLeaving: true }), member('b')];
    expect(claimDelayMs(input({ members: leaving }))).toBeUndefined();
    const unable = [member('a', { tunnels: ['http'] }), member('b')];
    expect(claimDelayMs(input({ members: unable }))).toBeUndefined();
    expect(claimDelayMs(input({ members: [member('a', { tunnels: ['http'] })] }))).toBe(0);
  });

  it('is agreed on by all who see the same', () => {
    const counts = fc.tuple(fc.nat({ max: 30 }), fc.nat({ max: 30 }), fc.nat({ max: 30 }));
    const property = fc.property(
      fc.string(),
      counts,
      fc.integer({ min: 1, max: 5 }),
      (nodeName, [a, b, c], maxLevel) => {
        const held = new Map([
          ['a', a],
          ['b', b],
          ['c', c],
        ]);
        const turns = delays({ nodeName, held, maxLevel, known: a + b + c + 1 }).map((ms) =>
          Math.floor((ms ?? -1) / TURN_MS),
        );
        expect(turns.sort()).toEqual([0, 1, 2]);
      },
    );
    fc.assert(property);
  });

  it('spreads many VNodes evenly by their names alone', () => {
    const firsts = Array.from({ length: 600 }, (_, index) => delays({ nodeName: `vnode.b${index}` }).indexOf(0));
    for (const replica of [0, 1, 2]) {
      const count = firsts.filter((first) => first === replica).length;
      expect(count).toBeGreaterThan(150);
      expect(count).toBeLessThan(250);
    }
  });
});

it('a score is in [0, 1) and of both names', () => {
  expect(scoreOf('a', 'b')).not.toBe(scoreOf('b', 'a'));
  fc.assert(fc.property(fc.string(), fc.string(), (id, name) => scoreOf(id, name) >= 0 && scoreOf(id, name) < 1));
});
