import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { reservePort } from '../../samples/control-plane/ports.ts';
import { messageOf } from '../../src/errors.ts';
import { refusal, untilAsked } from '../support/admission.ts';
import { eventually } from '../support/eventually.ts';
import { FeedClient, FeedFiles } from '../support/feed-client.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { find, findNode, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import { createTenant } from '../support/tenant.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const BASES = 4;
const TOKEN = 'of-the-balancers-of-group-external-0123456789';
const SERVICES = '/api/v1/namespaces/default/services';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const EXPORTS = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/exportservices';
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/koupleless-system/leases/platform-export';
const HTTP = { name: 'http', port: 80, targetPort: 8080, appProtocol: 'http' };
const DESCRIBED = { 'platform.koupleless.io/export-ports': '{"http":{"domainName":"a.example.com","path":"/x"}}' };

/** A base is asked for its list every 65 s. */
const ROUTINE_LIST_MS = 90_000;

let world: World;
let fleet: Fleet;
let platform: Platform;
let files: FeedFiles;
let webhookPort: number;
let core: ControllerProcess;
let first: ControllerProcess;
let feed: FeedClient;
let ips: string[];

function service(name: string, more: { labels?: object; annotations?: object; ports?: object[] } = {}): KubeObject {
  const { labels = { BCSGROUP: 'external' }, annotations = DESCRIBED, ports = [HTTP] } = more;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default', labels, annotations },
    spec: { selector: { team: 'shop' }, ports },
  } as KubeObject;
}

/** A Deployment of a module that the Services select. */
function workload(name: string, version: string, replicas: number, module = name): KubeObject {
  const labels = { team: 'shop', 'module.koupleless.io/version': version, 'module.koupleless.io/name': module };
  return moduleWorkload(name, [{ name: module, version }], { replicas, labels }) as KubeObject;
}

async function deployed(name: string, version: string, replicas: number, module = name): Promise<void> {
  await world.controlPlane.apply(workload(name, version, replicas, module));
  await eventually(async () => {
    const all = await pods(world.admin, `app=${name}`);
    const isNew = ({ metadata }: KubeObject) => metadata.labels?.['module.koupleless.io/version'] === version;
    expect(all.filter((pod) => isReady(pod) && isNew(pod as KubeObject))).toHaveLength(replicas);
    expect(all).toHaveLength(replicas);
  });
}

/** `status` as kubectl shows it; undefined when there is no such object. */
async function statusOf(name: string) {
  return (await find<KubeObject>(world.admin, `${EXPORTS}/${name}`))?.status;
}

async function targetsOf(name: string): Promise<string[]> {
  const { ports = [] } = (await statusOf(name)) ?? {};
  return (ports[0]?.backends ?? []).map((one: { targetIP: string; weight: number }) => `${one.targetIP}*${one.weight}`);
}

async function feedOf(group: string): Promise<string[]> {
  return (await feed.list(`?group=${group}`)).map(({ serviceName }) => serviceName);
}

async function feedTargets(): Promise<string[]> {
  const [found] = await feed.list('?group=external');
  return found?.ports[0]?.backends.map(({ targetIP }) => targetIP) ?? [];
}

async function conditionOf(name: string, type: string): Promise<string | undefined> {
  const { conditions = [] } = (await statusOf(name)) ?? {};
  const found = conditions.find((one: { type: string }) => one.type === type);
  return found && `${found.status} ${found.reason}`;
}

async function start(
  name: string,
  controllers = 'export',
  port = 0,
): Promise<{ process: ControllerProcess; client: FeedClient }> {
  const process = await platform.start(name, controllers, { ...files.env, WEBHOOK_PORT: String(port) });
  const client = new FeedClient({ ca: files.ca, port: await process.port('feed'), token: TOKEN });
  return { process, client };
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  await platform.installPolicies();
  core = await world.startController();
  fleet = await world.startFleet({ count: BASES, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  ips = fleet.bases.map(({ localIP }) => localIP).sort();
  const { authority } = world.controlPlane;
  const pair = authority.issue({ commonName: '127.0.0.1', hosts: ['127.0.0.1'] });
  files = await FeedFiles.write(
    { ...pair, ca: authority.certificate },
    { external: TOKEN, exporter: TOKEN, other: TOKEN },
  );
  webhookPort = await reservePort();
  await platform.installWebhook(webhookPort);
  ({ process: first, client: feed } = await start('export-1', 'export,admission', webhookPort));
  await untilAsked(world);
});

afterAll(async () => {
  await platform?.stop();
  await files?.remove();
  await world?.stop();
});

afterEach(async () => {
  for (const path of [SERVICES, DEPLOYMENTS]) {
    const { items = [] } = (await find<{ items?: KubeObject[] }>(world.admin, path)) ?? {};
    for (const { metadata } of items.filter((one) => one.metadata.name !== 'kubernetes'))
      await world.admin.delete(`${path}/${metadata.name}`).catch(() => {});
  }
  await eventually(async () => {
    expect(await pods(world.admin)).toEqual([]);
    expect((await world.admin.get(EXPORTS)).items).toEqual([]);
  });
});

describe('ExportService', () => {
  it('A-003-1: is what balancers need, as an object and in the feed', async () => {
    await deployed('biz1', '1.0.0', 3);
    await world.controlPlane.apply(service('biz1', { labels: { BCSGROUP: 'external', BCSBALANCE: 'leastconn' } }));
    const on = (await pods(world.admin)).map(({ status }) => status?.podIP).sort();
    await eventually(async () => expect(await targetsOf('biz1')).toEqual(on.map((ip) => `${ip}*1`)));
    const { balance, ports, conditions, summary } = await statusOf('biz1');
    expect([balance, ports[0].BCSVHost, ports[0].path, ports[0].servicePort]).toEqual([
      'leastconn',
      'a.example.com',
      '/x',
      80,
    ]);
    expect(summary).toEqual({ groups: 'external', ports: '80/http', backends: 3 });
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
    const [exported] = await feed.list('?group=external');
    expect(exported).toMatchObject({
      namespace: 'default',
      serviceName: 'biz1',
      balance: 'leastconn',
      maxconn: 50_000,
    });
    expect(exported?.ports).toEqual(ports);
    expect(await feed.list('?group=other')).toEqual([]);
    await world.controlPlane.apply(service('plain'));
    await eventually(async () => expect((await statusOf('plain'))?.balance).toBe('roundrobin'));
  });

  it('A-003-2: follows its Pods, and keeps those of a silent base until that is dead', async () => {
    await deployed('biz1', '1.0.0', BASES);
    await world.controlPlane.apply(service('biz1'));
    await eventually(async () => expect(await feedTargets()).toEqual(ips));
    const sizes: number[] = [];
    const stop = await feed.watch('?group=external', ({ object }) =>
      sizes.push(object?.ports[0]?.backends.length ?? -1),
    );
    const [base] = fleet.bases;
    if (base === undefined) throw new Error('no base');
    const others = ips.filter((ip) => ip !== base.localIP);
    // Where this list is passed over, the controller learns of it with the next one that it asks for.
    base.crashModule('biz1', '1.0.0', 'BROKEN');
    base.announceModules();
    // The controller installs it again, perhaps before the next look at the feed: the watch shows each change.
    await eventually(() => expect(sizes).toContain(BASES - 1), ROUTINE_LIST_MS);
    await eventually(async () => expect(await feedTargets()).toEqual(ips), ROUTINE_LIST_MS);
    // Edited: nothing is ever empty.
    await world.controlPlane.apply(service('biz1', { labels: { BCSGROUP: 'external', BCSBALANCE: 'source' } }));
    await eventually(async () => expect((await statusOf('biz1'))?.balance).toBe('source'));
    base.silence();
    await eventually(async () => expect(isReady(await findNode(world.admin, base.identity))).toBe(false));
    expect(await feedTargets()).toEqual(ips);
    await eventually(async () => expect(await findNode(world.admin, base.identity)).toBeUndefined(), 120_000);
    await eventually(async () => expect(await feedTargets()).toEqual(others));
    stop();
    expect(sizes.filter((size) => size >= 0 && size < BASES - 1)).toEqual([]);
    base.speak();
    await eventually(async () => expect(await feedTargets()).toEqual(ips));
  }, 360_000);

  it('is never empty when a controller comes back after Kubernetes has evicted all Pods', async () => {
    await deployed('biz1', '1.0.0', BASES);
    await world.controlPlane.apply(service('biz1'));
    await eventually(async () => expect(await feedTargets()).toEqual(ips));
    const evicted = await pods(world.admin, 'app=biz1');
    const sizes: number[] = [];
    const stop = await feed.watch('?group=external', ({ object }) =>
      sizes.push(object?.ports[0]?.backends.length ?? -1),
    );
    await core.stop('SIGKILL');
    // As kube-controller-manager does after 50 s and `tolerationSeconds`.
    const unready = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' };
    for (const node of await nodes(world.admin))
      await world.admin.mergePatch(`/api/v1/nodes/${node.metadata.name}/status`, { status: { conditions: [unready] } });
    for (const { metadata, status } of evicted) {
      const path = `/api/v1/namespaces/default/pods/${metadata.name}`;
      const conditions = status?.conditions?.map(({ reason: _, ...entry }) =>
        entry.type === 'Ready' ? { ...entry, status: 'False' } : entry,
      );
      await world.admin.mergePatch(`${path}/status`, { status: { conditions } });
      await world.admin.delete(path);
    }
    const mark = fleet.history.mark();
    core = await world.startController({ PRE_STOP_SLEEP_SECONDS: '1' });
    // No base is free, and an anti-affinity keeps the next Pods off these: one has to go first.
    await eventually(async () => {
      const all = await pods(world.admin, 'app=biz1');
      expect(all.filter((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined)).toHaveLength(BASES);
      expect(all).toHaveLength(BASES);
    }, 60_000);
    await eventually(async () => expect(await feedTargets()).toEqual(ips));
    stop();
    expect(sizes.filter((size) => size === 0)).toEqual([]);
    expect(fleet.history.records({ command: 'uninstallBiz', since: mark }).length).toBeGreaterThanOrEqual(BASES);
    await core.stop();
    core = await world.startController();
  }, 180_000);

  it('A-003-3: has weights, of which 0 takes all requests away; a wrong one is refused', async () => {
    await deployed('biz1', '1.0.0', 3);
    await deployed('biz1c', '2.0.0', 1, 'biz1c');
    const labels = { BCSGROUP: 'external', 'BCS-WEIGHT-1.0.0': '9', 'BCS-WEIGHT-2.0.0': '1' };
    await world.controlPlane.apply(service('biz1', { labels }));
    const weights = async () => (await targetsOf('biz1')).map((text) => text.split('*')[1]).sort();
    await eventually(async () => expect(await weights()).toEqual(['1', '3', '3', '3']));
    await world.controlPlane.apply(service('biz1', { labels: { ...labels, 'BCS-WEIGHT-2.0.0': '0' } }));
    await eventually(async () => expect(await weights()).toEqual(['1', '1', '1']));
    expect(await refusal(world, service('biz1', { labels: { ...labels, 'BCS-WEIGHT-2.0.0': 'x' } }))).toContain(
      'metadata.labels[BCS-WEIGHT-2.0.0]: "x" is not an integer from 0 to 1000000',
    );
    expect(await refusal(world, service('biz1', { labels: { ...labels, 'BCS-WEIGHT-2.0.0': '-1' } }))).toContain(
      'a valid label must be',
    );
    expect(await refusal(world, service('biz1', { annotations: {} }))).toContain(
      'http.domainName: a port of http needs a host name',
    );
    expect(await refusal(world, service('plain', { labels: {}, annotations: {} }))).toBe('accepted');
  });

  it('A-003-4: never holds a base that does not serve while a Deployment rolls', async () => {
    await deployed('biz1', '1.0.0', 3);
    await world.controlPlane.apply(service('biz1'));
    await eventually(async () => expect(await feedTargets()).toHaveLength(3));
    const wrong: string[] = [];
    const stop = await feed.watch('?group=external', ({ object }) => {
      for (const { targetIP } of object?.ports[0]?.backends ?? []) {
        const base = fleet.bases.find(({ localIP }) => localIP === targetIP);
        const serves = base?.modules().some(({ bizName, state }) => bizName === 'biz1' && state === 'ACTIVATED');
        if (!serves) wrong.push(`${targetIP} at ${Date.now()}`);
      }
    });
    await deployed('biz1', '2.0.0', 3);
    await eventually(async () => expect(await feedTargets()).toHaveLength(3));
    stop();
    expect(wrong).toEqual([]);
  });

  it('A-003-5: leaves the younger of two Services out that want one port, and nobody else', async () => {
    await deployed('biz1', '1.0.0', 1);
    await world.controlPlane.apply(service('oldest', { labels: {}, annotations: {} }));
    const tcp = { annotations: {}, ports: [{ name: 'tcp', port: 28800, targetPort: 8080 }] };
    await world.controlPlane.apply(service('older', tcp));
    await eventually(async () => expect(await feedOf('external')).toEqual(['older']));
    // creationTimestamp has whole seconds.
    const { creationTimestamp = '' } = (await world.admin.get(`${SERVICES}/older`)).metadata;
    await eventually(() => expect(Date.now()).toBeGreaterThan(Date.parse(creationTimestamp) + 1_000));
    await world.controlPlane.apply(
      service('any', { annotations: {}, ports: [{ name: 'tcp', port: 1, targetPort: 8080 }] }),
    );
    await world.controlPlane.apply(service('a-younger', tcp));
    await eventually(async () => expect(await conditionOf('a-younger', 'Conflict')).toBe('True TakenByOther'));
    expect(await feedOf('external')).toEqual(['any', 'older']);
    expect(await conditionOf('older', 'Conflict')).toBe('False NoConflict');
    await world.admin.delete(`${SERVICES}/older`);
    await eventually(async () => expect(await feedOf('external')).toEqual(['a-younger', 'any']));
    await eventually(async () => expect(await conditionOf('a-younger', 'Conflict')).toBe('False NoConflict'));
    // An old Service that is exported today takes nothing away.
    await world.controlPlane.apply(service('oldest', tcp));
    await eventually(async () => expect(await conditionOf('oldest', 'Conflict')).toBe('True TakenByOther'));
    expect(await feedOf('external')).toEqual(['a-younger', 'any']);
  });

  it('A-003-6: goes with the label of its Service', async () => {
    await deployed('biz1', '1.0.0', 1);
    await world.controlPlane.apply(service('biz1'));
    await eventually(async () => expect(await feedOf('external')).toEqual(['biz1']));
    await eventually(async () => expect(await statusOf('biz1')).toBeDefined());
    await world.controlPlane.apply(service('biz1', { labels: {} }));
    await eventually(async () => {
      expect(await feedOf('external')).toEqual([]);
      expect(await find(world.admin, `${EXPORTS}/biz1`)).toBeUndefined();
    });
  });

  it('A-003-7: is in each of its groups', async () => {
    const annotations = { ...DESCRIBED, 'platform.koupleless.io/export-groups': 'external,exporter' };
    await world.controlPlane.apply(service('biz1', { labels: {}, annotations }));
    for (const group of ['external', 'exporter'])
      await eventually(async () => expect(await feedOf(group)).toEqual(['biz1']));
    expect(await feedOf('other')).toEqual([]);
  });
});

describe('the limits of a namespace', () => {
  const TENANCIES = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduletenancies';
  afterEach(async () => {
    await world.admin.delete(`${TENANCIES}/limits`).catch(() => {});
    await eventually(async () => expect(await refusal(world, service('probe'))).toBe('accepted'));
  });

  it('are about groups and host names', async () => {
    const spec = { exportGroups: ['external'], exportHosts: ['a.example.com', '*.shop.example.com'] };
    const metadata = { name: 'limits', namespace: 'default' };
    const described = (ports: string) => ({ 'platform.koupleless.io/export-ports': ports });
    const withHost = (host: string) => service('biz1', { annotations: described(`{"http":{"domainName":"${host}"}}`) });
    await world.controlPlane.apply({
      apiVersion: 'platform.koupleless.io/v1alpha1',
      kind: 'ModuleTenancy',
      metadata,
      spec,
    } as KubeObject);
    await eventually(async () =>
      expect(await refusal(world, withHost('bank.example.com'))).toContain('may have the hosts'),
    );
    expect(await refusal(world, service('biz1', { labels: { BCSGROUP: 'other' } }))).toContain(
      'platform.koupleless.io/export-groups]: this namespace may export to external, not to other',
    );
    const annotations = { ...DESCRIBED, 'platform.koupleless.io/export-groups': 'external, other' };
    expect(await refusal(world, service('biz1', { labels: {}, annotations }))).toContain('not to other');
    for (const host of ['shop.example.com', 'evilshop.example.com', 'a.example.com.evil.org'])
      expect([host, await refusal(world, withHost(host))]).toEqual([host, expect.stringContaining(`not ${host}`)]);
    // JSON can write any character as another one.
    const escaped = '{"http":{"domain\\u004eame":"bank.example.com"}}';
    expect(await refusal(world, service('biz1', { annotations: described(escaped) }))).toContain('must be JSON');
    for (const host of ['a.example.com', 'x.shop.example.com', 'y.x.shop.example.com'])
      expect([host, await refusal(world, withHost(host))]).toEqual([host, 'accepted']);
    expect(await refusal(world, service('plain', { labels: {}, annotations: {} }))).toBe('accepted');
  });

  it.each(['*', 'team-*', 'Team-B', '-b'])('share a host with no namespace %s, which cannot exist', async (name) => {
    const tenancy = {
      apiVersion: 'platform.koupleless.io/v1alpha1',
      kind: 'ModuleTenancy',
      metadata: { name: 'shares', namespace: 'default' },
      spec: { exportSharedHosts: [{ host: 'a.example.com', namespaces: ['team-b', name] }] },
    };
    const path = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduletenancies?dryRun=All';
    await expect(world.admin.post(path, tenancy as KubeObject)).rejects.toThrow(
      'spec.exportSharedHosts[0].namespaces[1]',
    );
  });

  it('are about a Service that is being deleted too, and let it go', async () => {
    const patch = (name: string, metadata: object) =>
      world.admin.mergePatch(`${SERVICES}/${name}`, { metadata }).then(() => 'accepted', messageOf);
    for (const object of [service('biz1', { labels: { BCSGROUP: 'other' } }), service('biz2', { labels: {} })]) {
      await world.controlPlane.apply({ ...object, metadata: { ...object.metadata, finalizers: ['example.com/kept'] } });
    }
    await world.controlPlane.apply({
      apiVersion: 'platform.koupleless.io/v1alpha1',
      kind: 'ModuleTenancy',
      metadata: { name: 'limits', namespace: 'default' },
      spec: { exportGroups: ['external'], exportHosts: ['a.example.com'] },
    } as KubeObject);
    const elsewhere = service('probe', { labels: { BCSGROUP: 'other' } });
    await eventually(async () => expect(await refusal(world, elsewhere)).toContain('may export to external'));
    for (const name of ['biz1', 'biz2']) {
      await world.admin.delete(`${SERVICES}/${name}`);
      expect((await world.admin.get(`${SERVICES}/${name}`)).metadata.deletionTimestamp).toBeDefined();
    }
    expect(await patch('biz2', { labels: { BCSGROUP: 'other' } })).toContain('not to other');
    const annotations = { 'platform.koupleless.io/export-groups': 'other' };
    expect(await patch('biz2', { annotations })).toContain('not to other');
    expect(await patch('biz2', { labels: { BCSGROUP: 'external' } })).toBe('accepted');
    const ports = { 'platform.koupleless.io/export-ports': '{"http":{"domainName":"bank.example.com"}}' };
    expect(await patch('biz2', { annotations: ports })).toContain('may have the hosts');
    expect(await patch('biz1', { labels: { team: 'x' }, annotations: { 'example.com/note': 'x' } })).toBe('accepted');
    for (const name of ['biz1', 'biz2']) {
      expect(await patch(name, { finalizers: null })).toBe('accepted');
      expect(await find(world.admin, `${SERVICES}/${name}`)).toBeUndefined();
    }
  });
});

describe('while the platform is away', () => {
  const TENANCIES = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduletenancies';

  it('the limits of a namespace hold, and a Service with a fault is stored and not refused', async () => {
    await first.stop();
    await world.controlPlane.apply({
      apiVersion: 'platform.koupleless.io/v1alpha1',
      kind: 'ModuleTenancy',
      metadata: { name: 'limits', namespace: 'default' },
      spec: { exportGroups: ['external'] },
    } as KubeObject);
    const elsewhere = service('biz1', { labels: { BCSGROUP: 'other' } });
    await eventually(async () => expect(await refusal(world, elsewhere)).toContain('may export to external'));
    const faulty = service('biz1', { labels: { BCSGROUP: 'external', BCSBALANCE: 'random' } });
    expect(await refusal(world, faulty)).toBe('accepted');
    ({ process: first, client: feed } = await start('export-2', 'export,admission', webhookPort));
    await eventually(async () => expect(await conditionOf('biz1', 'Invalid')).toBe('True InvalidService'), 60_000);
    await world.admin.delete(`${TENANCIES}/limits`);
    await untilAsked(world);
  });
});

describe('a tenant with the ClusterRole edit', () => {
  it('reads ExportServices of its namespace, and writes none', async () => {
    const tenant = await createTenant(world.controlPlane, 'default');
    await world.controlPlane.apply(service('biz1'));
    await eventually(async () => expect((await tenant.get(`${EXPORTS}/biz1`)).status.serviceName).toBe('biz1'), 30_000);
    const forged = { ...(await tenant.get(`${EXPORTS}/biz1`)), metadata: { name: 'forged', namespace: 'default' } };
    await expect(tenant.post(EXPORTS, forged)).rejects.toThrow('forbidden');
    for (const path of [`${EXPORTS}/biz1`, `${EXPORTS}/biz1/status`])
      await expect(tenant.mergePatch(path, { status: { balance: 'source' } })).rejects.toThrow('forbidden');
    await expect(tenant.delete(`${EXPORTS}/biz1`)).rejects.toThrow('forbidden');
  });
});

describe('the feed', () => {
  /** A service account with a ClusterRole, in its own namespace or everywhere. */
  async function tokenOf(name: string, role: string, isEverywhere = false): Promise<string> {
    const metadata = { name, namespace: 'tenant' };
    const binding = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: isEverywhere ? 'ClusterRoleBinding' : 'RoleBinding',
      metadata: isEverywhere ? { name } : metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    };
    await world.controlPlane.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } },
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
      binding,
    ] as KubeObject[]);
    const credential = await world.controlPlane.credential({ serviceAccount: `tenant/${name}` });
    return 'token' in credential ? credential.token : '';
  }

  it('is read by whoever may get the objects, and by the balancers of a group: by nobody else', async () => {
    await world.controlPlane.apply(service('biz1'));
    const tenant = feed.with(await tokenOf('tenant-edit', 'edit'));
    const operator = feed.with(await tokenOf('operator', 'view', true));
    await eventually(async () => expect((await operator.list('?group=external')).length).toBe(1));
    const statusOfGet = async (client: FeedClient, query: string) => (await client.get(query)).status;
    expect(await statusOfGet(tenant, '?group=external')).toBe(403);
    expect(await statusOfGet(tenant, '?group=external&namespace=default')).toBe(403);
    // The rights of `view` reach the roles that it is part of a moment after they were applied.
    await eventually(
      async () => expect(await statusOfGet(tenant, '?group=external&namespace=tenant')).toBe(200),
      30_000,
    );
    expect(await tenant.list('?group=external&namespace=tenant')).toEqual([]);
    for (const token of [undefined, 'x'.repeat(40)]) {
      expect(await statusOfGet(feed.with(token), '?group=external')).toBe(401);
      await expect(feed.with(token).watch('?group=external', () => {})).rejects.toThrow('401');
    }
    expect(await statusOfGet(feed, '?group=secret')).toBe(403);
  });

  it('goes on from another replica when one is killed, and so do the objects', async () => {
    await deployed('biz1', '1.0.0', 3);
    await world.controlPlane.apply(service('biz1'));
    const second = await start('export-3');
    await eventually(async () => expect((await feed.get('?group=external')).text).toContain('backends":[{'));
    const { text, etag } = await feed.get('?group=external');
    await eventually(async () =>
      expect(await second.client.get('?group=external')).toEqual({ status: 200, etag, text }),
    );
    expect((await second.client.get('?group=external', { 'If-None-Match': etag })).status).toBe(304);
    const seen: string[] = [];
    const stop = await second.client.watch('?group=external', ({ type, object }) =>
      seen.push(`${type} ${object?.balance} ${object?.ports[0]?.backends.length}`),
    );
    expect((await world.admin.get(LEASE)).spec.holderIdentity).toMatch(/^export-2_/);
    const killedAt = Date.now();
    await first.stop('SIGKILL');
    await world.controlPlane.apply(service('biz1', { labels: { BCSGROUP: 'external', BCSBALANCE: 'source' } }));
    await eventually(() => expect(seen).toContain('MODIFIED source 3'));
    const servedAfterMs = Date.now() - killedAt;
    await eventually(async () => expect((await statusOf('biz1'))?.balance).toBe('source'), 60_000);
    const writtenAfterMs = Date.now() - killedAt;
    stop();
    expect(seen.filter((line) => line.endsWith(' 0'))).toEqual([]);
    expect(servedAfterMs).toBeLessThan(1_000);
    expect(writtenAfterMs).toBeLessThan(20_000);
    await second.process.stop('SIGKILL');
    ({ process: first, client: feed } = await start('export-4', 'export,admission', webhookPort));
  });
});
