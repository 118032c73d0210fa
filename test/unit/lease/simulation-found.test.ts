import { afterEach, expect, it } from 'vitest';
import { checkAtRest, watchOver } from '../../support/lease-simulation/invariants.ts';
import { NO_NOISE } from '../../support/lease-simulation/link.ts';
import type { Replica } from '../../support/lease-simulation/replica.ts';
import { play } from '../../support/lease-simulation/scene.ts';
import { World } from '../../support/lease-simulation/world.ts';

/** What the simulation has found once, each by itself. */
const SEEDS = Array.from({ length: 12 }, (_, index) => index);

let world: World;

afterEach(() => world.close());

/** Two replicas that lead some VNodes each; every step is checked. */
async function started(
  seed: number,
  maxLatencyMs = 20,
): Promise<{ leader: Replica; other: Replica; nodeName: string }> {
  world = new World({ seed, replicas: 2, maxLatencyMs, isRebalancing: false });
  watchOver(world);
  world.appear(4);
  await world.pass(20_000 + seed * 170);
  const leader = world.live().find(({ leases }) => leases.heldNames().length > 0);
  const other = world.live().find((replica) => replica !== leader);
  const nodeName = leader?.leases.heldNames()[0];
  if (leader === undefined || other === undefined || nodeName === undefined) throw new Error('nobody leads');
  return { leader, other, nodeName };
}

it.each(SEEDS)('a lease that is given away while it is being renewed is not led again (%i)', async (seed) => {
  const { leader, other, nodeName } = await started(seed, 300);
  const count = leader.requests.length;
  const isRenewing = (): boolean => leader.requests.slice(count).some((request) => request.endsWith(`/${nodeName}`));
  while (!isRenewing()) await world.pass(5);
  const given = leader.leases.handOver(nodeName, other.clientId, 'Rebalancing');
  await world.pass(3_000);
  await given;
  expect(other.isHeld(nodeName)).toBe(true);
});

it.each(SEEDS)('a lease whose deletion went unheard is not led on (%i)', async (seed) => {
  const { leader, other, nodeName } = await started(seed);
  other.leases.forget(nodeName);
  leader.told.delete(nodeName);
  leader.link.noise = { ...NO_NOISE, unanswered: 1 };
  const released = leader.leases.release(nodeName).catch(() => 'failed');
  leader.link.noise = NO_NOISE;
  await world.pass(1_000);
  other.leases.follow(nodeName);
  await world.pass(10_000);
  expect(await released).toBe('failed');
  checkAtRest(world);
});

it.each(SEEDS)('a lease that somebody deletes is made again by who leads it, and by nobody else (%i)', async (seed) => {
  const { leader, nodeName } = await started(seed);
  leader.watch.hang();
  world.server.drop(`kube-node-lease/${nodeName}`);
  await world.pass(seed * 1_000);
  leader.watch.unhang();
  await world.pass(5_000);
  expect(leader.isHeld(nodeName)).toBe(true);
  checkAtRest(world);
});

it.each(SEEDS)('what a replica that came back leads is not taken by one whose watch lags (%i)', async (seed) => {
  const { leader, other } = await started(seed);
  other.watch.lagMs = 6_000 + seed * 150;
  leader.host.kill();
  world.start(world.replicas.indexOf(leader));
  await world.pass(30_000);
  other.watch.lagMs = 0;
  await world.pass(20_000);
  checkAtRest(world);
});

it.each(SEEDS)(
  'a late deletion of a membership lease does not let two processes of one CLIENT_ID in (%i)',
  async (seed) => {
    const { leader } = await started(seed);
    const index = world.replicas.indexOf(leader);
    world.start(index);
    leader.end();
    const isDeleting = (): boolean =>
      leader.requests.at(-1)?.startsWith('delete kube-node-lease/module-controller.') === true;
    while (leader.leases.heldNames().length > 0) await world.pass(1);
    leader.link.noise = { ...NO_NOISE, late: 1 };
    for (let step = 0; step < 1_000 && !isDeleting(); step++) await world.pass(5);
    world.start(index);
    await world.pass(60_000);
    checkAtRest(world);
  },
);

it('a lease that comes to a replica which has given all away is not led beyond the end of its membership', async () => {
  await play({
    seed: 0,
    replicas: 2,
    bases: 2,
    maxLatencyMs: 300,
    isRebalancing: true,
    renewIntervalMs: 10_000,
    happenings: [
      { afterMs: 0, fault: { kind: 'Appear', count: 4 } },
      { afterMs: 651, fault: { kind: 'Outage', how: 'Drops', ms: 4500 } },
      { afterMs: 1141, fault: { kind: 'End', replica: 0, restartMs: undefined } },
      { afterMs: 7000, fault: { kind: 'Appear', count: 1 } },
    ],
  });
});

it('a lease that was deleted before a replica heard of its base is not made while its leader may lead on', async () => {
  await play({
    seed: 1459745591,
    replicas: 4,
    bases: 3,
    maxLatencyMs: 2,
    isRebalancing: false,
    renewIntervalMs: 10_000,
    happenings: [
      { afterMs: 6172, fault: { kind: 'Tunnel', replica: 0, tunnel: 0, ms: 9000 } },
      {
        afterMs: 941,
        fault: {
          kind: 'Noise',
          replica: 3,
          noise: { lost: 0.5, unanswered: 0, late: 0.5, cut: 0, refused: 0 },
          ms: 4500,
        },
      },
      { afterMs: 4525, fault: { kind: 'Lag', replica: 0, lagMs: 10, ms: 300 } },
      { afterMs: 1488, fault: { kind: 'Vanish', base: 1, againMs: 2419 } },
      { afterMs: 1208, fault: { kind: 'Stop', replica: 2, ms: 4500, isSuspended: false } },
      { afterMs: 7, fault: { kind: 'End', replica: 0, restartMs: 0 } },
      { afterMs: 2776, fault: { kind: 'Vanish', base: 0, againMs: undefined } },
      {
        afterMs: 991,
        fault: { kind: 'Noise', replica: 0, noise: { lost: 0, unanswered: 0, late: 0, cut: 0, refused: 0 }, ms: 300 },
      },
      { afterMs: 299, fault: { kind: 'Outage', how: 'Refuses', ms: 4500 } },
    ],
  });
});

it('a lease that it was our turn to take is taken in the next term, when the create stayed without an answer', async () => {
  await play({
    seed: 3,
    replicas: 2,
    bases: 4,
    maxLatencyMs: 2,
    isRebalancing: false,
    renewIntervalMs: 10_000,
    happenings: [
      {
        afterMs: 0,
        fault: {
          kind: 'Noise',
          replica: 1,
          noise: { lost: 0, unanswered: 0.5, late: 0, cut: 0, refused: 0 },
          ms: 9495,
        },
      },
      { afterMs: 3681, fault: { kind: 'Unlabel', base: 0, isMember: false } },
      { afterMs: 4449, fault: { kind: 'Lag', replica: 1, lagMs: 3545, ms: 1600 } },
    ],
  });
});

it('a lease of a base that vanishes before it has a Node is deleted, though its leader was stopped meanwhile', async () => {
  await play({
    seed: 1482883589,
    replicas: 2,
    bases: 1,
    maxLatencyMs: 2,
    isRebalancing: false,
    renewIntervalMs: 10_000,
    happenings: [
      { afterMs: 19_689, fault: { kind: 'Appear', count: 4 } },
      { afterMs: 1_500, fault: { kind: 'Vanish', base: 4, againMs: undefined } },
      { afterMs: 0, fault: { kind: 'Stop', replica: 3, ms: 2_965, isSuspended: false } },
      { afterMs: 1_648, fault: { kind: 'Unlabel', base: 0, isMember: false } },
      { afterMs: 1_317, fault: { kind: 'Hang', replica: 0, ms: 300 } },
    ],
  });
});
