import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { patchOf } from '../../src/platform/catalog/record/exited-pods.ts';
import { type ExitedRecordStatus, projectExitedRecord } from '../../src/platform/catalog/record/exited-record.ts';
import { eventually } from '../support/eventually.ts';
import { isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const execFileAsync = promisify(execFile);
const GROUP = 'platform.koupleless.io/v1alpha1';
const BASES = 20;
const CONTROLLERS = ['rollout', 'catalog'];
const IN_NAMESPACE = `/apis/${GROUP}/namespaces/${TENANT_NAMESPACE}`;
const MODULES = `${IN_NAMESPACE}/modules`;
const RECORDS = `${IN_NAMESPACE}/moduleexitedrecords`;
const PODS = `/api/v1/namespaces/${TENANT_NAMESPACE}/pods`;
const AT_ONCE = { gracePeriodSeconds: 0 };

let world: World;
let platform: Platform;
let core: ControllerProcess;
let catalog: ControllerProcess;
let tenant: ApiClient;

async function startCatalog(name: string): Promise<ControllerProcess> {
  const process = await platform.start(name, CONTROLLERS.join());
  await leads(process);
  return process;
}

function leads(process: ControllerProcess): Promise<unknown> {
  return process.line(({ msg, lease }) => msg === 'started leading' && lease === 'platform-catalog');
}

async function createModule(module: string, deploy: object): Promise<void> {
  const metadata = { name: `shop-${module}`, namespace: TENANT_NAMESPACE };
  const image = `https://jars.example.com/${module}-1.0.0-ark-biz.jar`;
  const spec = { app: 'Shop', module, base: { name: 'base' }, deploy, release: { id: 'r1', image } };
  await tenant.post(MODULES, { apiVersion: GROUP, kind: 'Module', metadata, spec } as KubeObject);
}

function scale(module: string, replicas: number): Promise<unknown> {
  return tenant.mergePatch(`${MODULES}/shop-${module}/scale`, { spec: { replicas } });
}

function podsOf(module: string): Promise<PodObject[]> {
  return pods(world.admin, `module.koupleless.io/name=${module}`, TENANT_NAMESPACE);
}

async function recordOf(module: string): Promise<ExitedRecordStatus> {
  return (await tenant.get(`${RECORDS}/shop-${module}`)).status;
}

const uidsOf = (all: readonly { readonly uid: string }[]): string[] => all.map(({ uid }) => uid).sort();

/** Waits until the record has the Pods that there are, each with its base. */
async function untilRecorded(module: string, count: number): Promise<PodObject[]> {
  return eventually(async () => {
    const all = await podsOf(module);
    expect(all).toHaveLength(count);
    const { live } = await recordOf(module);
    expect(uidsOf(live)).toEqual(uidsOf(all.map(({ metadata }) => ({ uid: metadata.uid ?? '' }))));
    expect(live.filter(({ node, podIP }) => node === undefined || podIP === undefined)).toEqual([]);
    return all;
  }, 90_000);
}

async function forceDelete(all: readonly PodObject[]): Promise<void> {
  await Promise.all(all.map(({ metadata }) => world.admin.delete(`${PODS}/${metadata.name}`, AT_ONCE)));
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world, CONTROLLERS);
  await platform.installPolicies();
  core = await world.startController();
  await world.startFleet({ count: BASES, installMs: 100, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  tenant = await createTenant(world.controlPlane);
  await platform.optIn(TENANT_NAMESPACE);
  catalog = await startCatalog('catalog-1');
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

describe('the record of a Module', () => {
  it('has 20 Pods that were deleted by force while no controller ran, each once', async () => {
    await createModule('many', { replicas: 20 });
    const before = await untilRecorded('many', 20);
    await Promise.all([core, catalog].map((process) => process.stop('SIGKILL')));
    await forceDelete(before);
    core = await world.startController();
    catalog = await startCatalog('catalog-2');
    await untilRecorded('many', 20);
    const { exited, pods: gone } = await recordOf('many');
    expect(uidsOf(gone)).toEqual(uidsOf(before.map(({ metadata }) => ({ uid: metadata.uid ?? '' }))));
    expect(exited).toBe(20);
    for (const pod of before) {
      const { uid, name, creationTimestamp } = pod.metadata;
      expect(gone.find((one) => one.uid === uid)).toMatchObject({
        name,
        id: 'r1',
        node: pod.spec.nodeName,
        nodeIP: pod.status?.hostIP,
        podIP: pod.status?.podIP,
        createTime: creationTimestamp,
        foundMissing: true,
      });
    }
  });

  it('shows the Pod that went last to kubectl', async () => {
    const kubeconfig = await world.controlPlane.kubeconfig({ user: 'admin' });
    const flags = [`--kubeconfig=${kubeconfig}`, '-n', TENANT_NAMESPACE];
    const { stdout } = await execFileAsync('kubectl', [...flags, 'get', 'mer', 'shop-many']);
    const [heads, row] = stdout.trim().split('\n');
    expect(heads?.split(/\s+/)).toEqual(['NAME', 'EXITED', 'LAST-POD', 'RELEASE', 'NODE', 'GONE', 'REASON', 'AGE']);
    expect(row).toMatch(/^shop-many +20 +shop-many-\S+ +r1 +vnode\.\S+ +\d+[sm]\S* /);
  });

  it('has what goes while another process takes over, as that one has seen it', async () => {
    const before = await untilRecorded('many', 20);
    const next = await platform.start('catalog-3', CONTROLLERS.join());
    await eventually(async () =>
      expect(await next.metric('module_controller_informer_objects', 'kind="CatalogPod"')).toBe(20),
    );
    await catalog.stop('SIGKILL');
    await forceDelete(before.slice(0, 3));
    await leads(next);
    catalog = next;
    await eventually(async () => expect((await recordOf('many')).exited).toBe(23));
    const { pods: gone } = await recordOf('many');
    const uids = before.slice(0, 3).map(({ metadata }) => ({ uid: metadata.uid ?? '' }));
    expect(uidsOf(gone.slice(0, 3))).toEqual(uidsOf(uids));
    expect(gone.slice(0, 3).map(({ foundMissing }) => foundMissing)).toEqual([undefined, undefined, undefined]);
  });

  it('goes with its Module, and the next Module of the name has a new one', async () => {
    const { uid } = (await tenant.get(`${RECORDS}/shop-many`)).metadata;
    await tenant.delete(`${MODULES}/shop-many`);
    await eventually(async () => expect(await podsOf('many')).toEqual([]));
    await createModule('many', { replicas: 1 });
    await untilRecorded('many', 1);
    const next = await tenant.get(`${RECORDS}/shop-many`);
    expect(next.metadata.uid).not.toBe(uid);
    expect([next.status.exited, next.status.pods]).toEqual([0, []]);
    await tenant.delete(`${MODULES}/shop-many`);
    await eventually(async () => expect((await tenant.get(RECORDS)).items).toEqual([]));
  });

  it('keeps 48 of 100 Pods that go at once, the newest first, with few writes', async () => {
    await createModule('crowd', { workload: 'Deployment', replicas: 100 });
    await eventually(async () => {
      expect(await podsOf('crowd')).toHaveLength(100);
      expect((await recordOf('crowd')).live).toHaveLength(100);
    });
    let writes = 0;
    const watch = await tenant.watch(`${RECORDS}`, ({ type }) => {
      if (type === 'MODIFIED') writes++;
    });
    await scale('crowd', 0);
    await eventually(async () => {
      const { exited, live } = await recordOf('crowd');
      expect([exited, live]).toEqual([100, []]);
    });
    watch.stop();
    const { pods: gone } = await recordOf('crowd');
    expect([gone.length, new Set(uidsOf(gone)).size]).toEqual([48, 48]);
    const times = gone.map(({ deleteTime }) => deleteTime);
    expect(times).toEqual(times.toSorted().reverse());
    expect(writes).toBeLessThanOrEqual(50);
    const config = { apiVersion: GROUP, kind: 'PlatformConfig', metadata: { name: 'platform' } };
    const limited = { ...config, spec: { recordLimit: { exitedPod: 10 } } };
    await tenant.post(`${IN_NAMESPACE}/platformconfigs`, limited as KubeObject);
    await eventually(async () => expect((await recordOf('crowd')).pods).toEqual(gone.slice(0, 10)));
    await tenant.delete(`${MODULES}/shop-crowd`);
  });

  it('has each of 100 Pods once although its writer ends while they go', async () => {
    await createModule('storm', { workload: 'Deployment', replicas: 100 });
    await eventually(async () => expect((await recordOf('storm')).live).toHaveLength(100));
    const firstExit = Promise.withResolvers<void>();
    const watch = await tenant.watch(RECORDS, ({ object }) => {
      if (object.metadata.name === 'shop-storm' && object.status?.exited > 0) firstExit.resolve();
    });
    await scale('storm', 0);
    await firstExit.promise;
    watch.stop();
    await catalog.stop('SIGKILL');
    catalog = await startCatalog('catalog-4');
    await eventually(async () => {
      const { exited, live } = await recordOf('storm');
      expect([exited, live]).toEqual([100, []]);
    });
    await tenant.delete(`${MODULES}/shop-storm`);
  });

  it('has why a module failed', async () => {
    await createModule('missing', { replicas: 1 });
    const waiting = await eventually(async () => {
      const [pod] = await untilRecorded('missing', 1);
      const found = pod?.status?.containerStatuses?.[0]?.state?.waiting;
      expect(found?.reason).toMatch(/ErrImagePull|ImagePullBackOff/);
      return found;
    });
    await scale('missing', 0);
    const [gone] = await eventually(async () => {
      const { pods: all } = await recordOf('missing');
      expect(all).toHaveLength(1);
      return all;
    });
    expect(gone?.reason).toMatch(/ErrImagePull|ImagePullBackOff/);
    expect(gone?.message).toBe(waiting?.message);
    expect(gone?.message).not.toBe('');
    await tenant.delete(`${MODULES}/shop-missing`);
  });
});

describe('the API server', () => {
  it('refuses a write for an older version of a record, and a Pod that is there already', async () => {
    await createModule('twice', { replicas: 1 });
    await untilRecorded('twice', 1);
    const path = `${RECORDS}/shop-twice`;
    const createTime = '2026-11-28T10:00:00Z';
    const gone = { uid: 'some-uid', name: 'some-pod', createTime, deleteTime: createTime };
    const write = async (record: KubeObject): Promise<string> => {
      const cached = projectExitedRecord(record);
      const change = { added: [gone], kept: cached.recorded?.uids.length ?? 0, exited: 1, live: record.status.live };
      const options = { body: patchOf(cached, change), contentType: 'application/json-patch+json' };
      return world.admin.request('PATCH', `${path}/status`, options).then(() => 'accepted', messageOf);
    };
    const before = await tenant.get(path);
    expect(await write(before)).toBe('accepted');
    expect(await write(before)).toContain('409 Conflict');
    expect(await write(await tenant.get(path))).toContain('Duplicate value');
    expect((await recordOf('twice')).pods).toEqual([gone]);
    await tenant.delete(`${MODULES}/shop-twice`);
  });
});

describe('a tenant', () => {
  it('reads records, and writes none', async () => {
    await createModule('own', { replicas: 1 });
    await untilRecorded('own', 1);
    const path = `${RECORDS}/shop-own`;
    const answers = await Promise.all(
      [
        tenant.mergePatch(path, { spec: { app: 'Other' } }),
        tenant.mergePatch(`${path}/status`, { status: { pods: [] } }),
        tenant.delete(path),
        tenant.post(RECORDS, {
          apiVersion: GROUP,
          kind: 'ModuleExitedRecord',
          metadata: { name: 'shop-forged', namespace: TENANT_NAMESPACE },
          spec: { app: 'Shop', module: 'forged' },
        } as KubeObject),
      ].map((answer) => answer.then(() => 'accepted', messageOf)),
    );
    for (const answer of answers) expect(answer).toContain('403');
  });

  it('is not written about with a stolen token of the platform where none has opted in', async () => {
    const thief = await world.controlPlane.client({ serviceAccount: 'koupleless-system/module-platform' });
    const forged = {
      apiVersion: GROUP,
      kind: 'ModuleExitedRecord',
      metadata: { name: 'forged', namespace: 'default' },
      spec: { app: 'Shop', module: 'forged' },
    } as KubeObject;
    const path = `/apis/${GROUP}/namespaces/default/moduleexitedrecords`;
    expect(await thief.post(path, forged).then(() => 'accepted', messageOf)).toContain('cannot create resource');
  });
});
