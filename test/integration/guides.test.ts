import { describe, expect, it, type TestContext } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { commandsOf, runInShell } from '../support/guide.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { eventsOf, findNode, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { startWorld } from '../support/start-world.ts';
import { type AnyControlPlane, startOwnWorld, type World } from '../support/world.ts';

const PAGE = 'docs/guides.md';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';

/** A cluster with bases, on which somebody does what the page says. Stops with the test. */
class Ground<C extends AnyControlPlane> {
  readonly world: World<C>;

  constructor(world: World<C>, { onTestFinished }: TestContext) {
    this.world = world;
    onTestFinished(() => world.stop());
  }

  async shell(block: string | undefined): Promise<string> {
    if (block === undefined) throw new Error(`${PAGE} has fewer commands than this test`);
    const kubeconfig = await this.world.controlPlane.kubeconfig({ user: 'admin', groups: ['system:masters'] });
    return runInShell(block, { kubeconfig });
  }

  async basesReady(count: number): Promise<void> {
    await eventually(async () => expect((await nodes(this.world.admin)).filter(isSchedulable)).toHaveLength(count));
  }

  /** Resolves with the Nodes of the Pods, sorted, once `count` Pods are Ready and no other is there. */
  running(count: number): Promise<string[]> {
    return eventually(async () => {
      const all = await pods(this.world.admin);
      expect(all.filter(isReady)).toHaveLength(count);
      expect(all).toHaveLength(count);
      return all.map(({ spec }) => spec.nodeName ?? '').sort();
    }, 180_000);
  }
}

const commandsAt = (fleet: Fleet, command: 'installBiz' | 'uninstallBiz', since?: number): string[] =>
  fleet.history.records({ command, ...(since === undefined ? {} : { since }) }).map(({ base }) => base);

/** They wait for long, each in a cluster of its own. */
describe.concurrent('the guides', () => {
  it('a base is taken out of service: its module is served elsewhere, it loses its Node, and comes back', async (context) => {
    const ground = new Ground(await startWorld(), context);
    const { world } = ground;
    const fleet = await world.startFleet({ count: 3 });
    await world.startController();
    await ground.basesReady(3);
    await world.admin.post(DEPLOYMENTS, moduleWorkload('orders', [{ name: 'orders' }], { replicas: 2 }));
    const [drained = ''] = await ground.running(2);
    const identity = drained.replace('vnode.', '');
    const [drain, gone, back] = commandsOf(PAGE, 'Take a base out of service').map((block) =>
      block.replaceAll('base-1', identity),
    );
    await ground.shell(drain);
    expect(fleet.base(identity).modules()).toEqual([]);
    expect(await ground.running(2)).not.toContain(drained);
    await ground.shell(back);
    expect((await findNode(world.admin, identity))?.spec).not.toHaveProperty('unschedulable');
    const isGone = ground.shell(gone);
    await fleet.base(identity).kill();
    await isGone;
    expect(await findNode(world.admin, identity)).toBeUndefined();
  });

  it('the move from the Go program installs and uninstalls nothing', async (context) => {
    const ground = new Ground(await startWorld(), context);
    const { world } = ground;
    const identities = ['base-1', 'base-2', 'base-3'];
    for (const identity of identities) await world.admin.post('/api/v1/nodes', nodeOfGoProgram(identity));
    await world.admin.post(DEPLOYMENTS, moduleWorkload('orders', [{ name: 'orders' }], { replicas: 3 }));
    const bound = await eventually(async () => {
      const all = await pods(world.admin);
      expect(all.map(({ spec }) => spec.nodeName).sort()).toEqual(identities.map((name) => `vnode.${name}.dev`));
      return all;
    });
    for (const pod of bound) await reportRunning(world.admin, pod);
    const fleet = await world.startFleet({ count: 3, announce: false });
    for (const name of identities) fleet.base(name).placeModule({ bizName: 'orders', bizVersion: '1.0.0' });
    await world.startController();
    fleet.announce();
    await eventually(async () => {
      for (const name of identities) expect(isReady(await findNode(world.admin, name))).toBe(true);
    });
    const [look, move] = commandsOf(PAGE, 'Move from the Go program');
    await eventually(async () => expect(await eventsOf(world.admin, 'Node', 'vnode.base-1')).not.toEqual([]));
    const listed = await ground.shell(look);
    for (const name of identities) expect(listed).toContain(`vnode.${name} `);
    await ground.shell(move);
    expect(await ground.running(3)).toEqual(identities.map((name) => `vnode.${name}`));
    const left = (await nodes(world.admin)).map(({ metadata }) => metadata.name).sort();
    expect(left).toEqual(identities.map((name) => `vnode.${name}`));
    expect([commandsAt(fleet, 'installBiz'), commandsAt(fleet, 'uninstallBiz')]).toEqual([[], []]);
  }, 300_000);

  it('removal leaves nothing, and nothing hangs', async (context) => {
    const ground = new Ground(await startOwnWorld({}), context);
    const own = ground.world;
    const fleet = await own.startFleet({ count: 2 });
    const controller = await own.startController();
    await ground.basesReady(2);
    await own.admin.post(DEPLOYMENTS, moduleWorkload('orders', [{ name: 'orders' }], { replicas: 2 }));
    await ground.running(2);
    const [look, remove] = commandsOf(PAGE, 'Remove everything');
    expect(await ground.shell(look)).toContain('orders');
    await own.admin.delete(`${DEPLOYMENTS}/orders`);
    await eventually(async () => expect(await ground.shell(look)).toBe(''));
    expect(fleet.bases.map((base) => base.modules())).toEqual([[], []]);
    // As the deletion of its Deployment does it.
    expect(await controller.stop()).toBe(0);
    await ground.shell(remove);
    expect(await nodes(own.admin)).toEqual([]);
    const ours = (object: KubeObject): boolean => /koupleless|module-controller|vnode/.test(JSON.stringify(object));
    const left = await Promise.all(
      [
        '/apis/coordination.k8s.io/v1/leases',
        '/api/v1/configmaps',
        '/api/v1/namespaces',
        '/apis/rbac.authorization.k8s.io/v1/clusterroles',
        '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
        '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
      ].map(async (path) => (await own.admin.list(path)).filter(ours).map(({ metadata }) => metadata.name)),
    );
    expect(left.flat()).toEqual([]);
  });
});

/** As the Go program writes it: its name ends with the ENV, and no label names a tunnel. */
function nodeOfGoProgram(identity: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `vnode.${identity}.dev`,
      labels: {
        'virtual-kubelet.koupleless.io/component': 'vnode',
        'virtual-kubelet.koupleless.io/env': 'dev',
        'base.koupleless.io/name': 'base',
        'base.koupleless.io/version': '1.0.0',
        'kubernetes.io/hostname': `vnode.${identity}.dev`,
      },
    },
    spec: {
      taints: [
        { key: 'schedule.koupleless.io/virtual-node', value: 'True', effect: 'NoExecute' },
        { key: 'schedule.koupleless.io/node-env', value: 'dev', effect: 'NoExecute' },
      ],
    },
    status: {
      capacity: { pods: '65535' },
      allocatable: { pods: '65535' },
      conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }],
    },
  };
}

/** As the Go program did before it was stopped. */
async function reportRunning(
  admin: World['admin'],
  { metadata, spec }: Awaited<ReturnType<typeof pods>>[number],
): Promise<void> {
  const state = { running: { startedAt: new Date().toISOString() } };
  const status = {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: spec.containers.map(({ name, image = '' }) => ({
      name,
      image,
      imageID: '',
      ready: true,
      restartCount: 0,
      state,
    })),
  };
  await admin.mergePatch(`/api/v1/namespaces/default/pods/${metadata.name}/status`, { status });
}
