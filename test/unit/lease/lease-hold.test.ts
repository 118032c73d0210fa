import { describe, expect, it } from 'vitest';
import type { CachedLease } from '../../../src/lease/lease.ts';
import { gainOf, newHold, observe } from '../../../src/lease/lease-hold.ts';
import { makeCachedLease } from '../../support/builders.ts';

function lease(resourceVersion: string, more: Partial<CachedLease> = {}): CachedLease {
  return makeCachedLease({ uid: 'u1', resourceVersion, holder: 'other', ...more });
}

const ME = { holder: 'me', now: 500 };

describe('what is known of the lease of a VNode', () => {
  it('is nothing at first, and nothing is wanted of it', () => {
    expect(newHold(7)).toMatchObject({
      lease: undefined,
      renewTime: '',
      changedAt: 7,
      term: undefined,
      isDoubted: false,
      isClaiming: false,
      isGiven: false,
      handOver: undefined,
    });
    expect(newHold(7).renewAt).toBeLessThan(0);
  });

  it('goes on from a lease that was deleted', () => {
    const deleted = { lease: lease('5', { renewTime: 't1' }), at: 3 };
    expect(newHold(7, deleted)).toMatchObject({
      lease: undefined,
      deleted: deleted.lease,
      renewTime: 't1',
      changedAt: 3,
    });
  });

  it('is its newest version', () => {
    const hold = newHold(0);
    const newest = lease('10');
    expect([observe(hold, lease('9'), ME), observe(hold, newest, ME)]).toEqual([true, true]);
    expect(hold).toMatchObject({ lease: newest, changedAt: 500 });
    expect(observe(hold, lease('9'), { ...ME, now: 600 })).toBe(false);
    expect(observe(hold, lease('10'), { ...ME, now: 600 })).toBe(true);
    expect(hold.lease).toBe(newest);
    expect(hold.changedAt).toBe(500);
  });

  it('is another one under the name, however its version compares, and never the deleted one', () => {
    const hold = newHold(0, { lease: lease('5', { uid: 'u0' }), at: 0 });
    expect(observe(hold, lease('6', { uid: 'u0' }), ME)).toBe(false);
    observe(hold, lease('10'), ME);
    expect(observe(hold, lease('1', { uid: 'u2' }), ME)).toBe(true);
    expect(hold.lease?.uid).toBe('u2');
  });

  it('keeps the latest renewTime', () => {
    const hold = newHold(0);
    for (const [version, renewTime] of ['t2', 't1', 't3'].entries())
      observe(hold, lease(`${version}`, { renewTime }), ME);
    expect(hold.renewTime).toBe('t3');
    observe(hold, lease('9', { renewTime: 't2' }), ME);
    expect(hold.renewTime).toBe('t3');
  });

  it('is handed over to us when another one writes us into it, not when we claim it', () => {
    const given = newHold(0);
    observe(given, lease('1'), ME);
    observe(given, lease('2', { holder: 'me' }), ME);
    expect([gainOf(given, 'Own'), gainOf(given, 'Expired')]).toEqual(['HandedOver', 'Expired']);
    const claimed = { ...newHold(0), isClaiming: true };
    observe(claimed, lease('1'), ME);
    observe(claimed, lease('2', { holder: 'me' }), ME);
    expect(gainOf(claimed, 'Own')).toBe('Own');
    const found = newHold(0);
    observe(found, lease('1', { holder: 'me' }), ME);
    expect(gainOf(found, 'Own')).toBe('Own');
  });
});
