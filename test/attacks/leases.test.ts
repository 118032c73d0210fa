import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiClient, ApiError, type KubeObject } from '../../samples/control-plane/api-client.ts';
import { COMPONENT_LABEL, ENV_LABEL, NODE_LEASE_NAMESPACE, nodeNameOf } from '../../src/labels.ts';
import { memberLeaseNameOf } from '../../src/lease/member.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { atRest, balanced, holders, movesSince } from '../support/cluster/lease-waits.ts';
import { eventually } from '../support/eventually.ts';
import { isReady, nodes } from '../support/observe.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import { ForeignListener, leasesPath, memberLease, nodeLease } from './forged-leases.ts';

const REPLICAS = ['controller-0', 'controller-1'] as const;
const BASES = 4;
/** By then a replica whose Lease says that it has gone was given up, twice over. */
const RENEWALS = 8;

let cluster: Cluster;
let tenant: ApiClient;
let listener: ForeignListener;

beforeAll(async () => {
  cluster = await Cluster.start(['http']);
  for (const id of REPLICAS) await (await cluster.add(id)).start();
  for (const { process } of cluster.replicas) await process.line(({ msg }) => msg === 'tunnel is up');
  await cluster.startFleet({ count: BASES });
  await eventually(() => expect(cluster.recorder.leases().size).toBe(BASES));
  await balanced(cluster, cluster.replicas);
  tenant = await createTenant(cluster.world.controlPlane);
  listener = await new ForeignListener().start();
});

afterAll(async () => {
  await listener?.stop();
  await cluster?.stop();
});

/** Writes it, whatever stands there. */
async function write(client: ApiClient, namespace: string, lease: KubeObject): Promise<void> {
  const path = leasesPath(namespace);
  try {
    await client.post(path, lease);
  } catch (error) {
    if (!(error instanceof ApiError) || error.statusCode !== 409) throw error;
    await client.mergePatch(`${path}/${lease.metadata.name}`, lease);
  }
}

const counted = (name: string, ...labels: string[]): Promise<number[]> =>
  Promise.all(cluster.living.map(({ process }) => process.metric(name, ...labels)));

/** Does `act` again and again until each replica has renewed its membership often enough to draw its conclusions. */
async function whileReplicasRenew(act: (round: number) => Promise<void>): Promise<void> {
  const renewals = (): Promise<number[]> => counted('module_controller_membership_renewals_total', '"ok"');
  const enough = (await renewals()).map((count) => count + RENEWALS);
  let round = 0;
  await eventually(async () => {
    await act(round++);
    const now = await renewals();
    expect(now.map((count, index) => count >= (enough[index] ?? 0))).toEqual(enough.map(() => true));
  });
}

interface Rest {
  readonly before: readonly string[];
  readonly mark: number;
  readonly fences: readonly number[];
}

/** Waits for it. A machine under load may have fenced a replica while the replicas started. */
async function restOf(): Promise<Rest> {
  await atRest(cluster);
  const fences = await counted('module_controller_fences_total');
  return { before: holders(cluster), mark: cluster.recorder.leaseCount, fences };
}

async function expectNoMove({ before, mark, fences }: Rest): Promise<void> {
  expect(movesSince(cluster, mark, before).join('\n')).toBe('');
  expect(await counted('module_controller_fences_total')).toEqual(fences);
}

/** What nobody outside may change. */
async function expectUntouched(rest: Rest): Promise<void> {
  await expectNoMove(rest);
  expect(await counted('module_controller_client_id_conflicts_total')).toEqual([0, 0]);
  expect(await counted('module_controller_members')).toEqual([REPLICAS.length, REPLICAS.length]);
  expect(cluster.living).toHaveLength(REPLICAS.length);
  expect((await nodes(cluster.world.admin)).filter(isReady)).toHaveLength(BASES);
  expect(listener.heard).toEqual([]);
}

describe('Leases of a tenant with the ClusterRole edit', () => {
  it('can be written in its own namespace, and not where the controller reads them', async () => {
    const lease = memberLease('probe', 'stranger', listener.address);
    await tenant.post(leasesPath(TENANT_NAMESPACE), lease);
    await expect(tenant.post(leasesPath(NODE_LEASE_NAMESPACE), lease)).rejects.toThrow(/forbidden/);
    const own = `${leasesPath(NODE_LEASE_NAMESPACE)}/${memberLeaseNameOf('dev', REPLICAS[0])}`;
    await expect(tenant.get(own)).rejects.toThrow(/forbidden/);
  });

  it('that pose as an unknown replica, a former one or another process of one, or hold a Node, change nothing', async () => {
    const rest = await restOf();
    await whileReplicasRenew(async (round) => {
      const state = ['Active', 'Leaving', 'Left'][round % 3] ?? '';
      for (const clientId of [...REPLICAS, 'stranger']) {
        const names = [memberLeaseNameOf('dev', clientId), `module-controller-dev-${clientId}`];
        for (const name of names) {
          await write(tenant, TENANT_NAMESPACE, memberLease(name, clientId, listener.address, state));
        }
      }
      for (let base = 1; base <= BASES; base++) {
        await write(tenant, TENANT_NAMESPACE, nodeLease(nodeNameOf(`base-${base}`), 'stranger'));
      }
    });
    await expectUntouched(rest);
  });

  it('that exist already do not prevent a replica from starting', async () => {
    const replica = cluster.replica(1);
    expect(await replica.end('SIGTERM')).toBe(0);
    await replica.start();
    await replica.process.line(({ msg }) => msg === 'tunnel is up');
    await balanced(cluster, cluster.replicas);
    expect(await counted('module_controller_members')).toEqual([REPLICAS.length, REPLICAS.length]);
    expect(listener.heard).toEqual([]);
  });
});

describe('the Lease of a machine, written with the rights of its kubelet', () => {
  it('in its namespace, with the labels of the controller, is ignored and counted', async () => {
    const rest = await restOf();
    const kubelet = await cluster.world.controlPlane.client({
      user: 'system:node:machine-1',
      groups: ['system:nodes'],
    });
    const own = nodeNameOf('base-1');
    await expect(kubelet.post(leasesPath(NODE_LEASE_NAMESPACE), nodeLease(own, 'machine-1'))).rejects.toThrow(
      /forbidden/,
    );
    await whileReplicasRenew(async (round) => {
      const state = ['Active', 'Left'][round % 2] ?? '';
      const lease = memberLease('machine-1', REPLICAS[round % 2] ?? '', listener.address, state);
      await write(kubelet, NODE_LEASE_NAMESPACE, lease);
    });
    await expectUntouched(rest);
    for (const count of await counted('module_controller_foreign_leases_total')) expect(count).toBeGreaterThan(0);
  });
});

describe('an admin who takes labels off', () => {
  const unlabelled = { metadata: { labels: { [COMPONENT_LABEL]: null, [ENV_LABEL]: null } } };
  const labelsOf = async (name: string) =>
    (await cluster.world.admin.get(`${leasesPath(NODE_LEASE_NAMESPACE)}/${name}`)).metadata.labels ?? {};

  it.each([
    ['the Leases of Nodes', () => [...cluster.recorder.leases().keys()].map(nodeNameOf)],
    ['the Leases of replicas', () => REPLICAS.map((id) => memberLeaseNameOf('dev', id))],
  ])('of %s moves no Lease, and they come back', async (_, namesOf) => {
    const rest = await restOf();
    const names = namesOf();
    for (const name of names) {
      await cluster.world.admin.mergePatch(`${leasesPath(NODE_LEASE_NAMESPACE)}/${name}`, unlabelled);
    }
    await whileReplicasRenew(async () => {});
    for (const name of names)
      await eventually(async () => expect(await labelsOf(name)).toHaveProperty([ENV_LABEL], 'dev'));
    await expectNoMove(rest);
    expect((await nodes(cluster.world.admin)).filter(isReady)).toHaveLength(BASES);
  });
});
