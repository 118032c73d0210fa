import { describe, expect, it } from 'vitest';
import { type UnprovenBase, UnprovenBases } from '../../../src/vnode/unproven-bases.ts';
import { makeBase } from '../../support/builders.ts';

function unproven(askedAt: number): UnprovenBase {
  const base = makeBase('b1');
  return { base, tunnel: 'http_tunnel_provider', lastBeatAt: askedAt, askedAt, isFailed: false, source: undefined };
}

describe('bases that have to answer', () => {
  it('are there once each until they are deleted', () => {
    const bases = new UnprovenBases();
    const second = unproven(2);
    expect([bases.add('a', unproven(1)), bases.add('a', second), bases.size]).toEqual([0, 0, 1]);
    expect(bases.get('a')).toBe(second);
    expect([bases.delete('a'), bases.delete('a'), bases.size, bases.get('a')]).toEqual([true, false, 0, undefined]);
  });

  it('are 8,000 at most: the one that was asked longest ago leaves', () => {
    const bases = new UnprovenBases();
    for (let index = 0; index < 8_000; index++) expect(bases.add(`b${index}`, unproven(index))).toBe(0);
    bases.add('b0', unproven(9_000));
    expect(bases.add('new', unproven(9_001))).toBe(1);
    expect([bases.size, bases.get('b0') === undefined, bases.get('b1')]).toEqual([8_000, false, undefined]);
  });

  it('are dropped when they were asked before a time', () => {
    const bases = new UnprovenBases();
    for (const askedAt of [10, 20, 30]) bases.add(`at ${askedAt}`, unproven(askedAt));
    expect(bases.dropAskedBefore(20)).toBe(1);
    expect([...bases.values()].map(({ askedAt }) => askedAt)).toEqual([20, 30]);
    expect([bases.dropAskedBefore(31), bases.size]).toEqual([2, 0]);
  });
});
