import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
import { collectionPathOf } from '../../src/kube/resource.ts';
import { WORKLOAD_KINDS } from '../../src/platform/catalog/compose/compose.ts';
import { WORKLOADS, type WorkloadKind } from '../../src/platform/catalog/module/module.ts';
import { eventually } from '../support/eventually.ts';
import { FeedClient, FeedFiles } from '../support/feed-client.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { eventsOf, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const execFileAsync = promisify(execFile);
const GROUP = 'platform.koupleless.io/v1alpha1';
const JARS = 'https://jars.example.com';
const BASES = 3;
const APP_TOKEN = 'a'.repeat(40);
const CONTROLLERS = ['rollout', 'catalog'];
const MODULES = `/apis/${GROUP}/namespaces/${TENANT_NAMESPACE}/modules`;
const RELEASES = `/apis/${GROUP}/namespaces/${TENANT_NAMESPACE}/modulereleases`;
const CONFIGS = `/apis/${GROUP}/namespaces/${TENANT_NAMESPACE}/platformconfigs`;
const CONFIGS_OF_DEFAULT = `/apis/${GROUP}/namespaces/default/platformconfigs`;
const MODULE_DEPLOYMENTS = `/apis/${GROUP}/namespaces/${TENANT_NAMESPACE}/moduledeployments`;
const SERVICES = `/api/v1/namespaces/${TENANT_NAMESPACE}/services`;
const BINDINGS = `/apis/rbac.authorization.k8s.io/v1/namespaces/${TENANT_NAMESPACE}/rolebindings`;

let world: World;
let platform: Platform;
let controller: ControllerProcess;
let files: FeedFiles;
let tenant: ApiClient;
/** The platform's account in the hands of a thief. */
let thief: ApiClient;

function moduleOf(module: string, spec: Record<string, unknown> = {}): KubeObject {
  const metadata = { name: `shop-${module}`, namespace: TENANT_NAMESPACE };
  const ports = [{ name: 'http', port: 8080 }];
  return {
    apiVersion: GROUP,
    kind: 'Module',
    metadata,
    spec: { app: 'Shop', module, base: { name: 'base' }, ports, release: { id: 'r1' }, ...spec },
  };
}

function jarOf(module: string, version: string): string {
  return `${JARS}/${module}-${version}-ark-biz.jar`;
}

function releaseOf(module: string, ...versions: readonly string[]): KubeObject {
  const metadata = { name: `shop-${module}`, namespace: TENANT_NAMESPACE };
  const releases = versions.map((version, index) => ({ id: `r${index + 1}`, image: jarOf(module, version) }));
  return { apiVersion: GROUP, kind: 'ModuleRelease', metadata, spec: { releases } };
}

function answerTo(object: KubeObject): Promise<string> {
  return tenant.post(`${MODULES}?dryRun=All`, object).then(() => 'accepted', messageOf);
}

function workloadPath(kind: WorkloadKind, module: string): string {
  const collection = collectionPathOf(WORKLOAD_KINDS[kind], TENANT_NAMESPACE);
  return `${collection}/shop-${module}`;
}

/** Reason of the condition Ready. */
async function stateOf(module: string): Promise<unknown> {
  const { status } = await tenant.get(`${MODULES}/shop-${module}`);
  return status?.conditions.find(({ type }: { type: string }) => type === 'Ready')?.reason;
}

async function versionsOf(module: string): Promise<(string | undefined)[]> {
  const all = await pods(world.admin, `module.koupleless.io/name=${module}`, TENANT_NAMESPACE);
  return all.filter(isReady).map(({ metadata }) => metadata.labels?.['module.koupleless.io/version']);
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world, CONTROLLERS);
  await platform.installPolicies();
  await world.startController();
  await world.startFleet({ count: BASES, installMs: 100, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  tenant = await createTenant(world.controlPlane);
  thief = await world.controlPlane.client({ serviceAccount: 'koupleless-system/module-platform' });
  const { authority } = world.controlPlane;
  const pair = authority.issue({ commonName: '127.0.0.1', hosts: ['127.0.0.1'] });
  files = await FeedFiles.write(
    { ...pair, ca: authority.certificate },
    {},
    { [`${TENANT_NAMESPACE}.Shop`]: APP_TOKEN },
  );
  controller = await platform.start('catalog-1', CONTROLLERS.join(), files.env);
  await controller.line(({ msg, lease }) => msg === 'started leading' && lease === 'platform-catalog');
});

afterAll(async () => {
  await platform?.stop();
  await files?.remove();
  await world?.stop();
});

describe('a namespace that has not opted in', () => {
  it('gets nothing composed, and its Modules say what is missing', async () => {
    await tenant.post(RELEASES, releaseOf('early', '1.0.0'));
    await tenant.post(MODULES, moduleOf('early'));
    await eventually(async () => expect(await stateOf('early')).toBe('NotPermitted'));
    expect((await tenant.get(MODULE_DEPLOYMENTS)).items).toEqual([]);
    await platform.optIn(TENANT_NAMESPACE);
    await eventually(async () => expect(await stateOf('early')).toBe('Released'), 60_000);
    await tenant.delete(`${MODULES}/shop-early`);
    await eventually(async () => expect(await versionsOf('early')).toEqual([]));
  });
});

describe('a Module', () => {
  beforeAll(async () => {
    await platform.optIn(TENANT_NAMESPACE);
  });

  it('is published, scaled, released, taken back, and deleted with all that it made', async () => {
    await tenant.post(RELEASES, releaseOf('cart', '1.0.0', '2.0.0'));
    await tenant.post(MODULES, moduleOf('cart', { deploy: { replicas: 2 } }));
    await eventually(async () => expect(await stateOf('cart')).toBe('Released'), 60_000);
    expect(await versionsOf('cart')).toEqual(['1.0.0', '1.0.0']);
    expect((await tenant.get(`${SERVICES}/shop-cart`)).spec).toMatchObject({ clusterIP: 'None' });

    await tenant.mergePatch(`${MODULES}/shop-cart/scale`, { spec: { replicas: 3 } });
    await eventually(async () => expect(await versionsOf('cart')).toHaveLength(3));
    await tenant.mergePatch(`${MODULES}/shop-cart`, { spec: { release: { id: 'r2' } } });
    await eventually(async () => expect(await versionsOf('cart')).toEqual(['2.0.0', '2.0.0', '2.0.0']), 60_000);
    await tenant.mergePatch(`${MODULES}/shop-cart`, { spec: { release: { id: 'r9' } } });
    await eventually(async () => {
      const { status } = await tenant.get(`${MODULES}/shop-cart`);
      expect(status.conditions.find(({ type }: { type: string }) => type === 'ReleaseFound').status).toBe('False');
      expect(status.release.id).toBe('r2');
    });
    await tenant.mergePatch(`${MODULES}/shop-cart`, { spec: { release: { id: 'r1' } } });
    await eventually(async () => expect(await versionsOf('cart')).toEqual(['1.0.0', '1.0.0', '1.0.0']), 60_000);
    await eventually(async () => {
      const reasons = (await eventsOf(world.admin, 'Module', 'shop-cart')).map(({ reason }) => reason);
      expect(new Set(reasons)).toEqual(new Set(['Released', 'ReleaseMissing']));
    });

    await tenant.delete(`${MODULES}/shop-cart`);
    await eventually(async () => {
      expect((await tenant.get(MODULE_DEPLOYMENTS)).items).toEqual([]);
      expect((await tenant.get(SERVICES)).items).toEqual([]);
      expect(await versionsOf('cart')).toEqual([]);
    }, 60_000);
    expect((await tenant.get(`${RELEASES}/shop-cart`)).spec.releases).toHaveLength(2);
  });

  it.each(WORKLOADS)('works as a %s', async (workload) => {
    const name = workload.toLowerCase();
    const copies = workload === 'DaemonSet' ? BASES : 2;
    const release = { id: 'r1', image: jarOf(name, '1.0.0') };
    await tenant.post(MODULES, moduleOf(name, { deploy: { workload, replicas: 2 }, release }));
    await eventually(async () => expect(await stateOf(name)).toBe('Released'), 60_000);
    expect(await versionsOf(name)).toHaveLength(copies);
    const path = workloadPath(workload, name);
    expect((await tenant.get(path)).metadata.generation).toBe(1);
    const next = { id: 'r2', image: jarOf(name, '2.0.0') };
    await tenant.mergePatch(`${MODULES}/shop-${name}`, { spec: { release: next } });
    await eventually(async () => expect(new Set(await versionsOf(name))).toEqual(new Set(['2.0.0'])), 60_000);
    await eventually(async () => expect(await stateOf(name)).toBe('Released'), 60_000);
    // One write for the release, however many statuses of the workload come.
    expect((await tenant.get(path)).metadata.generation).toBe(2);
    await tenant.delete(`${MODULES}/shop-${name}`);
    await eventually(async () => expect(await versionsOf(name)).toEqual([]), 60_000);
  });

  it('gets its Service and its workload back, and what others change in them', async () => {
    await tenant.post(MODULES, moduleOf('kept', { release: { id: 'r1', image: jarOf('kept', '1.0.0') } }));
    await eventually(async () => expect(await stateOf('kept')).toBe('Released'), 60_000);
    const { uid } = (await tenant.get(`${SERVICES}/shop-kept`)).metadata;
    await tenant.delete(`${SERVICES}/shop-kept`);
    await eventually(async () => expect((await tenant.get(`${SERVICES}/shop-kept`)).metadata.uid).not.toBe(uid), 5_000);
    await tenant.mergePatch(`${MODULE_DEPLOYMENTS}/shop-kept`, { spec: { replicas: 2, minReadySeconds: 1 } });
    await eventually(async () => {
      const { spec } = await tenant.get(`${MODULE_DEPLOYMENTS}/shop-kept`);
      expect([spec.replicas, spec.minReadySeconds]).toEqual([1, 1]);
    });
    await eventually(async () => {
      const events = await eventsOf(world.admin, 'Module', 'shop-kept');
      const texts = events.filter(({ reason }) => reason === 'Restored').map(({ message }) => message);
      expect(texts.join()).toMatch(/has changed spec\.replicas of ModuleDeployment shop-kept/);
    });
    await tenant.delete(`${MODULES}/shop-kept`);
  });

  it('goes back by rollbackTo, and takes the manifest of its user after that', async () => {
    const manifest = (id: string): KubeObject => moduleOf('back', { release: { id } });
    const kubeconfig = await world.controlPlane.kubeconfig({ user: 'admin' });
    const apply = async (id: string, ...flags: string[]): Promise<string> => {
      const applied = execFileAsync('kubectl', [`--kubeconfig=${kubeconfig}`, 'apply', ...flags, '-f', '-']);
      applied.child.stdin?.end(JSON.stringify(manifest(id)));
      return (await applied).stdout;
    };
    const inForce = async (): Promise<unknown> => (await tenant.get(`${MODULES}/shop-back`)).status?.release?.id;
    await tenant.post(RELEASES, releaseOf('back', '1.0.0', '2.0.0'));
    for (const flags of [['--server-side'], []]) {
      await apply('r1', ...flags);
      await eventually(async () => expect(await inForce()).toBe('r1'));
      await apply('r2', ...flags);
      await eventually(async () => expect(await inForce()).toBe('r2'));
      await tenant.mergePatch(`${MODULES}/shop-back`, { spec: { rollbackTo: {} } });
      await eventually(async () => {
        const { spec } = await tenant.get(`${MODULES}/shop-back`);
        expect([spec.release, spec.rollbackTo, await inForce()]).toEqual([{ id: 'r1' }, undefined, 'r1']);
      });
      await apply('r2', ...flags);
      await eventually(async () => expect(await inForce()).toBe('r2'));
      await tenant.delete(`${MODULES}/shop-back`);
      await eventually(async () => expect((await tenant.get(MODULE_DEPLOYMENTS)).items).toEqual([]));
    }
  });

  it.each<[string, Record<string, unknown>]>([
    ['metadata.name must be {app}-{module}', { module: 'other' }],
    ['two of them have the same number', { ports: ['a', 'b'].map((name) => ({ name, port: 8080 })) }],
    ['hostNetwork has no effect on a module', { deploy: { hostNetwork: true } }],
    ['no environment reaches a module', { deploy: { env: [{ name: 'A', value: 'b' }] } }],
    ['must be the address of a jar', { release: { id: 'r1', image: 'nginx:1' } }],
    ['strategy.type must be one of the workload', { deploy: { workload: 'DaemonSet', strategy: { type: 'Batch' } } }],
    ['peer needs workload: ModuleDeployment', { deploy: { workload: 'Deployment', peer: true } }],
    ['spec.base', { base: {} }],
  ])('is refused: %s', async (message, spec) => {
    expect(await answerTo({ ...moduleOf('refused', spec), metadata: { name: 'shop-refused' } })).toContain(message);
  });

  it('keeps its application, its name and its kind of workload', async () => {
    await tenant.post(MODULES, moduleOf('fixed', { release: undefined }));
    const refusal = (spec: object): Promise<string> =>
      tenant.mergePatch(`${MODULES}/shop-fixed`, { spec }).then(() => 'accepted', messageOf);
    expect(await refusal({ app: 'SHOP' })).toContain('app cannot be changed');
    expect(await refusal({ deploy: { workload: 'Deployment' } })).toContain('deploy.workload cannot be changed');
    await eventually(async () => expect(await stateOf('fixed')).toBe('NoRelease'));
    await tenant.delete(`${MODULES}/shop-fixed`);
  });

  it('never runs the jar of a former release under another id', async () => {
    const image = jarOf('jar', '1.0.0');
    const sha256 = 'a'.repeat(64);
    await tenant.post(MODULES, moduleOf('jar', { release: { id: 'r1', image, sha256 } }));
    const answer = (release: object): Promise<string> =>
      tenant.mergePatch(`${MODULES}/shop-jar?dryRun=All`, { spec: { release } }).then(() => 'accepted', messageOf);
    expect(await answer({ id: 'r2' })).toContain('release has another id and the jar of the former one');
    expect(await answer({ id: 'r2', image: jarOf('jar', '2.0.0') })).toContain('release.sha256 is that of the former');
    expect(await answer({ id: 'r2', image: null, sha256: null })).toBe('accepted');
    expect(await answer({ id: 'r2', image: jarOf('jar', '2.0.0'), sha256: null })).toBe('accepted');
    expect(await answer({ id: 'r2', version: '2.0.0', sha256: 'b'.repeat(64) })).toBe('accepted');
    expect(await answer({ image: jarOf('jar', '2.0.0') })).toBe('accepted');
    await tenant.delete(`${MODULES}/shop-jar`);
  });

  it('is not Ready while nobody has published its release', async () => {
    const image = jarOf('unknown', '1.0.0');
    await tenant.post(MODULES, moduleOf('unknown', { release: { id: 'r1', image } }));
    await eventually(async () => expect(await stateOf('unknown')).toBe('Released'));
    await tenant.mergePatch(`${MODULES}/shop-unknown`, { spec: { release: { id: 'r9', image: null } } });
    await eventually(async () => expect(await stateOf('unknown')).toBe('ReleaseMissing'));
    expect(await versionsOf('unknown')).toEqual(['1.0.0']);
    await tenant.delete(`${MODULES}/shop-unknown`);
  });

  it('gets a workload back whose owner somebody has removed', async () => {
    const image = jarOf('orphan', '1.0.0');
    await tenant.post(
      MODULES,
      moduleOf('orphan', { deploy: { workload: 'Deployment' }, release: { id: 'r1', image } }),
    );
    await eventually(async () => expect(await stateOf('orphan')).toBe('Released'));
    for (const path of [workloadPath('Deployment', 'orphan'), `${SERVICES}/shop-orphan`]) {
      const ownersOf = async () =>
        (await tenant.get(path)).metadata.ownerReferences?.map(({ kind }: { kind: string }) => kind);
      await tenant.mergePatch(path, { metadata: { ownerReferences: null } });
      await eventually(async () => expect(await ownersOf()).toEqual(['Module']));
    }
    await tenant.delete(`${MODULES}/shop-orphan`);
  });

  it('has a release once', async () => {
    const twice = releaseOf('twice', '1.0.0', '2.0.0');
    for (const release of twice.spec.releases) release.id = 'r1';
    const refusal = await tenant.post(`${RELEASES}?dryRun=All`, twice).then(() => 'accepted', messageOf);
    expect(refusal).toContain('Duplicate value');
  });
});

describe('a ModuleRelease', () => {
  const statusOf = async (name: string) => (await tenant.get(`${RELEASES}/shop-${name}`)).status ?? {};
  const idsOf = async (name: string): Promise<string[]> =>
    (await tenant.get(`${RELEASES}/shop-${name}`)).spec.releases.map(({ id }: { id: string }) => id);
  const numbered = (name: string, from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => ({ id: `r${from + index}`, image: jarOf(name, '1.0.0') }));

  it('keeps a release that is in use, and says when each was first seen', async () => {
    await tenant.post(RELEASES, releaseOf('used', '1.0.0', '2.0.0'));
    await tenant.post(MODULES, moduleOf('used'));
    await eventually(async () => expect(await statusOf('used')).toMatchObject({ inUse: ['r1'] }));
    expect(Object.keys((await statusOf('used')).firstSeen)).toEqual(['r1', 'r2']);
    const without = (...gone: string[]): Promise<string> =>
      tenant
        .get(`${RELEASES}/shop-used`)
        .then(({ spec }) => spec.releases.filter(({ id }: { id: string }) => !gone.includes(id)))
        .then((releases) => tenant.mergePatch(`${RELEASES}/shop-used`, { spec: { releases } }))
        .then(() => 'accepted', messageOf);
    expect(await without('r1')).toContain('a release that is in use cannot be removed');
    const releases = releaseOf('used', '3.0.0', '2.0.0').spec.releases;
    const changed = tenant.mergePatch(`${RELEASES}/shop-used`, { spec: { releases } });
    expect(await changed.then(() => 'accepted', messageOf)).toContain(
      'image of a release cannot be changed: publish another id',
    );
    expect(await without('r2')).toBe('accepted');
    await tenant.delete(`${MODULES}/shop-used`);
    await eventually(async () => expect((await statusOf('used')).inUse).toBeUndefined());
    expect(await without('r1')).toBe('accepted');
  });

  it('loses its oldest releases beyond the limit of the PlatformConfig, and none that is in use', async () => {
    const metadata = { name: 'platform', namespace: TENANT_NAMESPACE };
    await tenant.post(CONFIGS, {
      apiVersion: GROUP,
      kind: 'PlatformConfig',
      metadata,
      spec: { recordLimit: { moduleRelease: 10 }, apps: [{ name: 'Shop', business: 'retail' }] },
    });
    await tenant.post(MODULES, moduleOf('many', { release: { id: 'r1', image: jarOf('many', '1.0.0') } }));
    const releases = numbered('many', 1, 14);
    await tenant.post(RELEASES, { ...releaseOf('many'), spec: { releases } });
    await eventually(async () =>
      expect(await idsOf('many')).toEqual(['r1', ...numbered('many', 6, 14).map(({ id }) => id)]),
    );
    await eventually(async () => {
      const events = await eventsOf(world.admin, 'ModuleRelease', 'shop-many');
      expect(events.map(({ message }) => message)).toEqual([
        'removed the oldest releases beyond the limit: r2, r3, r4, r5',
      ]);
    });
  });

  it('is appended to by two systems at once', async () => {
    await tenant.post(RELEASES, releaseOf('shared', '1.0.0'));
    const apply = (id: string) =>
      tenant.applyObject(
        `${RELEASES}/shop-shared`,
        { ...releaseOf('shared'), spec: { releases: [{ id, image: jarOf('shared', '2.0.0') }] } },
        `ci-${id}`,
      );
    await Promise.all([apply('from-a'), apply('from-b')]);
    expect((await idsOf('shared')).sort()).toEqual(['from-a', 'from-b', 'r1']);
  });
});

describe('a PlatformConfig', () => {
  const path = `${CONFIGS}/platform`;
  const change = (spec: object): Promise<string> => tenant.mergePatch(path, { spec }).then(() => 'accepted', messageOf);

  it('lists the applications of its namespace, and one that Modules use cannot be removed', async () => {
    const appsOf = async () => (await tenant.get(path)).status?.apps;
    await eventually(async () => expect(await appsOf()).toEqual([{ name: 'Shop', business: '' }]));
    expect(await change({ apps: [] })).toContain('an application that Modules use cannot be removed');
    expect(await change({ businesses: [{ name: 'retail', show: 'Retail' }] })).toBe('accepted');
    await eventually(async () => expect(await appsOf()).toEqual([{ name: 'Shop', business: 'retail' }]));
    await tenant.delete(`${MODULES}/shop-many`);
    await eventually(async () => expect(await appsOf()).toEqual([]));
    expect(await change({ apps: [] })).toBe('accepted');
  });

  it('A-000-8: resolves names that no Module has, and what serves of those that one has', async () => {
    const client = new FeedClient({ ca: files.ca, port: await controller.port('feed'), token: APP_TOKEN });
    const resolve = async (name: string, as = client): Promise<unknown> => {
      const { status, text } = await as.getPath(`/resolve/${TENANT_NAMESPACE}/${name}`);
      return status === 200 ? JSON.parse(text) : status;
    };
    expect(await resolve('Shop.none.http')).toBe(404);
    const other = { host: 'other.example.com', port: 9001, timeoutMs: 500, protocol: 'TCP' };
    const own = { ...other, host: '10.9.9.9' };
    expect(await change({ upChain: { 'Shop.none.http': [own], default: [other] } })).toBe('accepted');
    await eventually(async () =>
      expect(await resolve('Shop.none.http')).toMatchObject({ source: 'UpChain', endpoints: [own] }),
    );
    expect(await resolve('tars.config.Obj')).toMatchObject({ source: 'Default', endpoints: [other] });
    await tenant.post(RELEASES, releaseOf('named', '1.0.0'));
    await tenant.post(MODULES, moduleOf('named', { deploy: { replicas: 2 } }));
    await eventually(async () => {
      const found = (await pods(world.admin, 'module.koupleless.io/name=named', TENANT_NAMESPACE)).filter(isReady);
      expect(found).toHaveLength(2);
      const hosts = found.map(({ status }) => status?.podIP).sort();
      const endpoints = hosts.map((host) => ({ host, port: 8080, protocol: 'TCP', timeoutMs: 6_000 }));
      expect(await resolve('Shop.named.http')).toEqual({ name: 'Shop.named.http', source: 'Module', endpoints });
    });
    await tenant.mergePatch(`${MODULES}/shop-named`, { spec: { deploy: { replicas: 0 } } });
    await eventually(async () =>
      expect(await resolve('Shop.named.http')).toMatchObject({ source: 'Module', endpoints: [] }),
    );
    // Whoever may get Modules there may ask; a tenant of another namespace and strangers may not.
    await createTenant(world.controlPlane, 'stranger');
    const tokenOf = async (namespace: string): Promise<string> => {
      const path = `/api/v1/namespaces/${namespace}/serviceaccounts/mallory/token`;
      const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: { name: '' }, spec: {} };
      return (await world.admin.post(path, asked)).status.token;
    };
    expect(await resolve('Shop.named.http', client.with(await tokenOf('stranger')))).toBe(403);
    expect(await resolve('Shop.named.http', client.with(await tokenOf(TENANT_NAMESPACE)))).toMatchObject({
      endpoints: [],
    });
    expect(await resolve('Shop.named.http', client.with('b'.repeat(40)))).toBe(401);
    await tenant.delete(`${MODULES}/shop-named`);
    expect(await change({ upChain: null })).toBe('accepted');
  });

  it.each<[string, object, object]>([
    ['metadata.name must be platform', { name: 'other' }, {}],
    ['should be less than or equal to 100', { name: 'platform' }, { recordLimit: { exitedPod: 101 } }],
    ['should be greater than or equal to 10', { name: 'platform' }, { recordLimit: { moduleRelease: 9 } }],
    ['Duplicate value', { name: 'platform' }, { apps: [{ name: 'a' }, { name: 'a' }] }],
    ['businesses[0].name', { name: 'platform' }, { businesses: [{ name: 'x', show: 'X' }] }],
    ['spec.upChain.default', { name: 'platform' }, { upChain: { default: [] } }],
    ['spec.upChain.default[0].host', { name: 'platform' }, { upChain: { default: [{ host: 'a b', port: 1 }] } }],
    ['spec.upChain.default[0].port', { name: 'platform' }, { upChain: { default: [{ host: 'a', port: 0 }] } }],
  ])('is refused: %s', async (message, metadata, spec) => {
    const object = { apiVersion: GROUP, kind: 'PlatformConfig', metadata, spec };
    const answer = await world.admin.post(`${CONFIGS_OF_DEFAULT}?dryRun=All`, object).then(() => 'accepted', messageOf);
    expect(answer).toContain(message);
  });
});

describe('whoever has stolen the token of the platform', () => {
  const workload = (metadata: object, labels: object): KubeObject =>
    ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'evil', namespace: TENANT_NAMESPACE, ...metadata },
      spec: {
        selector: { matchLabels: { app: 'evil' } },
        template: {
          metadata: { labels: { app: 'evil', ...labels } },
          spec: { containers: [{ name: 'evil', image: 'nginx' }] },
        },
      },
    }) as unknown as KubeObject;
  const owned = {
    ownerReferences: [{ apiVersion: GROUP, kind: 'Module', name: 'x', uid: 'x', controller: true }],
  };
  const refusalOf = (path: string, object: KubeObject): Promise<string> =>
    thief.post(`${path}?dryRun=All`, object).then(() => 'accepted', messageOf);

  it.each<[string, object, object]>([
    [
      'makes no workload of nobody where a namespace has opted in',
      {},
      { 'virtual-kubelet.koupleless.io/component': 'module' },
    ],
    ['makes no workload of ordinary Pods there', owned, {}],
    [
      'makes no workload there of modules that a kubelet would run',
      owned,
      { 'virtual-kubelet.koupleless.io/component': 'module' },
    ],
  ])('%s', async (_, metadata, labels) => {
    await platform.optIn(TENANT_NAMESPACE);
    const path = `/apis/apps/v1/namespaces/${TENANT_NAMESPACE}/deployments`;
    await eventually(async () =>
      expect(await refusalOf(path, workload(metadata, labels))).toMatch(/Forbidden|Invalid|denied|forbidden/),
    );
  });

  it.each<[string, string, object, string]>([
    ['whose selector takes Pods of others', 'daemonsets', {}, 'this account may write workloads of modules'],
    [
      'with volume claims, which may have the names of others',
      'statefulsets',
      {
        selector: { matchLabels: { 'module.koupleless.io/name': 'evil' } },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
      },
      'this account may write workloads of modules',
    ],
    [
      'but such as a Module has',
      'statefulsets',
      { selector: { matchLabels: { 'module.koupleless.io/name': 'evil' } } },
      'accepted',
    ],
  ])('makes no workload there %s', async (_what, plural, more, answer) => {
    await platform.optIn(TENANT_NAMESPACE);
    const kind = plural === 'daemonsets' ? 'DaemonSet' : 'StatefulSet';
    const labels = { 'module.koupleless.io/name': 'evil' };
    const { spec, ...rest } = moduleWorkload('evil', [{ name: 'evil' }], { kind, labels });
    const object = { ...rest, metadata: { name: 'evil', ...owned }, spec: { ...spec, ...more } };
    const path = `/apis/apps/v1/namespaces/${TENANT_NAMESPACE}/${plural}`;
    await eventually(async () => expect(await refusalOf(path, object as unknown as KubeObject)).toContain(answer));
  });

  it('makes no workload where none has opted in', async () => {
    const refusal = await refusalOf('/apis/apps/v1/namespaces/default/deployments', {
      ...workload(owned, { 'virtual-kubelet.koupleless.io/component': 'module' }),
      metadata: { name: 'evil', namespace: 'default', ...owned },
    } as KubeObject);
    expect(refusal).toContain('cannot create resource');
  });

  it('loses the right with the binding', async () => {
    await world.admin.delete(`${BINDINGS}/catalog`);
    const path = `/apis/apps/v1/namespaces/${TENANT_NAMESPACE}/deployments`;
    await eventually(async () =>
      expect(await refusalOf(path, workload(owned, {}))).toContain('cannot create resource'),
    );
  });
});
