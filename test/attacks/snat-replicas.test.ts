import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { balanced, takenOver } from '../support/cluster/lease-waits.ts';
import { eventually } from '../support/eventually.ts';
import { findNode, isReady, nodes } from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';

const BASES = 4;

let cluster: Cluster;
let fleet: Fleet;

beforeAll(async () => {
  cluster = await Cluster.start(['http'], { hidesSender: true });
  for (const id of ['controller-0', 'controller-1']) await (await cluster.add(id)).start();
  for (const { process } of cluster.replicas) await process.line(({ msg }) => msg === 'tunnel is up');
  fleet = await cluster.startFleet({ count: BASES });
});

afterAll(() => cluster?.stop());

const readyNodes = async (): Promise<number> => (await nodes(cluster.world.admin)).filter(isReady).length;

it('bases behind a Service that hides their addresses are shared, and stay Ready when a replica is killed', async () => {
  await eventually(async () => expect(await readyNodes()).toBe(BASES));
  await balanced(cluster, cluster.replicas);
  const [victim, other] = [cluster.replica(0), cluster.replica(1)];
  const bases = cluster.basesOf(victim);
  const spectator = await Spectator.watch(cluster.world.admin, '/api/v1/nodes');
  const since = Date.now();
  await cluster.remove(victim, 'SIGKILL');
  await takenOver(cluster, bases, { by: [other], since, withinMs: 10_000 });
  // Three more of each base: a base that was not proven at the other replica would be unreachable by then.
  const heard = await other.process.metric('module_controller_tunnel_messages_total', 'type="heart"');
  await eventually(async () =>
    expect(await other.process.metric('module_controller_tunnel_messages_total', 'type="heart"')).toBeGreaterThan(
      heard + 3 * BASES,
    ),
  );
  spectator.stop();
  expect(spectator.everNotReady()).toEqual([]);
  expect(await readyNodes()).toBe(BASES);
});

it('forged heartbeats keep no dead base Ready there either', async () => {
  const [dead] = fleet.bases;
  if (dead === undefined) throw new Error('the fleet is empty');
  const { identity, localIP, port } = dead;
  const spectator = await Spectator.watch(cluster.world.admin, '/api/v1/nodes');
  await dead.kill();
  const baseMetadata = { identity, name: 'forged', version: '1.0.0', clusterName: 'default' };
  const body = JSON.stringify({ baseMetadata, localIP, port, state: 'ACTIVATED' });
  await eventually(async () => {
    const headers = { 'content-type': 'application/json' };
    await fetch(`${cluster.service.url}/heartbeat`, { method: 'POST', headers, body });
    expect(isReady(await findNode(cluster.world.admin, identity))).toBe(false);
  }, 32_000);
  spectator.stop();
  expect(spectator.everNotReady()).toEqual([`vnode.${identity}`]);
});
