import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { eventsOf, findNode, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { moduleDeployment, moduleDeploymentPath } from '../support/rollouts.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';

const BASES = 3;
/** A silent base counts as dead after 60 s. */
const BASE_DIES_WITHIN_MS = 120_000;

let world: World;
let fleet: Fleet;
let platform: Platform;

async function replicas(): Promise<number> {
  return (await world.admin.get(moduleDeploymentPath())).spec.replicas;
}

async function basesWithReadyPods(): Promise<unknown[]> {
  return (await pods(world.admin, 'app=shop'))
    .filter(isReady)
    .map(({ spec }) => spec.nodeName)
    .sort();
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  await world.startController();
  fleet = await world.startFleet({ count: BASES, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  await platform.start('platform-0', 'rollout');
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

it('a ModuleDeployment with peer has one Pod on each base, whatever becomes of bases', async () => {
  const manifest = moduleDeployment({ spec: { replicas: undefined, peer: true } });
  await eventually(() => world.controlPlane.apply(manifest as KubeObject));
  const all = ['vnode.base-1', 'vnode.base-2', 'vnode.base-3'];
  await eventually(async () => expect(await basesWithReadyPods()).toEqual(all));
  expect((await eventsOf(world.admin, 'ModuleDeployment', 'shop')).map(({ reason }) => reason)).toContain('PeerScaled');

  await world.startFleet({ bases: [{ identity: 'late' }] });
  await eventually(async () => expect(await basesWithReadyPods()).toEqual([...all, 'vnode.late']));

  // A base that is silent keeps its place until its Node goes.
  const silent = fleet.base('base-1');
  silent.silence();
  await eventually(async () => expect(isReady(await findNode(world.admin, 'base-1'))).toBe(false));
  expect(await replicas()).toBe(BASES + 1);
  await eventually(async () => expect(await findNode(world.admin, 'base-1')).toBeUndefined(), BASE_DIES_WITHIN_MS);
  await eventually(async () => expect(await replicas()).toBe(BASES));
  await eventually(async () =>
    expect(await basesWithReadyPods()).toEqual(['vnode.base-2', 'vnode.base-3', 'vnode.late']),
  );

  silent.speak();
  await eventually(async () => expect(await basesWithReadyPods()).toEqual([...all, 'vnode.late']));
});
