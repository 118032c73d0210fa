import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod, moduleWorkload } from '../support/manifests.ts';
import {
  conditionOf,
  endpointsOf,
  eventsOf,
  findLease,
  findNode,
  findPod,
  isReady,
  isSchedulable,
  kibOf,
  nodes,
  pods,
} from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';
import { startWorld } from '../support/start-world.ts';
import { TRANSPORT } from '../support/transport.ts';
import { type ControllerProcess, nodePath, podPath, type World } from '../support/world.ts';

const MIB = 1024 * 1024;

let world: World;
let fleet: Fleet;
let controller: ControllerProcess;

beforeAll(async () => {
  world = await startWorld();
  controller = await world.startController();
  fleet = await world.startFleet({ count: 4, maxMetaspace: 256 * MIB });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(4));
});

afterAll(() => world?.stop());

async function placed(name: string, identity: string): Promise<PodObject> {
  await world.admin.post(
    '/api/v1/namespaces/default/pods',
    modulePod(name, [{ name }], { nodeName: `vnode.${identity}` }),
  );
  return eventually(async () => {
    const pod = await findPod(world.admin, name);
    expect(isReady(pod)).toBe(true);
    return pod as PodObject;
  });
}

describe('a base that restarts under its identity', () => {
  it('has its modules installed again: restartCount + 1, the Pod is the same, and the Node stays Ready', async () => {
    const before = await placed('phoenix', 'base-1');
    const nodesSeen = await Spectator.watch(world.admin, '/api/v1/nodes');
    const podsSeen = await Spectator.watch(world.admin, '/api/v1/namespaces/default/pods');
    await fleet.base('base-1').restart();
    const after = await eventually(async () => {
      const pod = await findPod(world.admin, 'phoenix');
      expect(pod?.status?.containerStatuses?.[0]).toMatchObject({ restartCount: 1, ready: true });
      expect(isReady(pod)).toBe(true);
      return pod;
    }, 120_000);
    expect(after?.metadata.uid).toBe(before.metadata.uid);
    const reason = after?.status?.containerStatuses?.[0]?.lastState?.terminated?.reason;
    expect(podsSeen.everNotReady()).toEqual(['phoenix']);
    expect(nodesSeen.everNotReady()).toEqual([]);
    nodesSeen.stop();
    podsSeen.stop();
    // Over HTTP the public agent does not say that it has just started: what it lacks may be seen first.
    if (TRANSPORT === 'http') expect(reason).toMatch(/^(BaseRestarted|ModuleVanished)$/);
    else {
      expect(reason).toBe('BaseRestarted');
      await eventually(async () =>
        expect((await eventsOf(world.admin, 'Node', 'vnode.base-1')).map((event) => event.reason)).toContain(
          'Rebooted',
        ),
      );
    }
    await world.admin.delete(podPath('phoenix'));
    await eventually(async () => expect(await findPod(world.admin, 'phoenix')).toBeUndefined());
  });
});

describe('the Node of a live base that an admin deletes', () => {
  it('is back within 5 s, its Pods are the same, and nothing is installed again', async () => {
    const before = await placed('kept', 'base-2');
    const uid = (await findNode(world.admin, 'base-2'))?.metadata.uid;
    const mark = fleet.history.mark();
    await world.admin.delete(nodePath('base-2'));
    await eventually(async () => {
      const node = await findNode(world.admin, 'base-2');
      expect(node?.metadata.uid).not.toBe(uid);
      expect(node && isReady(node)).toBe(true);
    }, 5_000);
    await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(4));
    // The lease follows the new Node: one that belonged to the old one would be collected.
    await eventually(async () => {
      const lease = (await findLease(world.admin, 'base-2')) as { metadata: { ownerReferences: { uid: string }[] } };
      const node = await findNode(world.admin, 'base-2');
      expect(lease.metadata.ownerReferences[0]?.uid).toBe(node?.metadata.uid);
    });
    expect((await findPod(world.admin, 'kept'))?.metadata.uid).toBe(before.metadata.uid);
    expect(fleet.history.records({ command: 'installBiz', since: mark })).toEqual([]);
    expect(fleet.history.records({ command: 'uninstallBiz', since: mark })).toEqual([]);
  });
});

describe('what others write', () => {
  it('is put back: conditions that a controller overwrote, labels and taints that were removed', async () => {
    const { admin } = world;
    const pod = await findPod(admin, 'kept');
    const conditions = pod?.status?.conditions?.map((condition) =>
      condition.type === 'Ready' ? { ...condition, status: 'False', reason: 'NodeNotReady' } : condition,
    );
    await admin.mergePatch(`${podPath('kept')}/status`, { status: { conditions } });
    await eventually(async () => expect(isReady(await findPod(admin, 'kept'))).toBe(true));
    await admin.mergePatch(nodePath('base-2'), {
      metadata: { labels: { 'vnode.koupleless.io/name': null } },
      spec: { taints: [] },
    });
    await eventually(async () => {
      const node = await findNode(admin, 'base-2');
      expect(node?.metadata.labels?.['vnode.koupleless.io/name']).toBe('base');
      expect(node?.spec?.taints?.map(({ key }) => key)).toEqual(
        expect.arrayContaining(['schedule.koupleless.io/virtual-node', 'schedule.koupleless.io/node-env']),
      );
    });
    await admin.mergePatch(`${nodePath('base-2')}/status`, {
      status: { conditions: [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }] },
    });
    await eventually(async () => expect(conditionOf(await findNode(admin, 'base-2'), 'Ready')?.status).toBe('True'));
  });
});

describe('a base that says it is going down', () => {
  it('is given up at once, not after 60 s of silence', async () => {
    const leaver = await fleet.add({ identity: 'leaver' });
    leaver.announce();
    await eventually(async () => expect(isReady(await findNode(world.admin, 'leaver'))).toBe(true));
    leaver.sayGoodbye();
    await eventually(async () => expect(await findNode(world.admin, 'leaver')).toBeUndefined(), 5_000);
    await leaver.kill();
  });
});

/** They wait for long, each with a base of its own. */
describe.concurrent('for minutes', () => {
  it('A-004-9 memory: is that of the metaspace, and falls within 15 s when classes are loaded', async () => {
    const node = await eventually(async () => {
      const found = await findNode(world.admin, 'base-3');
      expect(kibOf(found?.status?.capacity?.memory)).toBe(256 * 1024);
      return found;
    });
    const before = kibOf(node?.status?.allocatable?.memory);
    expect(before).toBeLessThan(256 * 1024);
    fleet.base('base-3').setMetaspace({ usedBytes: 120 * MIB });
    await placed('grower', 'base-3');
    await eventually(async () => {
      const now = await findNode(world.admin, 'base-3');
      expect(kibOf(now?.status?.allocatable?.memory)).toBeLessThan(before - 1024);
      expect(now?.metadata.annotations?.['platform.koupleless.io/metaspace-used']).toBe(`${120 * 1024}Ki`);
    }, 15_000);
    expect(kibOf((await findNode(world.admin, 'base-3'))?.status?.capacity?.memory)).toBe(256 * 1024);
  });

  it('a base that falls silent and speaks again: BaseUnreachable, then Ready with the same Pod and module', async () => {
    await fleet.add({ identity: 'sleepy' });
    await schedulable('sleepy');
    const before = await placed('sleeper', 'sleepy');
    const mark = fleet.history.mark();
    const since = performance.now();
    fleet.base('sleepy').silence();
    await eventually(async () => {
      expect(conditionOf(await findNode(world.admin, 'sleepy'), 'Ready')).toMatchObject({
        status: 'False',
        reason: 'BaseUnreachable',
      });
      const pod = await findPod(world.admin, 'sleeper');
      expect(conditionOf(pod, 'Ready')).toMatchObject({ status: 'False', reason: 'BaseUnreachable' });
      expect(conditionOf(pod, 'ContainersReady')?.status).toBe('True');
    });
    // Never before 25 s of silence; the last heartbeat may have been a period before we looked away.
    expect(performance.now() - since).toBeGreaterThan(12_000);
    fleet.base('sleepy').speak();
    fleet.base('sleepy').beat();
    await eventually(async () => {
      expect(isReady(await findNode(world.admin, 'sleepy'))).toBe(true);
      expect(isReady(await findPod(world.admin, 'sleeper'))).toBe(true);
    });
    const pod = await findPod(world.admin, 'sleeper');
    expect(pod?.metadata.uid).toBe(before.metadata.uid);
    expect(pod?.status?.containerStatuses?.[0]?.restartCount).toBe(0);
    expect(fleet.history.records({ command: 'installBiz', base: 'sleepy', since: mark })).toEqual([]);
    expect(fleet.history.records({ command: 'uninstallBiz', base: 'sleepy', since: mark })).toEqual([]);
  });

  it('A-004-10 death: not Ready and out of the Service within 30 s, gone within 70 s, its Pod elsewhere', async () => {
    const { admin, controlPlane } = world;
    await fleet.add({ identity: 'mortal' });
    await schedulable('mortal');
    await controlPlane.apply(moduleWorkload('mover', [{ name: 'mover' }], { spec: { affinity: PREFER_MORTAL } }));
    await controlPlane.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'mover', namespace: 'default' },
      spec: { selector: { app: 'mover' }, ports: [{ port: 8080 }] },
    });
    const readyMover = async () => (await pods(admin, 'app=mover')).filter(isReady);
    const endpoint = (pod: PodObject | undefined) => `${pod?.metadata.name} ${pod?.status?.podIP}`;
    const victim = await eventually(async () => {
      const [pod] = await readyMover();
      expect(pod?.spec.nodeName).toBe('vnode.mortal');
      expect(await endpointsOf(admin, 'mover')).toEqual([endpoint(pod)]);
      return pod;
    });
    const killedAt = performance.now();
    const within = (ms: number): number => killedAt + ms - performance.now();
    await fleet.base('mortal').kill();
    await eventually(async () => {
      expect(conditionOf(await findNode(admin, 'mortal'), 'Ready')).toMatchObject({ status: 'False' });
      expect(await endpointsOf(admin, 'mover')).not.toContain(endpoint(victim));
    }, within(30_000));
    await eventually(async () => {
      expect(await findNode(admin, 'mortal')).toBeUndefined();
      expect(await findLease(admin, 'mortal')).toBeUndefined();
    }, within(70_000));
    await eventually(async () => {
      const [moved] = await readyMover();
      expect(moved?.spec.nodeName).not.toBe('vnode.mortal');
      expect(await endpointsOf(admin, 'mover')).toEqual([endpoint(moved)]);
      expect((await pods(admin)).map(({ spec: { nodeName } }) => nodeName)).not.toContain('vnode.mortal');
    });
    expect(await controller.metric('module_controller_pod_deletes_total', 'BaseDead')).toBeGreaterThan(0);
  });
});

const PREFER_MORTAL = {
  nodeAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        preference: { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['vnode.mortal'] }] },
      },
    ],
  },
};

async function schedulable(identity: string): Promise<void> {
  await eventually(async () => {
    const node = await findNode(world.admin, identity);
    expect(node && isSchedulable(node)).toBe(true);
  });
}
