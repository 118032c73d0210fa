import { cp, rm } from 'node:fs/promises';
import { afterAll, expect, it } from 'vitest';
import { layoutOf } from '../../samples/control-plane/layout.ts';
import type { ComponentName } from '../../samples/control-plane/versions.ts';
import type { LeaseObject } from '../../src/kube/objects.ts';
import { LEASES_PATH } from '../../src/lease/lease.ts';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { type OwnWorld, startOwnWorld } from '../support/world.ts';

const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
/** In the order in which they stop. */
const COMPONENTS: readonly ComponentName[] = ['kube-scheduler', 'kube-controller-manager', 'kube-apiserver', 'etcd'];

let world: OwnWorld;

afterAll(() => world?.stop());

/** Runs `act` on the files of etcd while the control plane is down. */
async function whileDown(act: (etcdData: string) => Promise<void>, onServing = async () => {}): Promise<void> {
  const { controlPlane } = world;
  for (const name of COMPONENTS) await controlPlane.component(name).stopProcess();
  await act(layoutOf(controlPlane.directory).etcdData);
  for (const name of COMPONENTS.toReversed()) {
    await controlPlane.component(name).start();
    if (name === 'kube-apiserver') await onServing();
  }
}

/** Afterwards no resource version of before the restore is in the future any more. */
async function writeALot(): Promise<void> {
  const path = '/api/v1/namespaces/default/configmaps';
  const metadata = { generateName: 'restored-' };
  await Promise.all(Array.from({ length: 400 }, () => world.admin.post(path, { metadata })));
}

/** Of all Nodes. */
async function leaseVersions(): Promise<string[]> {
  const { items } = await world.admin.get(LEASES_PATH);
  return items.map(({ metadata }: LeaseObject) => metadata.resourceVersion ?? '');
}

async function running(versions: Readonly<Record<string, number>>): Promise<void> {
  await eventually(async () => {
    const counts: Record<string, number> = {};
    for (const pod of (await pods(world.admin)).filter(isReady)) {
      const key = `${pod.metadata.labels?.app}:${pod.metadata.labels?.version}`;
      counts[key] = (counts[key] ?? 0) + 1;
    }
    expect(counts).toEqual(versions);
  }, 60_000);
}

const deploy = (name: string, version: string): Promise<unknown> =>
  world.controlPlane.apply(moduleWorkload(name, [{ name, version }], { replicas: 2 }) as never);

// docs/guides.md, "Restore etcd from a backup", with a controller that runs through it.
it('a cluster that goes back to a backup installs what it asks for, and takes no module off that it has forgotten', async () => {
  world = await startOwnWorld({});
  const fleet = await world.startFleet({ count: 2 });
  const controller = await world.startController({ UNKNOWN_MODULE_POLICY: 'keep' });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(2));
  await deploy('orders', '1');
  await running({ 'orders:1': 2 });
  const versionsThen = await leaseVersions();
  await whileDown((etcd) => cp(etcd, `${etcd}-backup`, { recursive: true }));

  await world.admin.delete(`${DEPLOYMENTS}/orders`);
  await running({});
  await deploy('later', '1');
  await running({ 'later:1': 2 });
  // A backup is older than a renewal of a Lease.
  await eventually(async () => {
    expect((await leaseVersions()).filter((version) => versionsThen.includes(version))).toEqual([]);
  });
  const mark = fleet.history.mark();
  await whileDown(async (etcd) => {
    await rm(etcd, { recursive: true });
    await cp(`${etcd}-backup`, etcd, { recursive: true });
  }, writeALot);

  await running({ 'orders:1': 2 });
  expect((await nodes(world.admin)).filter(isReady)).toHaveLength(2);
  await deploy('later', '1');
  await running({ 'orders:1': 2, 'later:1': 2 });
  await eventually(() => {
    const modules = fleet.bases.map((base) => base.modules().map(({ bizName }) => bizName));
    expect(modules.map((names) => names.sort())).toEqual([
      ['later', 'orders'],
      ['later', 'orders'],
    ]);
  }, 30_000);
  const commands = fleet.history.records({ since: mark }).filter(({ command }) => /installBiz/i.test(command));
  expect(commands.map(({ command, bizName }) => `${command} ${bizName}`)).toEqual([
    'installBiz orders',
    'installBiz orders',
  ]);
  expect(controller.child.exitCode).toBeNull();
}, 600_000);
