import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { eventsOf, findNode, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const DEPLOYMENT = '/apis/apps/v1/namespaces/default/deployments/everywhere';

let world: World;
let fleet: Fleet;
let platform: Platform;
let first: ControllerProcess;

async function replicas(): Promise<number> {
  return (await world.admin.get(DEPLOYMENT)).spec.replicas;
}

async function readyPods(): Promise<KubeObject[]> {
  return (await pods(world.admin, 'app=everywhere')).filter(isReady);
}

async function untilEverywhere(count: number): Promise<void> {
  await eventually(async () => {
    expect(await replicas()).toBe(count);
    const names = (await readyPods()).map(({ spec }) => spec.nodeName);
    expect(new Set(names).size).toBe(count);
  }, 90_000);
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  await world.startController();
  fleet = await world.startFleet({ count: 3 });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(3));
  first = await platform.start('platform-a', 'peer');
  await first.line(({ msg }) => msg === 'started leading');
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

it('V37: a Deployment with the label strategy: peer has one copy on each base, whatever becomes of bases and of its controller', async () => {
  const { admin } = world;
  const { spec, ...manifest } = moduleWorkload('everywhere', [{ name: 'everywhere' }]) as KubeObject;
  const labels = { 'virtual-kubelet.koupleless.io/strategy': 'peer' };
  const { replicas: _none, ...peerSpec } = spec;
  await world.controlPlane.apply({ ...manifest, metadata: { ...manifest.metadata, labels }, spec: peerSpec });
  await untilEverywhere(3);

  await world.startFleet({ count: 2, identityPrefix: 'late-' });
  await untilEverywhere(5);
  await eventually(async () => {
    const scalings = (await eventsOf(admin, 'Deployment', 'everywhere')).filter(
      ({ reason }) => reason === 'PeerScaled',
    );
    expect(scalings.map(({ message }) => message)).toContainEqual(expect.stringContaining('5 bases fit'));
  });

  // A silent base keeps its copy until its Node goes; then the number follows.
  const seen: number[] = [];
  const watch = await admin.watch('/apis/apps/v1/deployments?fieldSelector=metadata.name=everywhere', ({ object }) =>
    seen.push(object.spec.replicas),
  );
  fleet.base('base-1').silence();
  await eventually(async () => expect(isReady(await findNode(admin, 'base-1'))).toBe(false));
  expect(await replicas()).toBe(5);
  await eventually(async () => expect(await findNode(admin, 'base-1')).toBeUndefined(), 90_000);
  await untilEverywhere(4);
  watch.stop();
  expect([...new Set(seen)]).toEqual([5, 4]);

  // The leader is killed: the next one goes on.
  const next = await platform.start('platform-b', 'peer');
  await next.line(({ msg }) => msg === 'listening');
  await first.stop('SIGKILL');
  fleet.base('base-1').speak();
  fleet.base('base-1').announce();
  await next.line(({ msg }) => msg === 'started leading');
  await untilEverywhere(5);

  // Somebody else scales it from now on.
  await admin.mergePatch(DEPLOYMENT, {
    metadata: { labels: { 'virtual-kubelet.koupleless.io/replicas-control': 'true' } },
  });
  await admin.mergePatch(DEPLOYMENT, { spec: { replicas: 2 } });
  await eventually(async () => expect(await readyPods()).toHaveLength(2));
  expect(await replicas()).toBe(2);
  expect(next.lines.filter(({ level }) => level === 'error')).toEqual([]);
});
