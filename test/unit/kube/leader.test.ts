import { beforeEach, describe, expect, it } from 'vitest';
import { Leader } from '../../../src/kube/leader.ts';
import type { LeaseObject } from '../../../src/kube/objects.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Candidate, KEY, LeaderWorld, NAME, NAMESPACE } from './support/leader-world.ts';

let world: LeaderWorld;

beforeEach(() => {
  world = new LeaderWorld();
});

async function led(): Promise<[first: Candidate, second: Candidate]> {
  const first = world.start('a');
  await world.pass(1_000);
  const second = world.start('b');
  await world.pass(10_000);
  expect(world.leading).toEqual(['a']);
  return [first, second];
}

describe('the leader', () => {
  it('is the first, and renews every 5 s without a read', async () => {
    const [first] = await led();
    first.requests.length = 0;
    await world.pass(60_000);
    expect(world.leading).toEqual(['a']);
    expect(first.requests).toEqual(Array.from({ length: 12 }, () => 'patch'));
    expect(first.said).toEqual(['started']);
    expect(world.server.leases.get(KEY)?.spec).toMatchObject({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      leaseTransitions: 0,
    });
  });

  it('is followed after 10 to 18.5 s when it dies: its last renewal was 5 s ago at most', async () => {
    const [first] = await led();
    first.host.kill();
    await world.pass(9_900);
    expect(world.leading).toEqual([]);
    await world.pass(8_600);
    expect(world.leading).toEqual(['b']);
    expect(world.server.leases.get(KEY)?.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
  });

  it('is followed within 4 s when it ends', async () => {
    const [first, second] = await led();
    first.stopping.abort();
    await world.pass(200);
    await first.ended;
    expect(first.said).toEqual(['started', 'stopped']);
    await world.pass(3_800);
    expect(world.leading).toEqual(['b']);
    expect(second.said).toEqual(['started']);
  });

  it('stops by itself before another one starts, when it cannot reach the API server', async () => {
    const [first] = await led();
    first.link.breakage = 'Drops';
    await world.pass(12_100);
    expect(first.said).toEqual(['started', 'stopped']);
    await world.pass(10_000);
    expect(world.leading).toEqual(['b']);
    first.link.breakage = undefined;
    await world.pass(60_000);
    expect(world.leading).toEqual(['b']);
  });

  it('goes on after an outage of the API server that is shorter than its term', async () => {
    const [first] = await led();
    world.machine.breakage = 'Refuses';
    await world.pass(6_000);
    world.machine.breakage = undefined;
    await world.pass(30_000);
    expect(first.said).toEqual(['started']);
  });

  it('makes a deleted Lease again, and nobody is faster', async () => {
    const [first] = await led();
    world.server.drop(KEY);
    await world.pass(20_000);
    expect(world.leading).toEqual(['a']);
    expect(first.said).toEqual(['started']);
  });

  it('leads no longer when somebody has made another one the holder', async () => {
    const [first] = await led();
    const { resourceVersion } = world.server.leases.get(KEY)?.metadata ?? {};
    world.server.patch(NAMESPACE, NAME, { metadata: { resourceVersion }, spec: { holderIdentity: 'nobody' } });
    await world.pass(6_000);
    expect(first.said).toEqual(['started', 'stopped']);
    await world.pass(30_000);
    expect(world.leading).toHaveLength(1);
  });

  it('leads no longer when somebody else was first to make its deleted Lease again', async () => {
    const first = world.start('a');
    await world.pass(10_000);
    world.server.drop(KEY);
    first.onRequest = (verb) => {
      if (verb !== 'post') return;
      const spec = { holderIdentity: 'other', leaseDurationSeconds: 15 };
      world.server.put({ metadata: { namespace: NAMESPACE, name: NAME }, spec } as LeaseObject);
    };
    await world.pass(6_000);
    expect(first.said).toEqual(['started', 'stopped']);
  });

  it('says in its metric whether it leads', async () => {
    const [first, second] = await led();
    expect([await first.shownAsLeading(), await second.shownAsLeading()]).toEqual([1, 0]);
    first.stopping.abort();
    await world.pass(6_000);
    expect([await first.shownAsLeading(), await second.shownAsLeading()]).toEqual([0, 1]);
  });

  it('tries again every second while its renewals fail, and warns once', async () => {
    const [first] = await led();
    world.machine.breakage = 'Refuses';
    first.requests.length = 0;
    while (first.requests.length === 0) await world.pass(100);
    await world.pass(4_000);
    expect(first.requests).toHaveLength(5);
    expect(first.warnings).toEqual(['leader Lease not renewed']);
  });

  it.each([
    ['its name', { holderIdentity: '' }],
    ['its name and duration', { holderIdentity: null, leaseDurationSeconds: null }],
  ])('may still lead when somebody has erased %s from the Lease, so nobody takes that at once', async (_, spec) => {
    await led();
    const { resourceVersion } = world.server.leases.get(KEY)?.metadata ?? {};
    world.server.patch(NAMESPACE, NAME, { metadata: { resourceVersion }, spec });
    await world.pass(40_000);
    expect(world.leading).toHaveLength(1);
  });
});

describe('a process that does not lead', () => {
  it('looks every 3 s, also while the API server is away, and warns once', async () => {
    world.machine.breakage = 'Refuses';
    const first = world.start('a');
    await world.pass(8_900);
    expect(first.requests).toEqual(['get', 'get', 'get']);
    expect(first.warnings).toEqual(['leader Lease not renewed']);
    world.machine.breakage = undefined;
    await world.pass(5_000);
    expect(world.leading).toEqual(['a']);
  });
});

it('a Lease with an older version than before shows that the cluster went back, once', async () => {
  const clock = new FakeClock();
  let version = 99;
  let rollbacks = 0;
  const answer = async (): Promise<LeaseObject> => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: NAME, namespace: NAMESPACE, uid: 'u', resourceVersion: String(++version) },
    spec: { holderIdentity: 'a', leaseDurationSeconds: 15 },
  });
  const leader = new Leader({
    api: { get: answer, create: answer, patch: answer, delete: async () => {} },
    name: NAME,
    namespace: NAMESPACE,
    identity: 'a',
    onRolledBack: () => rollbacks++,
    clock,
    logger: silentLogger,
    metrics: createMetrics(),
  });
  const stopping = new AbortController();
  const ended = leader.run(stopping.signal);
  await clock.advanceAsync(60_000);
  expect([rollbacks, leader.isLeading()]).toEqual([0, true]);
  version = 50;
  await clock.advanceAsync(60_000);
  expect([rollbacks, leader.isLeading()]).toEqual([1, true]);
  stopping.abort();
  await ended;
});
