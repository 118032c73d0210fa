import { describe, expect, it } from 'vitest';
import type { CachedLease } from '../../../src/lease/lease.ts';
import { MEMBER_GONE_MS, type MemberFacts } from '../../../src/lease/member.ts';
import { MemberList, RenewalStreak } from '../../../src/lease/members.ts';
import type { HolderState } from '../../../src/lease/membership.ts';
import { makeCachedLease } from '../../support/builders.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const facts: MemberFacts = { nonce: 'n1', address: undefined, tunnels: ['mqtt'], isLeaving: false, hasLeft: false };
const lease = (version: number, holder = 'other'): CachedLease =>
  makeCachedLease({
    kind: 'Member',
    name: `module-controller-dev-${holder}`,
    uid: 'u1',
    resourceVersion: String(version),
    holder,
    member: facts,
  });

/** A list whose owner renews and sees it when told so. */
class Rig {
  readonly clock = new FakeClock();
  readonly streak = new RenewalStreak();
  readonly list = new MemberList(this.streak);
  #version = 10;

  constructor() {
    this.streak.restart(0);
  }

  /** Of the holder of a node lease that was written before all that was heard. */
  stateOf(id: string, resourceVersion = '1'): HolderState {
    return this.list.stateOf(id, resourceVersion);
  }

  hear(more: Partial<MemberFacts> = {}, holder = 'other'): boolean {
    return this.list.changed(lease(this.#version++, holder), { ...facts, ...more }, this.clock.now());
  }

  renewAndSee(): void {
    const version = String(this.#version++);
    this.streak.renewed(this.clock.now(), version);
    this.streak.seen(version);
  }
}

describe('another member', () => {
  it('is unknown until its lease was seen, and alive from then on', () => {
    const rig = new Rig();
    expect(rig.stateOf('other')).toBe('Unknown');
    expect(rig.streak.isSeen).toBe(false);
    rig.list.changed(lease(1), facts, rig.clock.now());
    expect(rig.stateOf('other')).toBe('Alive');
    expect(rig.list.alive()).toEqual([
      { id: 'other', nonce: 'n1', address: undefined, tunnels: ['mqtt'], isLeaving: false },
    ]);
  });

  it('is news when more than its time has changed', () => {
    const rig = new Rig();
    expect(rig.hear()).toBe(true);
    expect(rig.hear()).toBe(false);
    expect(rig.hear({ isLeaving: true })).toBe(true);
    expect(rig.hear({ isLeaving: true, tunnels: [] })).toBe(true);
    expect(rig.hear({ isLeaving: true, tunnels: [], nonce: 'n2' })).toBe(true);
  });

  it('is gone when our renewals prove 3.8 s of silence, and not before', () => {
    const rig = new Rig();
    rig.hear();
    rig.clock.advance(MEMBER_GONE_MS - 1);
    rig.renewAndSee();
    expect(rig.list.takeGone()).toEqual([]);
    expect(rig.stateOf('other')).toBe('Alive');
    rig.clock.advance(1);
    expect(rig.list.takeGone()).toEqual([]);
    rig.renewAndSee();
    expect(rig.list.takeGone()).toEqual(['other']);
    expect(rig.list.takeGone()).toEqual([]);
    expect(rig.stateOf('other')).toBe('Gone');
    expect(rig.list.alive()).toEqual([]);
  });

  it('of an earlier version, which stops leading later, is gone later', () => {
    const rig = new Rig();
    rig.list.changed({ ...lease(10), leaseDurationSeconds: 5 }, facts, rig.clock.now());
    expect(rig.list.nextProofAt()).toBe(MEMBER_GONE_MS + 1_000);
    rig.clock.advance(MEMBER_GONE_MS + 999);
    rig.renewAndSee();
    expect(rig.list.takeGone()).toEqual([]);
    rig.clock.advance(1);
    rig.renewAndSee();
    expect(rig.list.takeGone()).toEqual(['other']);
  });

  it('is back when its lease changes', () => {
    const rig = new Rig();
    rig.hear();
    rig.clock.advance(MEMBER_GONE_MS);
    rig.renewAndSee();
    rig.list.takeGone();
    expect(rig.hear()).toBe(true);
    expect(rig.stateOf('other')).toBe('Alive');
  });

  it('is not heard anew by the same version of its lease, as a list shows it', () => {
    const rig = new Rig();
    rig.list.changed(lease(10), facts, rig.clock.now());
    rig.clock.advance(MEMBER_GONE_MS);
    expect(rig.list.changed(lease(10), facts, rig.clock.now())).toBe(false);
    rig.renewAndSee();
    expect(rig.list.takeGone()).toEqual(['other']);
  });

  it('has 3.8 s when its lease is deleted, for its process may live, but takes part no longer', () => {
    const rig = new Rig();
    rig.hear();
    rig.clock.advance(5_000);
    rig.list.removed(lease(30), rig.clock.now());
    expect(rig.list.alive()).toEqual([]);
    expect(rig.stateOf('other')).toBe('Alive');
    rig.clock.advance(MEMBER_GONE_MS - 1);
    rig.renewAndSee();
    expect(rig.list.takeGone()).toEqual([]);
    rig.clock.advance(1);
    rig.renewAndSee();
    expect(rig.list.takeGone()).toEqual(['other']);
  });

  it('is gone at once when it says that it has left, for all that was written until then', () => {
    const rig = new Rig();
    rig.hear();
    const left = lease(20);
    expect(rig.list.changed(left, { ...facts, isLeaving: true, hasLeft: true }, rig.clock.now())).toBe(true);
    expect(rig.stateOf('other', '20')).toBe('Gone');
    expect(rig.list.alive()).toEqual([]);
    rig.list.removed(left, rig.clock.now());
    expect(rig.stateOf('other', '20')).toBe('Gone');
    // Given to it by one that had not heard, or taken by another process of its name.
    expect(rig.stateOf('other', '21')).toBe('Alive');
    rig.streak.renewed(0, '30');
    rig.streak.seen('30');
    expect(rig.stateOf('other', '21')).toBe('Gone');
  });

  it('is alive again when another process of its name comes', () => {
    const rig = new Rig();
    rig.list.changed(lease(20), { ...facts, isLeaving: true, hasLeft: true }, rig.clock.now());
    expect(rig.list.changed(lease(21), { ...facts, nonce: 'n2' }, rig.clock.now())).toBe(true);
    expect(rig.stateOf('other', '20')).toBe('Alive');
  });

  it('is proven gone soonest by a renewal that is sent 3.8 s after its last change', () => {
    const rig = new Rig();
    expect(rig.list.nextProofAt()).toBe(Number.POSITIVE_INFINITY);
    rig.clock.advance(1_000);
    rig.hear();
    rig.clock.advance(1_000);
    rig.hear({}, 'third');
    expect(rig.list.nextProofAt()).toBe(1_000 + MEMBER_GONE_MS);
    rig.clock.advance(MEMBER_GONE_MS - 1_000);
    rig.renewAndSee();
    rig.list.takeGone();
    expect(rig.list.nextProofAt()).toBe(2_000 + MEMBER_GONE_MS);
  });

  it('is remembered as gone for a while, and then forgotten', () => {
    const rig = new Rig();
    rig.hear();
    rig.clock.advance(MEMBER_GONE_MS);
    rig.renewAndSee();
    rig.list.takeGone();
    expect(rig.list.silentFor(60_000)).toEqual([]);
    rig.clock.advance(60_000 - MEMBER_GONE_MS);
    rig.renewAndSee();
    expect(rig.list.silentFor(60_000)).toMatchObject([{ id: 'other', isPresent: true }]);
    rig.list.forget('other');
    expect(rig.stateOf('other')).toBe('Unknown');
  });
});
