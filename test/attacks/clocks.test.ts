import { afterAll, beforeAll, expect, it } from 'vitest';
import { Cluster } from '../support/cluster/cluster.ts';
import { atRest, balanced, holders, movesSince } from '../support/cluster/lease-waits.ts';
import { eventually } from '../support/eventually.ts';
import { settableWallClock, setWallClock } from '../support/wall-clock.ts';

const HOUR_MS = 3_600_000;
const BASES = 6;
/** Every 10 s: kube-controller-manager gives a Node up after 50 s in which it has counted none. */
const RENEWALS_UNTIL_GIVEN_UP = 7;

let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start(['mqtt']);
  for (const id of ['controller-0', 'controller-1']) await (await cluster.add(id)).start(settableWallClock());
  for (const { process } of cluster.replicas) await process.line(({ msg }) => msg === 'tunnel is up');
  await cluster.startFleet({ count: BASES });
  await eventually(() => expect(cluster.recorder.leases().size).toBe(BASES));
  await balanced(cluster, cluster.replicas);
});

afterAll(() => cluster?.stop());

/** Versions of Nodes that were not ready once they had been. */
async function everNotReady(): Promise<string[]> {
  const ready = new Set<string>();
  const lost: string[] = [];
  for (const { name, ready: status, at } of (await cluster.recorder.facts()).nodes) {
    if (status === 'True') ready.add(name);
    else if (ready.has(name)) lost.push(`${name} ${status} at ${at}`);
  }
  return lost;
}

it('a replica whose wall clock is set by an hour, forward and back, is never fenced and loses no Lease', async () => {
  await atRest(cluster);
  const { process } = cluster.replica(1);
  const before = holders(cluster);
  const mark = cluster.recorder.leaseCount;
  const bases = cluster.basesOf(cluster.replica(1));
  expect(bases.length).toBeGreaterThan(0);
  const lineCount = process.lines.length;
  const fences = await process.metric('module_controller_fences_total');
  const renewals = (): Promise<number> => process.metric('module_controller_membership_renewals_total', '"ok"');
  // Last the hour forward, so that a renewTime in the future is left for the next test.
  for (const shiftMs of [-HOUR_MS, 0, HOUR_MS, -HOUR_MS, HOUR_MS]) {
    await setWallClock(process.child, shiftMs);
    const renewed = (await renewals()) + 2;
    await eventually(async () => {
      expect(await process.metric('module_controller_fenced')).toBe(0);
      expect(await renewals()).toBeGreaterThanOrEqual(renewed);
    });
  }
  // The shift is real: it stands in what the replica writes.
  await eventually(() => {
    for (const base of bases) {
      const shift = (cluster.recorder.leases().get(base)?.renewedAt ?? 0) - Date.now();
      expect(Math.abs(shift - HOUR_MS)).toBeLessThan(60_000);
    }
  });
  expect(await process.metric('module_controller_fences_total')).toBe(fences);
  expect(process.lines.slice(lineCount).filter(({ msg }) => msg.startsWith('fenced'))).toEqual([]);
  expect(movesSince(cluster, mark, before).join('\n')).toBe('');
  expect(await everNotReady()).toEqual([]);
});

it('bases of a replica whose clock was an hour fast stay Ready when one with the right clock takes them over', async () => {
  const [next, fast] = [cluster.replica(0), cluster.replica(1)];
  const bases = cluster.basesOf(fast);
  const mark = cluster.recorder.leaseCount;
  await fast.end('SIGKILL');
  await eventually(() => {
    const renewals = Map.groupBy(
      cluster.recorder.leasesSince(mark).filter(({ holder }) => holder === next.clientId),
      ({ base }) => base,
    );
    for (const base of bases) expect(renewals.get(base)?.length ?? 0).toBeGreaterThanOrEqual(RENEWALS_UNTIL_GIVEN_UP);
  }, 150_000);
  expect(await everNotReady()).toEqual([]);
});
