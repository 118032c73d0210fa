import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../support/cluster/cluster.ts';
import { balanced } from '../support/cluster/lease-waits.ts';
import type { Replica } from '../support/cluster/replica.ts';
import { onBases, play, type Stage } from '../support/cluster/scenario.ts';
import { schedulable } from '../support/cluster/workload.ts';
import { eventually } from '../support/eventually.ts';
import { extractVersionThatAdded, type OldVersion } from '../support/old-version.ts';

/** The promise begins with the version that added this file, so that version is the old one. */
const SELF = 'test/integration/upgrade.test.ts';
const REPLICAS = 3;
/** Half of them over each tunnel. */
const BASES = 8;
/** A base is judged silent after 25 s. The next heartbeat may be 12 s away when the Service is pinned. */
const PINNED_MS = 40_000;
/** A replica judges all bases once a second, and counts them then. */
const LOOK_EVERY_MS = 250;
/** A Lease of a Node is valid for this time after a renewal. */
const LEASE_MS = 40_000;

let old: OldVersion;

beforeAll(async () => {
  old = await extractVersionThatAdded(SELF);
});

afterAll(() => old?.remove());

describe('an upgrade over mqtt and http', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.start(['mqtt', 'http']);
    for (let index = 0; index < REPLICAS; index++) await startReplica(cluster, `controller-old-${index}`, old.root);
    await cluster.startFleets({ count: BASES });
    await schedulable(cluster, BASES);
  });

  afterAll(() => cluster?.stop());

  it('by a rolling update, and a rollback, loses no Node and installs nothing twice', async ({ annotate }) => {
    const bases = cluster.fleets.flatMap((fleet) => fleet.bases.map(({ identity }) => identity));
    const rolling = onBases(cluster, 'rolling', bases);
    await rolling.next();
    await rolling.untilRolled(30_000);
    // The Deployment rolls from here to the end: old and new leaders install and uninstall all the time.
    const scenario = { name: `from ${old.commit} to this version`, act: upgradeAndRollBack };
    const { notes, failure } = await play(cluster, scenario, [rolling]);
    for (const note of notes) await annotate(note);
    if (failure) throw failure;
  }, 480_000);
});

async function upgradeAndRollBack(stage: Stage): Promise<void> {
  const { cluster } = stage;
  const mark = cluster.recorder.leaseCount;
  await replace(stage, 'controller-old-0', { by: 'controller-new-0', waitsForShare: true });
  await sharedByAll(stage);
  await heardThrough(stage, [named(cluster, 'controller-old-1'), named(cluster, 'controller-new-0')]);
  await replace(stage, 'controller-old-1', { by: 'controller-new-1' });
  await replace(stage, 'controller-old-2', { by: 'controller-new-2' });
  await sharedByAll(stage);
  await replace(stage, 'controller-new-2', { by: 'controller-old-3', root: old.root, waitsForShare: true });
  await sharedByAll(stage);
  const { faults, longestMs } = renewalsSince(cluster, mark);
  stage.note(`the longest time without a renewal of a Lease was ${Math.round(longestMs)} ms`);
  expect(faults.join('\n')).toBe('');
}

async function startReplica(cluster: Cluster, clientId: string, root?: URL): Promise<Replica> {
  const replica = await cluster.add(clientId);
  await replica.start({}, root);
  await replica.untilReady();
  return replica;
}

function named({ replicas }: Cluster, clientId: string): Replica {
  const replica = replicas.find((one) => one.clientId === clientId);
  if (!replica) throw new Error(`no replica ${clientId}`);
  return replica;
}

/**
 * One step of a rolling update with maxSurge 1 and maxUnavailable 0. `root`: the tree of another version. The old replica
 * ends once the new one is ready; `waitsForShare`: once the others gave the new one its share.
 */
async function replace(
  stage: Stage,
  clientId: string,
  { by, root, waitsForShare = false }: { by: string; root?: URL; waitsForShare?: boolean },
): Promise<void> {
  const { cluster, note } = stage;
  note(`${by} replaces ${clientId}`);
  await startReplica(cluster, by, root);
  if (waitsForShare) await sharedByAll(stage);
  const leaving = named(cluster, clientId);
  const toldAt = performance.now();
  expect(await leaving.end('SIGTERM'), `exit code of ${clientId}`).toBe(0);
  note(`${clientId} handed its bases over and ended within ${Math.round(performance.now() - toldAt)} ms`);
  await cluster.remove(leaving, 'SIGTERM');
  // Healing starts a replica that has crashed, with the present version.
  for (const replica of cluster.replicas) expect(replica.isAlive, replica.clientId).toBe(true);
}

/** Each replica gets its share of the bases, and installs there. */
async function sharedByAll({ cluster, note }: Stage): Promise<void> {
  await balanced(cluster, cluster.living);
  const since = Date.now();
  const names = cluster.living.map(({ clientId }) => clientId).sort();
  await eventually(() => {
    const installs = cluster.recorder.commandsSince(since).filter(({ command }) => command === 'installBiz');
    expect([...new Set(installs.map(({ replica }) => replica))].sort()).toEqual(names);
  });
  note(`modules were installed by ${names.join(', ')}`);
}

/**
 * Each base over HTTP posts to one of these replicas only, so the others hear it only through that one, across versions
 * in both directions. The Nodes would not show that messages are lost, since a leader asks a base that it does not hear.
 * The metrics of the followers do.
 */
async function heardThrough({ cluster, note }: Stage, replicas: readonly Replica[]): Promise<void> {
  await eventually(() => hearsAll(cluster));
  const since = Date.now();
  const { service } = cluster;
  const takenBy = ({ httpPort }: Replica): number => service.taken.get(httpPort) ?? 0;
  const before = replicas.map(takenBy);
  note(`each base posts to one of ${replicas.map(({ clientId }) => clientId).join(', ')} only`);
  service.pin(...replicas.map(({ httpPort }) => httpPort));
  while (Date.now() < since + PINNED_MS) {
    await hearsAll(cluster);
    await delay(LOOK_EVERY_MS);
  }
  service.pin();
  const bases = cluster.basesOver('http').length / replicas.length;
  for (const [index, replica] of replicas.entries()) {
    expect(takenBy(replica) - (before[index] ?? 0), replica.clientId).toBeGreaterThanOrEqual(2 * bases);
  }
}

/** Throws when a replica has not heard a base lately. */
async function hearsAll({ living }: Cluster): Promise<void> {
  for (const { process, clientId } of living) {
    const heard = await process.metric('module_controller_vnodes', 'state="Reachable"');
    expect(heard, `bases that ${clientId} hears`).toBe(BASES);
  }
}

/** `faults`: each time that nobody held the Lease of a base, or that its holder let it expire. */
function renewalsSince({ recorder }: Cluster, mark: number): { faults: string[]; longestMs: number } {
  const renewedAt = new Map<string, number>();
  let longestMs = 0;
  const faults = recorder.leasesSince(mark).flatMap((lease) => {
    const silentMs = lease.renewedAt - (renewedAt.get(lease.base) ?? lease.renewedAt);
    longestMs = Math.max(longestMs, silentMs);
    renewedAt.set(lease.base, lease.renewedAt);
    if (lease.isGone || lease.holder === '') return [`${lease.base}: held by nobody`];
    return silentMs > LEASE_MS ? [`${lease.base}: not renewed for ${silentMs} ms`] : [];
  });
  return { faults, longestMs };
}
