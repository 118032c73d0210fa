import { beforeEach, describe, expect, it } from 'vitest';
import type { Patch } from '../../../src/kube/client.ts';
import type { Moment } from '../../../src/kube/lease-term.ts';
import type { LeaseObject } from '../../../src/kube/objects.ts';
import { ApiError } from '../../../src/kube/transport/api-error.ts';
import { type CachedLease, projectLease } from '../../../src/lease/lease.ts';
import { type MemberFacts, newMemberLeaseOf } from '../../../src/lease/member.ts';
import { MemberLease } from '../../../src/lease/member-lease.ts';
import { SoleMembership } from '../../../src/lease/membership.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { capturedLogger } from '../kube/support/rig.ts';

const CONFLICT = new ApiError('PATCH', { status: 409, reason: 'Conflict' });
const EXISTS = new ApiError('POST', { status: 409, reason: 'AlreadyExists' });
const NOT_FOUND = new ApiError('GET', { status: 404 });
const OTHER_UID = new ApiError('PATCH', { status: 422, causes: [{ field: 'metadata.uid' }] });
const DOWN = new ApiError('GET', { status: 500 });
const FACTS: MemberFacts = { nonce: 'mine', address: undefined, tunnels: ['mqtt'], isLeaving: false, hasLeft: false };

/** The membership lease of `c-0`, as the server has it. */
function object(version: number, more: Partial<MemberFacts> = {}, uid = 'u1'): LeaseObject {
  const facts = { ...FACTS, ...more };
  const lease = newMemberLeaseOf({ env: 'dev', clientId: 'c-0', facts, nowText: '2026-01-01T00:00:00.000000Z' });
  return { ...lease, metadata: { ...lease.metadata, uid, resourceVersion: String(version) } };
}
const seen = (version: number, more: Partial<MemberFacts> = {}, uid?: string): CachedLease =>
  projectLease(object(version, more, uid), 'dev');

let clock: FakeClock;
let metrics: ReturnType<typeof createMetrics>;
let log: ReturnType<typeof capturedLogger>;
/** Each with its time and what it says. */
let requests: string[];
/** Taken one by one; the last one stays. */
let answers: (LeaseObject | Error)[];
let facts: MemberFacts;
let sent: Moment[];
let stopping: AbortController;
let lease: MemberLease;
let rollbacks: number;

beforeEach(() => {
  clock = new FakeClock();
  metrics = createMetrics();
  log = capturedLogger();
  requests = [];
  answers = [];
  facts = FACTS;
  sent = [];
  rollbacks = 0;
  stopping = new AbortController();
  const answer = async (request: string): Promise<LeaseObject> => {
    requests.push(`${clock.now()} ${request}`);
    const next = answers.length > 1 ? answers.shift() : answers[0];
    if (next === undefined || next instanceof Error) throw next ?? NOT_FOUND;
    return next;
  };
  const describePatch = ({ metadata, spec }: Patch): string => {
    const { resourceVersion, annotations } = metadata as LeaseObject['metadata'];
    const isTakeOver = 'leaseTransitions' in (spec as object);
    return `${resourceVersion} ${annotations?.['member.koupleless.io/state']}${isTakeOver ? ' taken over' : ''}`;
  };
  lease = new MemberLease({
    api: {
      get: () => answer('get'),
      create: () => answer('create'),
      patch: (_name, patch) => answer(`patch ${describePatch(patch)}`),
      delete: async (_name, uid, version) => void (await answer(`delete ${uid} ${version}`)),
    },
    env: 'dev',
    clientId: 'c-0',
    nonce: 'mine',
    facts: () => facts,
    onRolledBack: () => {
      rollbacks += 1;
    },
    clock,
    logger: log.logger,
    metrics,
  });
});

const join = (): Promise<void> => lease.join(stopping.signal, (moment) => void sent.push(moment));
const renew = (): Promise<void> => lease.renew((moment) => void sent.push(moment));
const conflicts = async (): Promise<number> => (await metrics.clientIdConflicts.get()).values[0]?.value ?? 0;

/** Joined in version 7, at the time 0. */
async function joined(): Promise<void> {
  answers = [NOT_FOUND, object(7)];
  await join();
  requests.length = 0;
  sent.length = 0;
}

describe('joining', () => {
  it('creates the lease where there is none', async () => {
    answers = [NOT_FOUND, object(7)];
    expect(lease.isOurs).toBe(false);
    await join();
    expect(requests).toEqual(['0 get', '0 create']);
    expect([lease.isOurs, lease.isTaken, lease.hasLeft, lease.resourceVersion]).toEqual([true, false, false, '7']);
    expect(sent.map(({ monotonicMs }) => monotonicMs)).toEqual([0]);
  });

  it.each<[string, Partial<MemberFacts>, string]>([
    [
      'takes over at once from a process that has left',
      { nonce: 'other', hasLeft: true },
      '0 patch 5 Active taken over',
    ],
    ['goes on from its own, whose answer was lost', {}, '0 patch 5 Active'],
  ])('%s', async (_, found, patch) => {
    answers = [object(5, found), object(6)];
    await join();
    expect(requests).toEqual(['0 get', patch]);
  });

  it('looks each second at the lease of another process, and takes it over when it is the same for 3.8 s', async () => {
    answers = [...Array(5).fill(object(5, { nonce: 'other' })), object(6)];
    const joining = join();
    await clock.advanceAsync(3_999);
    expect(requests).toEqual(['0 get', '1000 get', '2000 get', '3000 get']);
    await clock.advanceAsync(1);
    await joining;
    expect(requests.slice(4)).toEqual(['4000 get', '4000 patch 5 Active taken over']);
    expect([await conflicts(), log.lines]).toEqual([0, []]);
  });

  it('waits while that changes, and says so once', async () => {
    let version = 5;
    answers = [object(version, { nonce: 'other' })];
    void join();
    for (let times = 0; times < 10; times++) {
      await clock.advanceAsync(2_000);
      answers = [object(++version, { nonce: 'other' })];
    }
    expect(requests.every((request) => request.endsWith('get'))).toBe(true);
    expect([await conflicts(), log.lines.length]).toEqual([1, 1]);
    stopping.abort();
  });

  it.each([
    ['3.8 s', 4, 5],
    ['as long as its Lease says where it is of another version,', 6, 7],
  ])('waits %s also for a process whose lease has gone', async (_, leaseDurationSeconds, looks) => {
    const other = object(5, { nonce: 'other' });
    const found = { ...other, spec: { ...other.spec, leaseDurationSeconds } };
    answers = [found, ...Array(looks).fill(NOT_FOUND), object(6)];
    const joining = join();
    await clock.advanceAsync(looks * 1_000 - 1);
    expect(requests).toHaveLength(looks);
    await clock.advanceAsync(1);
    await joining;
    expect(requests.slice(looks)).toEqual([`${looks}000 get`, `${looks}000 create`]);
  });

  it('tries again a second after a failure, and ends when it is stopped', async () => {
    answers = [DOWN];
    const joining = join();
    await clock.advanceAsync(2_500);
    expect([requests, log.lines.length]).toEqual([['0 get', '1000 get', '2000 get'], 3]);
    stopping.abort();
    await joining;
    expect([lease.isOurs, clock.pending]).toEqual([false, 0]);
  });
});

describe('a renewal', () => {
  beforeEach(joined);

  it('is one patch of the version that is known', async () => {
    answers = [object(8), object(9)];
    clock.advance(2_000);
    await renew();
    facts = { ...FACTS, isLeaving: true };
    await renew();
    expect(requests).toEqual(['2000 patch 7 Active', '2000 patch 8 Leaving']);
    expect(sent.map(({ monotonicMs }) => monotonicMs)).toEqual([2_000, 2_000]);
  });

  it.each([NOT_FOUND, OTHER_UID])(
    'makes the lease again that somebody has deleted, with the next try (%#)',
    async (error) => {
      answers = [error];
      await expect(renew()).rejects.toBe(error);
      expect(lease.isOurs).toBe(false);
      answers = [object(8, {}, 'u2')];
      await renew();
      expect(requests.map((request) => request.split(' ')[1])).toEqual(['patch', 'create']);
    },
  );

  it('that fails leaves the lease as it is known', async () => {
    answers = [DOWN];
    await expect(renew()).rejects.toBe(DOWN);
    expect([lease.isOurs, lease.resourceVersion, requests.length, sent]).toEqual([true, '7', 1, []]);
  });

  it.each([CONFLICT, EXISTS])('goes on from its own write, whose answer was lost (%#)', async (error) => {
    answers = [error, object(8), object(9)];
    await renew();
    expect(requests).toEqual(['0 patch 7 Active', '0 get', '0 patch 8 Active']);
    expect([sent.length, lease.resourceVersion, rollbacks]).toEqual([1, '9', 0]);
  });

  it.each([
    ['its own', 'mine', ''],
    ['an earlier process', 'before', ' taken over'],
  ])('shows by an older version, here of %s, that the cluster went back, and goes on', async (_, nonce, words) => {
    answers = [CONFLICT, object(3, { nonce }), object(4)];
    await renew();
    expect(requests).toEqual(['0 patch 7 Active', '0 get', `0 patch 3 Active${words}`]);
    expect([rollbacks, lease.isTaken, lease.resourceVersion]).toEqual([1, false, '4']);
  });

  it('ends this process when another one has its CLIENT_ID, for good', async () => {
    answers = [CONFLICT, object(8, { nonce: 'other' })];
    const taken = { code: 'Cluster.ClientIdTaken' };
    await expect(renew()).rejects.toMatchObject(taken);
    expect([lease.isTaken, lease.isOurs, await conflicts()]).toEqual([true, false, 1]);
    await expect(renew()).rejects.toMatchObject(taken);
    expect(requests).toHaveLength(2);
  });
});

describe('what the watch shows', () => {
  it('means nothing before the lease is ours', () => {
    lease.observe(seen(5, { nonce: 'other' }));
    expect(lease.isTaken).toBe(false);
  });

  it('counts when it is newer', async () => {
    await joined();
    for (const version of [6, 7]) lease.observe(seen(version, { nonce: 'other' }));
    expect([lease.isTaken, lease.resourceVersion]).toEqual([false, '7']);
    lease.observe(seen(8));
    expect([lease.isOurs, lease.resourceVersion]).toEqual([true, '8']);
    lease.observe(seen(9, { nonce: 'other' }));
    expect([lease.isTaken, lease.isOurs]).toEqual([true, false]);
  });

  it('is the end of the lease when that was deleted, not when an earlier one was', async () => {
    await joined();
    lease.observeDeleted(seen(9, {}, 'u0'));
    expect(lease.isOurs).toBe(true);
    lease.observeDeleted(seen(9));
    expect([lease.isOurs, lease.isTaken, lease.resourceVersion]).toEqual([false, false, '']);
    lease.observe(seen(10, {}, 'u2'));
    expect(lease.isOurs).toBe(true);
  });

  it('says what others know of this replica', async () => {
    expect(lease.isPublished(FACTS)).toBe(false);
    await joined();
    expect([lease.isPublished(FACTS), lease.isPublished({ ...FACTS, isLeaving: true })]).toEqual([true, false]);
  });
});

describe('leaving', () => {
  it('is said, then the lease is deleted in that version; nothing is ours from its begin on', async () => {
    await joined();
    answers = [object(8, { hasLeft: true })];
    let isOursWhenLeft: boolean | undefined;
    await lease.leave(() => {
      isOursWhenLeft = lease.isOurs;
      expect(requests).toEqual([]);
    });
    expect(requests).toEqual(['0 patch 7 Left', '0 delete u1 8']);
    lease.observe(seen(9));
    expect([isOursWhenLeft, lease.hasLeft, lease.isOurs, log.lines]).toEqual([false, true, false, []]);
  });

  it('writes nothing to the lease of another process, or to none', async () => {
    await lease.leave(() => {});
    await joined();
    lease.observe(seen(9, { nonce: 'other' }));
    await lease.leave(() => {});
    expect(requests).toEqual([]);
  });

  it.each([
    [NOT_FOUND, 0],
    [CONFLICT, 0],
    [DOWN, 1],
  ])('that fails is made up for by others (%#): %i warnings', async (error, warnings) => {
    await joined();
    answers = [error];
    await lease.leave(() => {});
    await settle();
    expect([requests.length, log.lines.length]).toEqual([1, warnings]);
  });
});

it('the only replica is a member that stays, and whoever else held a lease is gone', () => {
  const sole = new SoleMembership('me');
  expect(sole.members()).toMatchObject([{ id: 'me', isLeaving: false }]);
  expect([sole.isValid(), sole.isCurrent(), sole.silentMs()]).toEqual([true, true, Number.POSITIVE_INFINITY]);
  expect([sole.stateOf('me'), sole.stateOf('earlier')]).toEqual(['Alive', 'Gone']);
});
