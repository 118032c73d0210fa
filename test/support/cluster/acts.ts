import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import type { Cluster } from './cluster.ts';
import { atRest, balanced, countsOf, holders, movesSince, renewedSince, takenOver } from './lease-waits.ts';
import type { Replica } from './replica.ts';
import type { Stage } from './scenario.ts';

/** A-004-6: a lost replica's bases have another holder within this time. */
const TAKEN_OVER_WITHIN_MS = 10_000;
export const CUT_MS = 20_000;
export const LONG_MS = 60_000;

/** The duration of a fault; wall clock, ms. */
export async function until(at: number): Promise<void> {
  await delay(Math.max(0, at - Date.now()));
}

export async function takenOverByOthers(
  { cluster, note }: Stage,
  victim: Replica,
  { bases, since }: { bases: readonly string[]; since: number },
): Promise<void> {
  expect(bases.length).toBeGreaterThan(0);
  const by = cluster.living.filter((replica) => replica !== victim);
  const ms = await takenOver(cluster, bases, { by, since, withinMs: TAKEN_OVER_WITHIN_MS });
  note(`${bases.length} bases of ${victim.clientId} had another holder ${ms} ms after it was lost`);
}

/** Its bases are taken by others, it comes back when it is healed. */
export async function cutOff(stage: Stage, victim: Replica, wires: readonly ('api' | 'broker')[]): Promise<void> {
  const bases = stage.cluster.basesOf(victim);
  const since = Date.now();
  stage.note('cut');
  await victim.wires('blackhole', wires);
  await takenOverByOthers(stage, victim, { bases, since });
  await until(since + CUT_MS);
  expect(victim.isAlive).toBe(true);
}

export interface Outage {
  readonly lastsMs: number;
  begin(cluster: Cluster): Promise<void>;
  end(cluster: Cluster): Promise<void>;
}

/**
 * No lease changes its holder. kube-controller-manager and kube-scheduler end when they cannot renew their leader lease
 * for 10 s; ours hold no election, so they are ended here, and start when new leaders would.
 */
export async function outage({ cluster, note }: Stage, { lastsMs, begin, end }: Outage): Promise<void> {
  const { recorder, world } = cluster;
  await atRest(cluster);
  const before = holders(cluster);
  const mark = recorder.leaseCount;
  const since = Date.now();
  const leaders = (['kube-controller-manager', 'kube-scheduler'] as const).map((name) =>
    world.controlPlane.component(name),
  );
  note('the API server goes');
  await begin(cluster);
  await Promise.all(leaders.map((leader) => leader.stopProcess('SIGKILL')));
  await until(since + lastsMs);
  const upAt = Date.now();
  await end(cluster);
  note('the API server is back');
  const renewed = renewedSince(cluster, upAt, 30_000).then(() => {
    note(`every lease was renewed ${Date.now() - upAt} ms after its begin`);
  });
  await Promise.all([renewed, ...leaders.map((leader) => leader.start())]);
  expect(movesSince(cluster, mark, before).join('\n')).toBe('');
  for (const replica of cluster.replicas) expect(replica.isAlive, replica.clientId).toBe(true);
}

export async function restartAll({ cluster, note }: Stage, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const replicas = [...cluster.replicas];
  const codes = await Promise.all(replicas.map((replica) => replica.end(signal)));
  if (signal === 'SIGTERM') expect(codes).toEqual(replicas.map(() => 0));
  const since = Date.now();
  await Promise.all(replicas.map((replica) => replica.start()));
  await renewedSince(cluster, since);
  note(`every lease was renewed ${Date.now() - since} ms after the restart`);
}

/** In the end it is the only one with that name. */
export async function secondProcess(stage: Stage): Promise<void> {
  const { cluster } = stage;
  const first = cluster.replica(0);
  const second = await cluster.add(first.clientId, 'second');
  try {
    await waitAndTakeOver(stage, { first, second });
  } finally {
    if (cluster.replicas.includes(first)) await cluster.remove(first, 'SIGKILL');
  }
}

/** In the end the second process is the only one with that name. */
export async function replacedProcess({ cluster, note }: Stage): Promise<void> {
  const { recorder } = cluster;
  const first = cluster.replica(1);
  const second = await cluster.add(first.clientId, 'replacement');
  try {
    first.freeze();
    const process = await second.start();
    await process.line((line) => line.msg === 'tunnel is up');
    await balanced(
      cluster,
      cluster.living.filter((replica) => replica !== first),
    );
    const written = (await recorder.writesOf(first.account)).length;
    note('the second process has its share; the first goes on');
    first.thaw();
    expect(await first.process.exited).toBe(1);
    expect((await recorder.writesOf(first.account)).slice(written)).toEqual([]);
  } finally {
    await cluster.remove(first, 'SIGKILL');
  }
}

async function waitAndTakeOver(
  { cluster, note }: Stage,
  { first, second }: { first: Replica; second: Replica },
): Promise<void> {
  const process = await second.start();
  await process.line((line) => JSON.stringify(line).includes('Cluster.ClientIdTaken'));
  note('the second process said that its CLIENT_ID is taken');
  const probes = `http://127.0.0.1:${await process.port('probes')}/readyz`;
  const isReady = async (): Promise<boolean> => (await fetch(probes)).ok;
  expect(await isReady()).toBe(false);
  // As long as several renewals of the first one.
  await delay(8_000);
  expect(await isReady()).toBe(false);
  expect(process.lines.filter(({ msg }) => msg === 'tunnel is up')).toEqual([]);
  expect(second.broker?.connectionCount ?? 0).toBe(0);
  expect(await cluster.recorder.writesOf(second.account)).toEqual([]);
  expect(first.isAlive && second.isAlive).toBe(true);

  const bases = cluster.basesOf(first);
  const since = Date.now();
  await cluster.remove(first, 'SIGKILL');
  await takenOver(cluster, bases, { by: cluster.living, since, withinMs: 30_000 });
  await process.line((line) => line.msg === 'tunnel is up');
  await balanced(cluster, cluster.living);
  note(`the second process had its share ${Date.now() - since} ms after the first was killed`);
  expect(await isReady()).toBe(true);
}

export async function fourthReplica({ cluster, note }: Stage): Promise<void> {
  const { recorder } = cluster;
  await atRest(cluster);
  const before = holders(cluster);
  const mark = recorder.leaseCount;
  const since = Date.now();
  const fourth = await cluster.add('controller-3');
  try {
    await fourth.start();
    await eventually(() => {
      const counts = countsOf(cluster, cluster.living);
      expect(Math.max(...counts), counts.join()).toBeLessThanOrEqual(1.25 * Math.min(...counts));
    }, LONG_MS);
    note(`balanced ${Date.now() - since} ms after its start: ${countsOf(cluster, cluster.living).join()}`);
    const moves = movesSince(cluster, mark, before);
    expect(moves.length, moves.join('\n')).toBeLessThanOrEqual(Math.ceil((1.2 * before.length) / 4));
  } finally {
    const bases = cluster.basesOf(fourth);
    const goneAt = Date.now();
    await cluster.remove(fourth, 'SIGTERM');
    await takenOver(cluster, bases, { by: cluster.living, since: goneAt, withinMs: TAKEN_OVER_WITHIN_MS });
  }
}
