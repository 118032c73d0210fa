import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { inflict, outage } from '../../support/lease-simulation/faults.ts';
import { checkAtRest, sharesOf, watchOver } from '../../support/lease-simulation/invariants.ts';
import { EVERY_20_S, renewIntervals } from '../../support/lease-simulation/scene.ts';
import { World } from '../../support/lease-simulation/world.ts';
import { runsOf } from '../../support/property-runs.ts';

vi.setConfig({ testTimeout: 600_000 });

const LOOK_MS = 50;
/** The fence, and the longest time since the last renewal. */
const NOTICED_MS = 5_500;

interface Cluster {
  readonly seed: number;
  readonly replicas: number;
  readonly bases: number;
  /** Renewals have a phase of their own each time. */
  readonly moment: number;
  readonly isRebalancing: boolean;
  readonly renewIntervalMs: number;
}

const clusters = (min: number, max: number, more: Partial<Cluster> = {}): fc.Arbitrary<Cluster> =>
  fc
    .record({
      seed: fc.nat(),
      replicas: fc.integer({ min: 2, max: 4 }),
      bases: fc.integer({ min, max }),
      moment: fc.nat({ max: 20_000 }),
      isRebalancing: fc.boolean(),
      renewIntervalMs: renewIntervals,
    })
    .map((cluster) => ({ ...cluster, ...more }));

/** Runs it in many clusters in which nothing has gone wrong so far. */
async function inClusters<T>(
  given: fc.Arbitrary<Cluster>,
  fate: fc.Arbitrary<T>,
  check: (world: World, fate: T) => Promise<void>,
  numRuns = runsOf(10),
): Promise<void> {
  const property = fc.asyncProperty(given, fate, async ({ bases, moment, ...options }, what) => {
    const world = new World({ ...options, maxLatencyMs: 50 });
    try {
      watchOver(world);
      await world.pass(5_000);
      world.appear(bases, 1_000);
      await world.pass(30_000 + moment);
      checkAtRest(world);
      await check(world, what);
    } finally {
      world.close();
    }
  });
  await fc.assert(property, { numRuns });
}

/** How long it takes until each of them has a leader. */
async function untilLed(world: World, names: readonly string[], limitMs: number): Promise<number> {
  const startedAt = world.timeline.now;
  const isDone = (): boolean => names.every((name) => world.leadersOf(name).length === 1);
  while (!isDone() && world.timeline.now - startedAt < limitMs) await world.pass(LOOK_MS);
  return world.timeline.now - startedAt;
}

const nothing = fc.constant(undefined);
const which = fc.nat({ max: 3 });
const pick = <T>(items: readonly T[], index: number): T => items[index % items.length] as T;

it('what a killed replica led is led by others within 5 s', async () => {
  await inClusters(clusters(4, 30), which, async (world, index) => {
    const hit = pick(world.replicas, index);
    const names = hit.leases.heldNames();
    hit.host.kill();
    expect(await untilLed(world, names, 20_000)).toBeLessThanOrEqual(5_000);
  });
});

it('a Node does not become Unknown when its leader is killed, cut off or stopped, though Leases are renewed every 20 s only', async () => {
  const fates = fc.record({ index: which, how: fc.constantFrom('Kill' as const, 'Cut' as const, 'Stop' as const) });
  await inClusters(clusters(4, 30, { renewIntervalMs: EVERY_20_S }), fates, async (world, { index, how }) => {
    const replica = world.replicas.indexOf(pick(world.replicas, index));
    if (how === 'Kill') inflict(world, { kind: 'Kill', replica, restartMs: undefined });
    if (how === 'Cut') inflict(world, { kind: 'Cut', replica, breakage: 'Drops', ms: 90_000 });
    if (how === 'Stop') inflict(world, { kind: 'Stop', replica, ms: 90_000, isSuspended: false });
    await world.pass(120_000);
    expect(world.longestSilenceMs()).toBeGreaterThan(19_000);
    expect(world.longestSilenceMs()).toBeLessThan(35_000);
  });
});

it('what a replica led that is told to end is led by others within 2 s, and it ends', async () => {
  await inClusters(clusters(4, 30), which, async (world, index) => {
    const hit = pick(world.replicas, index);
    const names = hit.leases.heldNames();
    hit.end();
    const others = (): boolean => names.every((name) => world.leadersOf(name).some((leader) => leader !== hit));
    const startedAt = world.timeline.now;
    while (!others() && world.timeline.now - startedAt < 10_000) await world.pass(LOOK_MS);
    expect(world.timeline.now - startedAt).toBeLessThanOrEqual(2_000);
    await world.pass(2_000);
    expect(hit.isLive).toBe(false);
    expect([...world.server.leases.keys()].filter((key) => key.endsWith(hit.clientId))).toEqual([]);
  });
});

it('an API server that is away for all, for however long, moves no lease', async () => {
  const lengths = fc.oneof(
    fc.integer({ min: 100, max: 120_000 }),
    fc.integer({ min: 1_500, max: 3_800 }),
    fc.integer({ min: 3_800, max: 6_500 }),
    fc.integer({ min: 1_500, max: 20_000 }),
  );
  const fates = fc.record({
    how: fc.constantFrom('Refuses' as const, 'Drops' as const, 'Freezes' as const),
    ms: lengths,
    last: fc.nat({ max: 3 }),
    lateMs: fc.integer({ min: 0, max: 8_000 }),
  });
  await inClusters(
    clusters(4, 8),
    fates,
    async (world, { how, ms, last, lateMs }) => {
      const before = world.holders();
      const count = world.transitions.length;
      outage(world, how, ms);
      await world.pass(ms);
      // After one that was noticed by all, one of them finds its way back later than the others.
      if (ms > NOTICED_MS) inflict(world, { kind: 'Cut', replica: last, breakage: 'Refuses', ms: lateMs });
      await world.pass(60_000);
      expect(world.transitions.slice(count)).toEqual([]);
      expect(world.holders()).toEqual(before);
      checkAtRest(world);
    },
    100,
  );
});

it('a follower asks for nothing but its own membership', async () => {
  await inClusters(clusters(4, 20, { isRebalancing: false }), nothing, async (world) => {
    const follower = world.start(world.replicas.length);
    await world.pass(20_000);
    follower.requests.length = 0;
    await world.pass(60_000);
    expect(new Set(follower.requests)).toEqual(
      new Set([`patch kube-node-lease/module-controller.dev.${follower.clientId}`]),
    );
    expect(follower.requests.length).toBeLessThanOrEqual(63);
  });
});

it('of VNodes that come at once each is tried for once, hardly ever twice, and shares are even', async () => {
  await inClusters(clusters(1, 1), fc.integer({ min: 20, max: 60 }), async (world, count) => {
    for (const { requests } of world.replicas) requests.length = 0;
    world.appear(count, 1_000);
    await world.pass(15_000);
    checkAtRest(world);
    const tries = world.replicas.flatMap(({ requests }) =>
      requests.filter((request) => request.startsWith('post kube-node-lease/vnode.')),
    );
    expect(tries.length).toBeLessThanOrEqual(1.2 * count);
    const shares = sharesOf(world);
    expect(Math.max(...shares)).toBeLessThanOrEqual(Math.ceil((count + 1) / shares.length) + 1);
  });
});

it('another process with the CLIENT_ID of a live one waits, and leads only when that one is dead', async () => {
  await inClusters(clusters(4, 12), which, async (world, index) => {
    const first = pick(world.replicas, index);
    const names = first.leases.heldNames();
    const second = world.start(world.replicas.indexOf(first));
    await world.pass(60_000);
    expect(second.membership.term).toBe(0);
    expect(first.leases.heldNames().sort()).toEqual(names.sort());
    first.host.kill();
    await world.pass(20_000);
    expect(second.membership.isValid()).toBe(true);
  });
});

it('a replica that joins gets its share by the fewest moves, each lease moves once', async () => {
  await inClusters(clusters(8, 40, { isRebalancing: true }), nothing, async (world) => {
    await world.pass(60_000);
    const before = new Map(world.replicas.map((replica) => [replica, replica.leases.heldNames().length]));
    const count = world.transitions.length;
    const joined = world.start(world.replicas.length);
    await world.pass(60_000);
    const moves = world.transitions.slice(count);
    const shares = sharesOf(world);
    expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(2);
    expect(new Set(moves.map(({ nodeName }) => nodeName)).size).toBe(moves.length);
    expect(moves.filter(({ to }) => to !== joined.clientId)).toEqual([]);
    const given = [...before].map(([replica, had]) => had - replica.leases.heldNames().length);
    expect(Math.min(...given)).toBeGreaterThanOrEqual(0);
    await world.pass(60_000);
    expect(world.transitions.length).toBe(count + moves.length);
  });
});
