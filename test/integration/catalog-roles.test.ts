import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiClient, ApiError } from '../../samples/control-plane/api-client.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';
import { sectionOf, tableOf } from '../unit/docs/markdown.ts';

const NAMESPACE = 'roles';
const PLATFORM = `/apis/platform.koupleless.io/v1alpha1/namespaces/${NAMESPACE}`;
const CORE = `/api/v1/namespaces/${NAMESPACE}`;
const APPS = `/apis/apps/v1/namespaces/${NAMESPACE}`;
const RBAC = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`;
const EDITED = ['PATCH'];
const WRITTEN = ['POST', 'PATCH', 'DELETE'];

type Attempt = readonly [methods: readonly string[], collection: string, subresource?: string];

/** The requests of each row of the table in docs/catalog.md. */
const REQUESTS: Readonly<Record<string, readonly Attempt[]>> = {
  'Read all kinds of the platform, Pods, events, workloads': [
    ...[
      'modules',
      'modulereleases',
      'moduledeployments',
      'moduleexitedrecords',
      'platformconfigs',
      'moduleconfigs',
    ].map((plural): Attempt => [['GET'], `${PLATFORM}/${plural}`]),
    ...['moduletenancies', 'exportservices'].map((plural): Attempt => [['GET'], `${PLATFORM}/${plural}`]),
    ...['pods', 'events', 'services'].map((plural): Attempt => [['GET'], `${CORE}/${plural}`]),
    ...['deployments', 'statefulsets', 'daemonsets'].map((plural): Attempt => [['GET'], `${APPS}/${plural}`]),
  ],
  'Publish: change a Module, scale it, roll it back with its configuration': [
    [EDITED, `${PLATFORM}/modules`],
    [EDITED, `${PLATFORM}/modules`, 'scale'],
  ],
  'Create and delete Modules; write ModuleReleases and ModuleConfigs': [
    [['POST', 'DELETE'], `${PLATFORM}/modules`],
    [WRITTEN, `${PLATFORM}/modulereleases`],
    [WRITTEN, `${PLATFORM}/moduleconfigs`],
  ],
  'Confirm, pause and scale ModuleDeployments; delete and evict Pods': [
    [EDITED, `${PLATFORM}/moduledeployments`],
    [EDITED, `${PLATFORM}/moduledeployments`, 'scale'],
    [['DELETE'], `${CORE}/pods`],
    [['POST'], `${CORE}/pods`, 'eviction'],
  ],
  'Create and delete ModuleDeployments; write the PlatformConfig': [
    [['POST', 'DELETE'], `${PLATFORM}/moduledeployments`],
    [WRITTEN, `${PLATFORM}/platformconfigs`],
  ],
  'Write ModuleTenancies, records, Deployments, RoleBindings': [
    [WRITTEN, `${PLATFORM}/moduletenancies`],
    [WRITTEN, `${PLATFORM}/moduleexitedrecords`],
    [EDITED, `${PLATFORM}/moduleexitedrecords`, 'status'],
    [EDITED, `${PLATFORM}/modules`, 'status'],
    [WRITTEN, `${APPS}/deployments`],
    [WRITTEN, `${RBAC}/rolebindings`],
    [['POST', 'PATCH'], `${CORE}/pods`],
    [['GET'], `${CORE}/secrets`],
  ],
};

const rows = tableOf(sectionOf(await readFile('docs/catalog.md', 'utf8'), 'Who may do what'));
const roles = Object.keys(rows[0] ?? {}).filter((column) => column !== '');

let world: World;
const clients = new Map<string, ApiClient>();

beforeAll(async () => {
  world = await startWorld();
  await Platform.install(world, ['rollout', 'catalog', 'export', 'admission']);
  await world.controlPlane.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }]);
  for (const role of roles) {
    const name = role.replaceAll('`', '');
    const metadata = { name, namespace: NAMESPACE };
    await world.controlPlane.apply([
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
        subjects: [{ kind: 'ServiceAccount', ...metadata }],
      },
    ] as never);
    clients.set(role, await world.controlPlane.client({ serviceAccount: `${NAMESPACE}/${name}` }));
  }
});

afterAll(() => world?.stop());

/** Whether the API server lets the role do it: an object that is not there, or not valid, is judged after that. */
async function mayDo(role: string, method: string, [, collection, subresource]: Attempt): Promise<boolean> {
  const isOfCollection = method === 'GET' || (method === 'POST' && subresource === undefined);
  const path = [collection, ...(isOfCollection ? [] : ['some']), ...(subresource ? [subresource] : [])].join('/');
  const options =
    method === 'GET' ? {} : { body: {}, ...(method === 'PATCH' && { contentType: 'application/merge-patch+json' }) };
  try {
    await clients.get(role)?.request(method, `${path}?dryRun=All`, options);
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.statusCode !== 403;
  }
}

describe('the roles for people', () => {
  it('are tried with all rows of their table', () => {
    expect(rows.map((row) => row[''])).toEqual(Object.keys(REQUESTS));
    expect(roles).toHaveLength(3);
  });

  it.each(rows.flatMap((row) => roles.map((role) => [row[''] ?? '', role, row[role] ?? ''])))(
    '%s: %s: %s',
    async (what, role, answer) => {
      expect(['yes', 'no']).toContain(answer);
      const attempts = (REQUESTS[what] ?? []).flatMap((attempt) =>
        attempt[0].map((method) => [method, attempt] as const),
      );
      for (const [method, attempt] of attempts) {
        const may = await mayDo(role, method, attempt);
        expect(may, `${method} ${attempt.slice(1).join(' ')}`).toBe(answer === 'yes');
      }
    },
  );
});
