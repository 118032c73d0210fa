import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { ApiClient } from '../../samples/control-plane/api-client.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod, moduleWorkload, type PodOptions } from '../support/manifests.ts';
import {
  conditionOf,
  eventsOf,
  find,
  findNode,
  isReady,
  isSchedulable,
  pods,
  waitingReason,
} from '../support/observe.ts';
import { startWorld } from '../support/start-world.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import { podPath, type World } from '../support/world.ts';

const MIB = 1024 * 1024;

let world: World;
let fleet: Fleet;
let tenant: ApiClient;

beforeAll(async () => {
  world = await startWorld();
  await world.startController();
  // 60 MiB are used at the start.
  fleet = await world.startFleet({ count: 1, maxMetaspace: 512 * MIB, announce: false });
  // No Pod asks for it, and it is kept.
  fleet.base('base-1').placeModule({ bizName: 'stray', bizVersion: '1.0.0' });
  fleet.announce();
  tenant = await createTenant(world.controlPlane);
  await eventually(async () => {
    const node = await findNode(world.admin, 'base-1');
    expect(node && isSchedulable(node)).toBe(true);
    expect(node?.status?.allocatable?.memory).toBeDefined();
  });
});

afterAll(() => world?.stop());

const PODS_PATH = `/api/v1/namespaces/${TENANT_NAMESPACE}/pods`;

async function bind(name: string, options: PodOptions = {}): Promise<void> {
  const pod = modulePod(name, [{ name }], { nodeName: 'vnode.base-1', ...options });
  // As if a scheduler had bound it: the API server takes no status with a new Pod.
  const status = { conditions: [{ type: 'PodScheduled', status: 'True' }] };
  await tenant.post(PODS_PATH, { ...pod, metadata: { ...pod.metadata, namespace: TENANT_NAMESPACE }, status });
}

const requesting = (memory: string): PodOptions => ({ container: { resources: { requests: { memory } } } });
const podOf = (name: string) => find<PodObject>(world.admin, podPath(name, TENANT_NAMESPACE));

async function isHeldFor(name: string, reason: string): Promise<void> {
  await eventually(async () => {
    const pod = await podOf(name);
    expect(waitingReason(pod)).toBe(reason);
    expect(pod?.status?.phase).toBe('Pending');
    expect((await eventsOf(world.admin, 'Pod', name)).map((event) => `${event.type} ${event.reason}`)).toEqual([
      `Warning ${reason}`,
    ]);
  });
}

describe('a tenant that binds Pods by nodeName', () => {
  it('gets none past the checks of a kubelet, and each waits with its reason', async () => {
    await bind('big', requesting('1Gi'));
    await bind('elsewhere', { spec: { nodeSelector: { zone: 'x' } } });
    await isHeldFor('big', 'OutOfmemory');
    await isHeldFor('elsewhere', 'NodeAffinity');
    expect(fleet.history.records({ command: 'installBiz' })).toEqual([]);
  });

  it('gets none installed that is larger than a replica keeps, and each says what is too large', async () => {
    const large = 'x'.repeat(1.2 * MIB);
    await bind('large-args', { container: { args: [large] } });
    await bind('large-env', {
      container: {
        env: [
          { name: 'BIZ_VERSION', value: '1.0.0' },
          { name: 'LARGE', value: large },
        ],
      },
    });
    for (const field of ['args', 'env']) {
      await eventually(async () => {
        const pod = await podOf(`large-${field}`);
        const { waiting } = pod?.status?.containerStatuses?.[0]?.state ?? {};
        expect(waiting?.reason).toBe('CreateContainerConfigError');
        expect(waiting?.message).toContain(`most of them ${field}: at most 65536 are allowed`);
      });
      await tenant.delete(podPath(`large-${field}`, TENANT_NAMESPACE));
      await eventually(async () => expect(await podOf(`large-${field}`)).toBeUndefined());
    }
    expect(fleet.history.records({ command: 'installBiz' })).toEqual([]);
  });

  it('holds up nobody else: a Deployment that the scheduler binds is served', async () => {
    // Without a memory request: the scheduler counts what waiting Pods request.
    await world.controlPlane.apply(moduleWorkload('honest', [{ name: 'honest' }]));
    await eventually(async () => {
      const [pod] = await pods(world.admin, 'app=honest');
      expect(isReady(pod)).toBe(true);
      // What tells the Pods of the scheduler from those that nobody has checked.
      expect(conditionOf(pod, 'PodScheduled')?.status).toBe('True');
    });
    expect(conditionOf(await podOf('big'), 'PodScheduled')).toBeUndefined();
  });

  it('sees a Pod start when there is room for it', async () => {
    await bind('first', requesting('200Mi'));
    await eventually(async () => expect(isReady(await podOf('first'))).toBe(true));
    await bind('second', requesting('300Mi'));
    await isHeldFor('second', 'OutOfmemory');
    await tenant.delete(podPath('first', TENANT_NAMESPACE));
    await eventually(async () => expect(isReady(await podOf('second'))).toBe(true));
  });

  it('deletes a Pod that waits, and the base hears nothing of it', async () => {
    const mark = fleet.history.mark();
    await tenant.delete(podPath('big', TENANT_NAMESPACE));
    await eventually(async () => expect(await podOf('big')).toBeUndefined());
    expect((await podOf('elsewhere'))?.status?.phase).toBe('Pending');
    for (const bizName of ['big', 'elsewhere']) expect(fleet.history.records({ bizName })).toEqual([]);
    expect(fleet.history.records({ command: 'uninstallBiz', since: mark })).toEqual([]);
  });

  it('labels a Pod that is being deleted, and the base hears nothing of it', async () => {
    const { metadata, ...pod } = modulePod('stray', [{ name: 'stray' }], { nodeName: 'vnode.base-1' });
    const path = podPath('stray', TENANT_NAMESPACE);
    const unlabelled = { name: 'stray', namespace: TENANT_NAMESPACE, finalizers: ['example.com/kept'] };
    await tenant.post(PODS_PATH, { ...pod, metadata: unlabelled });
    await tenant.delete(path);
    await tenant.mergePatch(path, { metadata: { labels: metadata.labels } });
    // The controller gives it up at once: what stays is the finalizer.
    await eventually(async () => expect((await podOf('stray'))?.metadata.deletionGracePeriodSeconds).toBe(0));
    await tenant.mergePatch(path, { metadata: { finalizers: null } });
    await eventually(async () => expect(await podOf('stray')).toBeUndefined());
    expect(fleet.history.records({ bizName: 'stray' })).toEqual([]);
  });

  it('learns no address of a base that its Pods do not fit, by a Service that publishes what is not ready', async () => {
    const slices = `/apis/discovery.k8s.io/v1/namespaces/${TENANT_NAMESPACE}/endpointslices`;
    const addressesOf = async (service: string): Promise<string[]> => {
      const { items } = await world.admin.get(`${slices}?labelSelector=kubernetes.io/service-name%3D${service}`);
      return items.flatMap(({ endpoints }: { endpoints: { addresses: string[] }[] | null }) =>
        (endpoints ?? []).flatMap(({ addresses }) => addresses),
      );
    };
    const names = ['near', 'far'];
    for (const name of names)
      await tenant.post(`/api/v1/namespaces/${TENANT_NAMESPACE}/services`, {
        metadata: { name },
        spec: { selector: { app: name }, ports: [{ port: 80 }], publishNotReadyAddresses: true },
      });
    await bind('far', { labels: { app: 'far' }, spec: { nodeSelector: { zone: 'x' } } });
    await isHeldFor('far', 'NodeAffinity');
    expect((await podOf('far'))?.status).not.toHaveProperty('podIP');
    // A Pod that came later has its address in its Service.
    await bind('near', { labels: { app: 'near' } });
    await eventually(async () => expect(await addressesOf('near')).toHaveLength(1));
    expect(await addressesOf('far')).toEqual([]);
    for (const name of names) await tenant.delete(podPath(name, TENANT_NAMESPACE));
    await eventually(async () => expect(await podOf('near')).toBeUndefined());
  });
});
