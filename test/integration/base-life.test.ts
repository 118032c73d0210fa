import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod, moduleWorkload } from '../support/manifests.ts';
import {
  conditionOf,
  eventsOf,
  findLease,
  findNode,
  findPod,
  isReady,
  isSchedulable,
  nodes,
  pods,
} from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';
import { type ControllerProcess, nodePath, podPath, startWorld, type World } from '../support/world.ts';

let world: World;
let fleet: Fleet;
let controller: ControllerProcess;

beforeAll(async () => {
  world = await startWorld();
  controller = await world.startController();
  fleet = await world.startFleet({ count: 4, maxMetaspace: 256 * 1024 * 1024 });
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
    });
    expect(after?.metadata.uid).toBe(before.metadata.uid);
    expect(after?.status?.containerStatuses?.[0]?.lastState?.terminated?.reason).toBe('BaseRestarted');
    expect(podsSeen.everNotReady()).toEqual(['phoenix']);
    expect(nodesSeen.everNotReady()).toEqual([]);
    nodesSeen.stop();
    podsSeen.stop();
    await eventually(async () =>
      expect((await eventsOf(world.admin, 'Node', 'vnode.base-1')).map(({ reason }) => reason)).toContain('Rebooted'),
    );
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
    }, 30_000);
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

/** The API server writes `262144Ki` as `256Mi`. */
function kibOf(quantity: string | null | undefined): number {
  const [, digits = '', unit = ''] = /^(\d+)(Ki|Mi|Gi)$/.exec(quantity ?? '') ?? [];
  return Number(digits) * ({ Ki: 1, Mi: 1024, Gi: 1024 ** 2 }[unit] ?? Number.NaN);
}

describe('A-004-9 metaspace', () => {
  it('is the memory of the Node, and follows what moves by 1 MiB', async () => {
    const MiB = 1024 * 1024;
    const node = await eventually(async () => {
      const found = await findNode(world.admin, 'base-3');
      expect(kibOf(found?.status?.capacity?.memory)).toBe(256 * 1024);
      return found;
    }, 30_000);
    const before = kibOf(node?.status?.allocatable?.memory);
    fleet.base('base-3').setMetaspace({ usedBytes: 120 * MiB });
    await placed('grower', 'base-3');
    await eventually(async () => {
      const now = await findNode(world.admin, 'base-3');
      expect(kibOf(now?.status?.allocatable?.memory)).toBeLessThan(before - 1024);
      expect(now?.metadata.annotations?.['platform.koupleless.io/metaspace-used']).toBe(`${120 * 1024}Ki`);
    }, 30_000);
  });
});

describe('a base that says it is going down', () => {
  it('is given up at once, not after 60 s of silence', async () => {
    const leaver = await fleet.add({ identity: 'leaver' });
    leaver.announce();
    await eventually(async () => expect(isReady(await findNode(world.admin, 'leaver'))).toBe(true));
    const baseMetadata = { identity: 'leaver', name: 'base', version: '1.0.0', clusterName: 'default' };
    const data = { baseMetadata, localIP: leaver.localIP, localHostName: 'leaver', port: 0, state: 'deactivated' };
    leaver.publishRaw('heart', JSON.stringify({ publishTimestamp: Date.now(), data }));
    await eventually(async () => expect(await findNode(world.admin, 'leaver')).toBeUndefined(), 5_000);
    await leaver.kill();
  });
});

describe('A-004-10 a base that falls silent', () => {
  it('and speaks again: Node and Pods not Ready with BaseUnreachable, then Ready with the same Pod and module', async () => {
    const before = await placed('sleeper', 'base-4');
    const mark = fleet.history.mark();
    const since = performance.now();
    fleet.base('base-4').silence();
    await eventually(async () => {
      expect(conditionOf(await findNode(world.admin, 'base-4'), 'Ready')).toMatchObject({
        status: 'False',
        reason: 'BaseUnreachable',
      });
      const pod = await findPod(world.admin, 'sleeper');
      expect(conditionOf(pod, 'Ready')).toMatchObject({ status: 'False', reason: 'BaseUnreachable' });
      expect(conditionOf(pod, 'ContainersReady')?.status).toBe('True');
    }, 40_000);
    // Never before 25 s of silence; the last heartbeat may have been 10 s before we looked away.
    expect(performance.now() - since).toBeGreaterThan(14_000);
    fleet.base('base-4').speak();
    fleet.base('base-4').beat();
    await eventually(async () => {
      expect(isReady(await findNode(world.admin, 'base-4'))).toBe(true);
      expect(isReady(await findPod(world.admin, 'sleeper'))).toBe(true);
    });
    const pod = await findPod(world.admin, 'sleeper');
    expect(pod?.metadata.uid).toBe(before.metadata.uid);
    expect(pod?.status?.containerStatuses?.[0]?.restartCount).toBe(0);
    expect(fleet.history.records({ command: 'installBiz', since: mark })).toEqual([]);
    expect(fleet.history.records({ command: 'uninstallBiz', since: mark })).toEqual([]);
  });

  it('and dies: Node and Lease gone, its Pod replaced on another base, and out of the Service before', async () => {
    const { admin, controlPlane } = world;
    const spec = {
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            {
              weight: 100,
              preference: {
                matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['vnode.base-4'] }],
              },
            },
          ],
        },
      },
    };
    await controlPlane.apply(moduleWorkload('mover', [{ name: 'mover' }], { spec }));
    await controlPlane.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'mover', namespace: 'default' },
      spec: { selector: { app: 'mover' }, ports: [{ port: 8080 }] },
    });
    const endpoints = async (): Promise<string[]> => {
      const slices = await admin.list(
        '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dmover',
      );
      return slices.flatMap((slice) =>
        (slice.endpoints ?? [])
          .filter((endpoint: { conditions: { ready: boolean } }) => endpoint.conditions.ready)
          .flatMap((endpoint: { addresses: string[] }) => endpoint.addresses),
      );
    };
    const ofMover = async () => (await pods(admin, 'app=mover')).filter(isReady);
    const [victim] = await eventually(async () => {
      const found = await ofMover();
      expect(found).toHaveLength(1);
      expect(await endpoints()).toEqual([found[0]?.status?.podIP]);
      return found;
    });
    const identity = victim?.spec.nodeName?.slice('vnode.'.length) ?? '';
    const deadIp = victim?.status?.podIP;
    await fleet.base(identity).kill();
    await eventually(async () => expect(await endpoints()).not.toContain(deadIp), 40_000);
    expect(await findNode(admin, identity)).toBeDefined();
    await eventually(async () => {
      expect(await findNode(admin, identity)).toBeUndefined();
      expect(await findLease(admin, identity)).toBeUndefined();
      const [moved] = await ofMover();
      expect(moved?.spec.nodeName).not.toBe(victim?.spec.nodeName);
      expect(await endpoints()).toEqual([moved?.status?.podIP]);
    }, 60_000);
    await eventually(async () =>
      expect((await pods(admin)).map(({ spec: { nodeName } }) => nodeName)).not.toContain(`vnode.${identity}`),
    );
    expect(await controller.metric('module_controller_pod_deletes_total', 'BaseDead')).toBeGreaterThan(0);
  });
});
