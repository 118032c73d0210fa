import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { eventsOf, findNode, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { startWorld } from '../support/start-world.ts';
import { ControllerProcess, type World } from '../support/world.ts';

const DEPLOYMENT = '/apis/apps/v1/namespaces/default/deployments/everywhere';
const RBAC = new URL('../../deploy/platform/rbac.yaml', import.meta.url);

let world: World;
let fleet: Fleet;
const platforms: ControllerProcess[] = [];

/** The platform as `deploy/platform` starts it: in a process of its own, with its own rights. */
async function startPlatform(name: string): Promise<ControllerProcess> {
  const kubeconfig = await world.controlPlane.kubeconfig({ serviceAccount: 'koupleless-system/module-platform' });
  const platform = new ControllerProcess({
    KUBECONFIG: kubeconfig,
    CONTROLLERS: 'peer',
    ENV: 'dev',
    CLIENT_ID: name,
    POD_NAMESPACE: 'koupleless-system',
    HEALTH_PROBE_PORT: '0',
    METRICS_PORT: '0',
  });
  platforms.push(platform);
  return platform;
}

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
  await world.controlPlane.apply(await readFile(RBAC, 'utf8'));
  await world.startController();
  fleet = await world.startFleet({ count: 3 });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(3));
  await (await startPlatform('platform-a')).line(({ msg }) => msg === 'started leading');
});

afterAll(async () => {
  await Promise.all(platforms.map((platform) => platform.stop('SIGKILL')));
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
  const next = await startPlatform('platform-b');
  await next.line(({ msg }) => msg === 'listening');
  await platforms[0]?.stop('SIGKILL');
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
