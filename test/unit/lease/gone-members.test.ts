import { beforeEach, describe, expect, it } from 'vitest';
import type { LeaseClient } from '../../../src/kube/lease-client.ts';
import { ApiError } from '../../../src/kube/transport/api-error.ts';
import { GoneMembers } from '../../../src/lease/gone-members.ts';
import type { MemberFacts } from '../../../src/lease/member.ts';
import { MemberList, RenewalStreak } from '../../../src/lease/members.ts';
import { makeCachedLease } from '../../support/builders.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { capturedLogger } from '../kube/support/rig.ts';

const FACTS: MemberFacts = { nonce: 'n1', address: undefined, tunnels: [], isLeaving: true, hasLeft: true };
const LEASE = makeCachedLease({
  kind: 'Member',
  name: 'module-controller.dev.other',
  uid: 'u1',
  holder: 'other',
  member: FACTS,
});

describe('the membership lease of a member that is gone', () => {
  const { logger, lines } = capturedLogger();
  let deletions: unknown[][];
  let failure: Error | undefined;
  let list: MemberList;
  let gone: GoneMembers;

  beforeEach(() => {
    lines.length = 0;
    deletions = [];
    failure = undefined;
    const clock = new FakeClock();
    const streak = new RenewalStreak();
    streak.restart(0);
    list = new MemberList(streak);
    list.changed(LEASE, FACTS, clock.now());
    streak.renewed(60_000, '9');
    streak.seen('9');
    const remove: LeaseClient['delete'] = async (...about) => {
      deletions.push(about);
      if (failure) throw failure;
    };
    gone = new GoneMembers({ api: { delete: remove } as LeaseClient, logger });
  });

  it('is deleted as it was seen, by the replica that may', () => {
    gone.sweep(list, false);
    expect(deletions).toEqual([]);
    gone.sweep(list, true);
    expect(deletions).toEqual([[LEASE.name, 'u1', '7']]);
    expect(list.stateOf('other', '1')).toBe('Gone');
  });

  it('is forgotten when it is deleted', () => {
    list.removed(LEASE, 0);
    gone.sweep(list, true);
    expect([deletions, list.stateOf('other', '1')]).toEqual([[], 'Unknown']);
  });

  it.each([
    [404, 0],
    [409, 0],
    [500, 1],
  ])('cannot be deleted with an answer %i: %i warnings', async (status, warnings) => {
    failure = new ApiError('DELETE', { status });
    gone.sweep(list, true);
    await settle();
    expect([deletions.length, lines.length]).toEqual([1, warnings]);
  });
});
