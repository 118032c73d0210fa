import { beforeEach, describe, expect, it } from 'vitest';
import type { Patch } from '../../../src/kube/client.ts';
import type { LeaseObject } from '../../../src/kube/objects.ts';
import { ApiError } from '../../../src/kube/transport/api-error.ts';
import { type CachedLease, firstRenewalInMs, nextRenewalInMs, projectLease } from '../../../src/lease/lease.ts';
import { type Hold, type LossReason, newHold } from '../../../src/lease/lease-hold.ts';
import { LeaseWriter, type Written } from '../../../src/lease/lease-writer.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeMembership } from '../../support/fake-membership.ts';

const INTERVAL_MS = 10_000;
const NODE = 'vnode.b1';
const CONFLICT = new ApiError('PATCH', { status: 409, reason: 'Conflict' });
const EXISTS = new ApiError('POST', { status: 409, reason: 'AlreadyExists' });
const NOT_FOUND = new ApiError('PATCH', { status: 404 });
const OTHER_UID = new ApiError('PATCH', { status: 422, causes: [{ field: 'metadata.uid' }] });
const DOWN = new ApiError('PATCH', { status: 500 });

interface Given {
  readonly holder?: string;
  readonly version?: number;
  readonly transitions?: number;
  readonly uid?: string;
  readonly env?: string | undefined;
}

function leaseObject({
  holder = 'me',
  version = 7,
  transitions = 3,
  uid = 'l1',
  env = 'dev',
}: Given = {}): LeaseObject {
  const labels = {
    'virtual-kubelet.koupleless.io/component': 'vnode-lease',
    ...(env !== '' && { 'virtual-kubelet.koupleless.io/env': env }),
  };
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: NODE, namespace: 'kube-node-lease', uid, resourceVersion: String(version), labels },
    spec: { holderIdentity: holder, leaseTransitions: transitions, renewTime: '2025-01-01T00:00:00.000000Z' },
  };
}
const cached = (given: Given = {}): CachedLease => projectLease(leaseObject(given), 'dev');

/** A writer whose requests are answered one after the other as a test says. */
class Rig {
  readonly clock = new FakeClock();
  readonly metrics = createMetrics();
  readonly membership = new FakeMembership(this.clock);
  readonly requests: string[] = [];
  answers: (LeaseObject | Error)[] = [];
  /** What was queued, with the delay. */
  readonly queued: [string, number?][] = [];
  readonly upserted: LeaseObject[] = [];
  readonly heard: CachedLease[] = [];
  readonly written: Written[] = [];
  readonly refused: LossReason[] = [];
  rollbacks = 0;
  readonly informed = new Map<string, CachedLease>();
  readonly writer: LeaseWriter;
  hold: Hold = newHold(0);
  nodeUid: string | undefined;
  /** Called with each request. */
  onRequest: () => void = () => {};

  constructor(isCluster = true) {
    const answer = async (request: string): Promise<LeaseObject> => {
      this.requests.push(request);
      this.onRequest();
      const next = this.answers.shift() ?? leaseObject();
      if (next instanceof Error) throw next;
      return next;
    };
    this.writer = new LeaseWriter({
      api: {
        getLease: () => answer('get'),
        createLease: () => answer('create'),
        patchLease: (_name, patch: Patch) => answer(`patch ${JSON.stringify(patch.spec)}`),
        deleteLease: async (_name, uid, version) => void (await answer(`delete ${uid} ${version}`)),
      },
      informer: {
        get: (key) => this.informed.get(key),
        upsert: (object) => void this.upserted.push(object as LeaseObject),
      },
      membership: this.membership,
      env: 'dev',
      holder: 'me',
      isCluster,
      renewIntervalMs: INTERVAL_MS,
      nodeUidOf: () => this.nodeUid,
      queue: {
        add: (key) => void this.queued.push([key]),
        addAfter: (key, delayMs) => void this.queued.push([key, delayMs]),
      },
      onLease: (lease) => this.heard.push(lease),
      onWritten: (_name, _hold, written) => this.written.push(written),
      onRefused: (_name, _hold, reason) => this.refused.push(reason),
      onRolledBack: () => this.rollbacks++,
      clock: this.clock,
      logger: silentLogger,
      metrics: this.metrics,
    });
  }

  write(): Promise<void> {
    return this.writer.write(NODE, this.hold, 'Expired');
  }

  async counts(name: 'leaseRenewals' | 'leaseClaims' | 'leaseHandOvers'): Promise<Record<string, number>> {
    const { values } = await this.metrics[name].get();
    const counted = values.filter(({ value }) => value > 0);
    return Object.fromEntries(counted.map(({ labels, value }) => [Object.values(labels).join(), value]));
  }
}

let rig: Rig;
beforeEach(() => {
  rig = new Rig();
});

describe('versions of the answers to writes', () => {
  const writeOf = async (version: number): Promise<number> => {
    rig.hold = { ...newHold(0), lease: cached({ version: 1 }) };
    rig.answers = [leaseObject({ version })];
    await rig.write();
    return rig.rollbacks;
  };

  it('rise, and say nothing', async () => {
    expect([await writeOf(99), await writeOf(100), await writeOf(1_000)]).toEqual([0, 0, 0]);
  });

  it('show that the cluster went back when a later write has an older one, once for each time', async () => {
    expect([await writeOf(1_000), await writeOf(999), await writeOf(1_000), await writeOf(1_001)]).toEqual([
      0, 1, 1, 1,
    ]);
    expect(await writeOf(1_001)).toBe(2);
  });

  it('of writes that cross say nothing, in whichever order the answers come', async () => {
    await writeOf(10);
    rig.hold = { ...newHold(0), lease: cached({ version: 1 }) };
    rig.answers = [leaseObject({ version: 12 }), leaseObject({ version: 11 })];
    await Promise.all([rig.write(), rig.write()]);
    expect(rig.rollbacks).toBe(0);
    expect(await writeOf(12)).toBe(1);
  });
});

describe('the version of a lease that was read after a conflict', () => {
  it.each([
    ['older', 6, 1],
    ['the same', 7, 0],
    ['newer', 8, 0],
  ])('%s: shows that the cluster went back only when it is older', async (_, version, rollbacks) => {
    rig.hold.lease = cached({ version: 7 });
    rig.answers = [CONFLICT, leaseObject({ version })];
    await rig.write();
    expect(rig.rollbacks).toBe(rollbacks);
  });

  it('says nothing when the lease was deleted and made again', async () => {
    rig.hold.lease = cached({ version: 7 });
    rig.answers = [CONFLICT, leaseObject({ version: 6, uid: 'l2' })];
    await rig.write();
    expect(rig.rollbacks).toBe(0);
  });
});

describe('a write of a lease', () => {
  it('that takes it counts as a claim; it is renewed at its own moment, if that is not too soon', async () => {
    rig.hold.lease = cached({ holder: 'other' });
    rig.answers = [leaseObject({ version: 8 })];
    rig.clock.advance(9_000);
    rig.onRequest = () => rig.clock.advance(100);
    await rig.write();
    const delayMs = firstRenewalInMs(NODE, { now: 9_100, intervalMs: INTERVAL_MS });
    expect(delayMs).not.toBe(nextRenewalInMs(NODE, { now: 9_100, intervalMs: INTERVAL_MS }));
    expect(rig.written).toEqual([{ sentAt: 9_000, term: 1, reason: 'Expired', renewAt: 9_100 + delayMs }]);
    expect(rig.queued).toEqual([[NODE, delayMs]]);
    expect([await rig.counts('leaseRenewals'), await rig.counts('leaseClaims')]).toEqual([{ ok: 1 }, { ok: 1 }]);
    expect(rig.hold.lease?.resourceVersion).toBe('8');
    expect(rig.upserted).toHaveLength(1);
  });

  it('that renews it counts as no claim', async () => {
    rig.hold = { ...rig.hold, lease: cached(), term: 1 };
    rig.answers = [leaseObject({ version: 8 })];
    rig.clock.advance(9_000);
    await rig.write();
    expect(rig.queued).toEqual([[NODE, nextRenewalInMs(NODE, { now: 9_000, intervalMs: INTERVAL_MS })]]);
    expect([await rig.counts('leaseRenewals'), await rig.counts('leaseClaims')]).toEqual([{ ok: 1 }, {}]);
  });

  it('holds nothing when the watch shows a newer version before the answer comes: it is decided again', async () => {
    rig.hold.lease = cached({ version: 9 });
    rig.answers = [leaseObject({ version: 8 })];
    await rig.write();
    expect([rig.written, rig.queued, rig.hold.lease?.resourceVersion]).toEqual([[], [[NODE]], '9']);
  });

  it.each([
    ['of one that stands by now', undefined, EXISTS, 'lost'],
    ['of one that has changed', cached({ holder: 'other' }), CONFLICT, 'lost'],
    ['that the API server cannot take', cached({ holder: 'other' }), DOWN, 'error'],
  ])('%s is a claim that is counted by its end', async (_, lease, error, result) => {
    rig.hold.lease = lease;
    rig.answers = [error];
    await rig.write().catch((caught: unknown) => expect(caught).toBe(DOWN));
    expect([await rig.counts('leaseRenewals'), await rig.counts('leaseClaims')]).toEqual([
      { error: 1 },
      { [result]: 1 },
    ]);
    expect(rig.written).toEqual([]);
  });

  it('that fails for another reason is left to the queue', async () => {
    rig.hold.lease = cached();
    rig.answers = [DOWN];
    await expect(rig.write()).rejects.toBe(DOWN);
    expect([rig.requests.length, rig.queued, rig.refused]).toEqual([1, [], []]);
  });

  it.each([
    ['is gone', NOT_FOUND],
    ['was made again', OTHER_UID],
  ])('of a lease that %s begins anew, without a read', async (_, error) => {
    rig.hold.lease = cached();
    rig.answers = [error];
    await rig.write();
    expect([rig.requests.length, rig.hold.lease, rig.queued]).toEqual([1, undefined, [[NODE]]]);
  });

  it('that cannot create, for its namespace is not there, is left to the queue', async () => {
    rig.answers = [NOT_FOUND];
    await expect(rig.write()).rejects.toBe(NOT_FOUND);
    expect(rig.queued).toEqual([]);
  });
});

describe('a lease that somebody else has written', () => {
  it('is read once, and counts as it stands', async () => {
    rig.hold.lease = cached({ version: 9 });
    const answer = leaseObject({ holder: 'other', version: 8 });
    rig.answers = [CONFLICT, answer];
    await rig.write();
    expect([rig.requests.at(-1), rig.hold.lease, rig.queued]).toEqual(['get', undefined, [[NODE]]]);
    expect([rig.upserted, rig.heard]).toEqual([[answer], [projectLease(answer, 'dev')]]);
  });

  it.each([
    ['that was taken for deleted was not', 'l1', undefined],
    ['was made after one that is deleted', 'l2', 'l1'],
  ])('%s', async (_, uid, deletedUid) => {
    rig.hold.deleted = cached({ uid: 'l1' });
    rig.answers = [EXISTS, leaseObject({ uid })];
    await rig.write();
    expect(rig.hold.deleted?.uid).toBe(deletedUid);
  });

  it('is doubted while it is read, and lost unless it is still ours', async () => {
    const doubts: boolean[] = [];
    rig.onRequest = () => doubts.push(rig.hold.isDoubted);
    for (const [known, found] of [
      [{}, {}],
      [{}, { transitions: 4 }],
      [{}, { holder: 'other' }],
    ] as const) {
      rig.hold = { ...newHold(0), lease: cached(known) };
      rig.answers = [CONFLICT, leaseObject({ ...found, version: 8 })];
      await rig.write();
      expect(rig.hold.isDoubted).toBe(false);
    }
    expect(doubts).toEqual([false, true, false, true, false, true]);
    expect(rig.refused).toEqual(['Conflict', 'Conflict']);
  });

  it('is still ours when it was taken for deleted', async () => {
    rig.hold.deleted = cached();
    rig.answers = [EXISTS, leaseObject()];
    await rig.write();
    expect(rig.refused).toEqual([]);
  });

  it('is lost when it cannot be read', async () => {
    rig.hold.lease = cached();
    rig.answers = [CONFLICT, DOWN];
    await expect(rig.write()).rejects.toBe(DOWN);
    expect([rig.refused, rig.hold.isDoubted]).toEqual([['Conflict'], false]);
  });

  it('is not doubted by a controller that is alone', async () => {
    rig = new Rig(false);
    rig.hold.lease = cached();
    rig.onRequest = () => expect(rig.hold.isDoubted).toBe(false);
    rig.answers = [CONFLICT, leaseObject({ holder: 'other', version: 8 })];
    await rig.write();
    expect([rig.refused, rig.requests.length]).toEqual([[], 2]);
  });

  it('of another ENV is left alone, and looked at again a minute later', async () => {
    rig.answers = [EXISTS, leaseObject({ holder: 'theirs', env: 'prod' })];
    await rig.write();
    expect([rig.refused.at(-1), rig.queued, rig.upserted, rig.heard]).toEqual(['Foreign', [[NODE, 60_000]], [], []]);
    expect((await rig.metrics.nodeNameConflicts.get()).values[0]?.value).toBe(1);
  });

  it('of no ENV is nobody’s', async () => {
    rig.answers = [EXISTS, leaseObject({ holder: 'theirs', env: '' })];
    await rig.write();
    expect([rig.refused, rig.heard.length]).toEqual([['Conflict'], 1]);
  });
});

describe('a hand-over', () => {
  let dones: number;
  const handOver = (lease: CachedLease | undefined, isMember = true): Promise<boolean> => {
    dones = 0;
    rig.hold.lease = lease;
    rig.hold.handOver = { to: 'b', reason: 'Leaving', done: () => dones++ };
    return rig.writer.writeHandOver(NODE, rig.hold, isMember);
  };

  it('is one write', async () => {
    rig.answers = [leaseObject({ holder: 'b', version: 8, transitions: 4 })];
    expect(await handOver(cached())).toBe(true);
    expect(rig.requests).toEqual([expect.stringMatching(/^patch .*"holderIdentity":"b".*"leaseTransitions":4/)]);
    expect([dones, rig.hold.handOver, rig.hold.lease?.holder]).toEqual([1, undefined, 'b']);
    expect([await rig.counts('leaseHandOvers'), rig.upserted.length]).toEqual([{ Leaving: 1 }, 1]);
  });

  it('that nobody asked for is none', async () => {
    rig.hold.lease = cached();
    expect(await rig.writer.writeHandOver(NODE, rig.hold, true)).toBe(false);
    expect(rig.requests).toEqual([]);
  });

  it.each([
    ['while this replica is no member', cached(), false],
    ['of a lease that another replica holds', cached({ holder: 'other' }), true],
    ['of a lease that is gone', undefined, true],
  ])('is needless %s', async (_, lease, isMember) => {
    expect(await handOver(lease, isMember)).toBe(false);
    expect([dones, rig.hold.handOver, rig.requests]).toEqual([1, undefined, []]);
  });

  it.each([
    [CONFLICT, 2],
    [NOT_FOUND, 1],
    [OTHER_UID, 1],
  ])('has ended when the lease is another one by now (%#)', async (error, requests) => {
    rig.answers = [error];
    expect(await handOver(cached())).toBe(true);
    expect([dones, rig.hold.handOver, rig.requests.length]).toEqual([1, undefined, requests]);
    expect(await rig.counts('leaseHandOvers')).toEqual({});
  });

  it('is tried again when the API server cannot take it', async () => {
    rig.answers = [DOWN];
    await expect(handOver(cached())).rejects.toBe(DOWN);
    expect([dones, rig.hold.handOver?.to]).toEqual([0, 'b']);
  });
});

describe('a lease that has to go', () => {
  it('goes in the version that was seen; for a controller that is alone, in any', async () => {
    await rig.writer.remove(cached());
    expect(rig.requests).toEqual(['delete l1 7']);
    rig = new Rig(false);
    await rig.writer.remove(cached());
    expect(rig.requests).toEqual(['delete l1 undefined']);
  });

  it('may have gone', async () => {
    rig.answers = [NOT_FOUND, CONFLICT];
    for (let times = 0; times < 2; times++) await rig.writer.remove(cached());
    await rig.writer.remove(undefined);
    expect(rig.requests).toHaveLength(2);
    rig.answers = [DOWN];
    await expect(rig.writer.remove(cached())).rejects.toBe(DOWN);
  });

  it.each<[string, CachedLease | undefined, string | undefined, number]>([
    ['has no owner, and its Node is not there', cached(), undefined, 1],
    ['has an owner', { ...cached(), ownerUid: 'n1' }, undefined, 0],
    ['has a Node', cached(), 'n1', 0],
    ['is gone', undefined, undefined, 0],
  ])('as an orphan when it %s: %i request', async (_, lease, nodeUid, requests) => {
    if (lease) rig.informed.set(`kube-node-lease/${NODE}`, lease);
    rig.nodeUid = nodeUid;
    await rig.writer.removeOrphan(NODE);
    expect(rig.requests).toHaveLength(requests);
  });
});
