import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { ModuleRig } from '../support/module-rig.ts';
import { find, findPod, isReady } from '../support/observe.ts';
import { pageBlock } from '../support/page-block.ts';
import { Platform } from '../support/platform.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import { podPath } from '../support/world.ts';

const NODE = 'vnode.base-1';
const PLAIN_NAMESPACE = 'tenant-without-modules';
const MINE = { app: 'mine' };
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
/** The Role and the RoleBinding that docs/admission.md shows, of the tenant's namespace. */
const EXCEPTION = pageBlock('apiVersion: rbac.authorization.k8s.io/v1\n', 'docs/admission.md', 'yaml').replaceAll(
  'namespace: team-a ',
  `namespace: ${TENANT_NAMESPACE} `,
);
const COMPONENT = 'virtual-kubelet.koupleless.io/component';
const REFUSED = /base-proxy.* this would reach a base/s;

let rig: ModuleRig;
let tenant: ApiClient;
/** Where the arklet of the base listens. */
let arkletPort: number;
/** What an ordinary Pod would answer. */
let server: Server;

beforeAll(async () => {
  rig = await ModuleRig.start({ count: 1 });
  const { admin } = rig;
  const platform = await Platform.install(rig.world);
  await platform.installPolicies();
  arkletPort = rig.fleet.base('base-1').port;
  tenant = await createTenant(rig.world.controlPlane);
  await createTenant(rig.world.controlPlane, PLAIN_NAMESPACE);
  for (const namespace of [TENANT_NAMESPACE, PLAIN_NAMESPACE])
    await eventually(() => admin.get(`/api/v1/namespaces/${namespace}/serviceaccounts/default`));
  await rig.create(modulePod('victim', [{ name: 'shop' }], { nodeName: NODE }));
  await rig.readyPod('victim');
  const mine = modulePod('mine', [{ name: 'mine' }], { nodeName: NODE, labels: MINE });
  await tenant.post(podsOf(TENANT_NAMESPACE), { ...mine, metadata: { ...mine.metadata, namespace: TENANT_NAMESPACE } });
  await eventually(async () => expect(isReady(await find(admin, podPath('mine', TENANT_NAMESPACE)))).toBe(true));
  // As soon as the API server has read the policy and the Pods.
  await eventually(async () => expect(await refusalOf(queryModules())).toMatch(REFUSED));
  server = createServer((_, response) => response.end('{}'));
  const { localIP } = rig.fleet.base('base-1');
  await new Promise<void>((resolve) => server.listen(0, localIP, resolve));
  for (const namespace of [TENANT_NAMESPACE, PLAIN_NAMESPACE]) await createOrdinary(namespace, localIP);
});

afterAll(async () => {
  server?.close();
  await rig?.stop();
});

const podsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;
const proxyOf = (name: string, path: string, namespace = TENANT_NAMESPACE, plural = 'pods'): string =>
  `/api/v1/namespaces/${namespace}/${plural}/${name}/proxy/${path}`;
const refusalOf = (request: Promise<unknown>): Promise<string> => request.then(() => 'answered', messageOf);

/** Asks the base, by the Pod of the tenant, which modules it has. */
function queryModules(): Promise<unknown> {
  return tenant.post(proxyOf(`mine:${arkletPort}`, 'queryAllBiz'), {});
}

/** A Pod that no kubelet of this control plane starts; an admin gives it the address of the server of this test. */
async function createOrdinary(namespace: string, podIP: string): Promise<void> {
  const pod = {
    metadata: { name: 'web', labels: { app: 'web' } },
    spec: { containers: [{ name: 'web', image: 'x' }] },
  };
  await rig.admin.post(podsOf(namespace), pod);
  const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }] };
  await rig.admin.mergePatch(`${podsOf(namespace)}/web/status`, { status });
}

/** What the arklet of the base answers, or why the API server asks it nothing. */
function uninstall(client: ApiClient, name: string, plural = 'pods'): Promise<string> {
  const body = { bizName: 'shop', bizVersion: '1.0.0' };
  return refusalOf(client.post(proxyOf(name, 'uninstallBiz', TENANT_NAMESPACE, plural), body));
}

function answerOf(client: ApiClient, namespace: string): Promise<string> {
  const { port } = server.address() as AddressInfo;
  return refusalOf(client.get(proxyOf(`web:${port}`, '', namespace)));
}

async function expectUntouched(): Promise<void> {
  expect(rig.modulesOf('base-1', 'shop')).toEqual(['shop:1.0.0 ACTIVATED']);
  expect(isReady(await findPod(rig.admin, 'victim'))).toBe(true);
}

describe('a tenant with the ClusterRole edit', () => {
  it.each(['mine', 'http:mine', ':mine'])('reaches no arklet through its Pod, as %s', async (name) => {
    expect(await uninstall(tenant, `${name}:${arkletPort}`)).toMatch(REFUSED);
    await expectUntouched();
  });

  it('reaches no arklet through a Service of its namespace, whatever it selects', async () => {
    const ports = [{ name: 'arklet', port: 80, targetPort: arkletPort }];
    for (const [name, selector] of [
      ['to-base', MINE],
      ['to-others', { app: 'web' }],
    ] as const) {
      const path = `/api/v1/namespaces/${TENANT_NAMESPACE}/services`;
      await tenant.post(path, { metadata: { name }, spec: { selector, ports } });
      for (const port of ['arklet', '80'])
        expect(await uninstall(tenant, `${name}:${port}`, 'services')).toMatch(REFUSED);
    }
    await expectUntouched();
  });

  it('does not take the label off its Pod to reach the arklet then', async () => {
    const path = podPath('mine', TENANT_NAMESPACE);
    for (const value of [null, 'other'])
      expect(await refusalOf(tenant.mergePatch(path, { metadata: { labels: { [COMPONENT]: value } } }))).toMatch(
        /base-proxy-label.* stays on a Pod that is on a base/s,
      );
    const { metadata, ...rest } = (await tenant.get(path)) as KubeObject;
    const replaced = { ...rest, metadata: { ...metadata, labels: {} } };
    expect(await refusalOf(tenant.put(path, replaced))).toContain('stays on a Pod');
    expect(await uninstall(tenant, `mine:${arkletPort}`)).toMatch(REFUSED);
    await expectUntouched();
  });

  it('cannot give itself the right to do so, as an admin of its namespace neither', async () => {
    const subjects = [{ kind: 'ServiceAccount', name: 'mallory', namespace: TENANT_NAMESPACE }];
    const bindings = `${RBAC}/namespaces/${TENANT_NAMESPACE}/rolebindings`;
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' };
    await rig.admin.post(bindings, { metadata: { name: 'admin' }, roleRef, subjects });
    const roles = `${RBAC}/namespaces/${TENANT_NAMESPACE}/roles`;
    await eventually(async () =>
      expect(await refusalOf(tenant.post(roles, parseAllDocuments(EXCEPTION)[0]?.toJS()))).toContain(
        'attempting to grant',
      ),
    );
    expect(await uninstall(tenant, `mine:${arkletPort}`)).toMatch(REFUSED);
    await rig.admin.delete(`${bindings}/admin`);
  });
});

describe('honest use', () => {
  it('reaches ordinary Pods, also beside modules, and their Services where there are none', async () => {
    for (const namespace of [TENANT_NAMESPACE, PLAIN_NAMESPACE])
      expect(await answerOf(rig.admin, namespace)).toBe('answered');
    expect(await answerOf(tenant, TENANT_NAMESPACE)).toBe('answered');
    // No endpoints: the policy has let it pass.
    const service = { metadata: { name: 'web' }, spec: { selector: { app: 'web' }, ports: [{ port: 80 }] } };
    await rig.admin.post(`/api/v1/namespaces/${PLAIN_NAMESPACE}/services`, service);
    const plain = await createTenant(rig.world.controlPlane, PLAIN_NAMESPACE);
    expect(await refusalOf(plain.get(proxyOf('web', '', PLAIN_NAMESPACE, 'services')))).toMatch(
      /no endpoints available|"web" not found/,
    );
  });

  it('takes the label off a Pod that is on no base', async () => {
    const pods = podsOf(TENANT_NAMESPACE);
    const pod = modulePod('waits', [{ name: 'waits' }], { spec: { schedulingGates: [{ name: 'example.com/later' }] } });
    await tenant.post(pods, { ...pod, metadata: { ...pod.metadata, namespace: TENANT_NAMESPACE } });
    await tenant.mergePatch(`${pods}/waits`, { metadata: { labels: { [COMPONENT]: null } } });
    await tenant.delete(`${pods}/waits`);
  });

  it('a user with the right that an admin gives reaches the base', async () => {
    const request = (): Promise<string> => refusalOf(queryModules());
    expect(await request()).toMatch(REFUSED);
    // The group of all accounts of the namespace.
    const group = `system:serviceaccounts:${TENANT_NAMESPACE}`;
    await rig.world.controlPlane.apply(EXCEPTION.replace('team-a-operators', group));
    await eventually(async () => expect(await request()).toBe('answered'));
    await rig.admin.delete(`${RBAC}/namespaces/${TENANT_NAMESPACE}/rolebindings/reaches-bases`);
    await eventually(async () => expect(await request()).toMatch(REFUSED));
  });
});
