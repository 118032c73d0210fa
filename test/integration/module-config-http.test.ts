import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { FeedClient, FeedFiles } from '../support/feed-client.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import { createTenant } from '../support/tenant.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const GROUP = 'platform.koupleless.io/v1alpha1';
const CONTROLLERS = ['rollout', 'catalog'];
/** Two tenants whose applications have one name. */
const TENANTS = ['team-a', 'team-b'] as const;
const TOKENS = { 'team-a.Shop': 'a'.repeat(40), 'team-b.Shop': 'b'.repeat(40), 'team-a.Other': 'o'.repeat(40) };

let world: World;
let platform: Platform;
let files: FeedFiles;
let replicas: ControllerProcess[];
let tenants: Record<string, ApiClient>;
let client: FeedClient;

const configsIn = (namespace: string): string => `/apis/${GROUP}/namespaces/${namespace}/moduleconfigs`;
const modulesIn = (namespace: string): string => `/apis/${GROUP}/namespaces/${namespace}/modules`;

function configOf(name: string, spec: Record<string, unknown>): KubeObject {
  const target = { kind: 'Module', app: 'Shop' };
  const whole = { target, file: 'application.yaml', format: 'yaml', ...spec };
  return { apiVersion: GROUP, kind: 'ModuleConfig', metadata: { name }, spec: whole };
}

/** A ModuleConfig whose present content is in force; the id of its version. */
async function activated(namespace: string, name: string): Promise<string> {
  return eventually(async () => {
    const { metadata, status } = await (tenants[namespace] as ApiClient).get(`${configsIn(namespace)}/${name}`);
    expect(status).toMatchObject({ observedGeneration: metadata.generation, presentVersion: status.activeVersion });
    return status.activeVersion as string;
  });
}

interface Source {
  readonly name: string;
  readonly source: object;
}

/** The sources of properties; or the status of the answer. */
async function read(path: string, as = client): Promise<unknown> {
  const { status, text } = await as.getPath(`/config/${path}`);
  if (status !== 200) return status;
  const { propertySources } = JSON.parse(text) as { propertySources: Source[] };
  return propertySources.map(({ source }) => source);
}

async function accountToken(namespace: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/mallory/token`;
  const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: { name: '' }, spec: {} };
  return (await world.admin.post(path, asked)).status.token;
}

async function argsOf(module: string): Promise<string[]> {
  const all = await pods(world.admin, `module.koupleless.io/name=${module}`, 'team-a');
  return all.filter(isReady).flatMap(({ spec }) => spec?.containers[0]?.args ?? []);
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world, CONTROLLERS);
  await platform.installPolicies();
  await world.startController();
  await world.startFleet({ count: 1, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(1));
  const created = TENANTS.map(async (name) => [name, await createTenant(world.controlPlane, name)] as const);
  tenants = Object.fromEntries(await Promise.all(created));
  for (const name of TENANTS) await platform.optIn(name);
  const { authority } = world.controlPlane;
  const pair = authority.issue({ commonName: '127.0.0.1', hosts: ['127.0.0.1'] });
  files = await FeedFiles.write({ ...pair, ca: authority.certificate }, {}, TOKENS);
  replicas = await Promise.all(
    ['catalog-1', 'catalog-2'].map((name) => platform.start(name, CONTROLLERS.join(), files.env)),
  );
  await Promise.any(
    replicas.map((one) => one.line(({ msg, lease }) => msg === 'started leading' && lease === 'platform-catalog')),
  );
  const [first] = replicas as [ControllerProcess];
  client = new FeedClient({ ca: files.ca, port: await first.port('feed'), token: TOKENS['team-a.Shop'] });
});

afterAll(async () => {
  await platform?.stop();
  await files?.remove();
  await world?.stop();
});

describe('configuration over HTTP', () => {
  it('is the one of the tenant, although both have an application and a file of the same name', async () => {
    for (const name of TENANTS) await tenants[name]?.post(configsIn(name), configOf('db', { content: `of: ${name}` }));
    for (const name of TENANTS) await activated(name, 'db');
    const others = { 'team-a': 'team-b', 'team-b': 'team-a' } as const;
    for (const own of TENANTS) {
      for (const token of [TOKENS[`${own}.Shop`], await accountToken(own)]) {
        const as = client.with(token);
        await eventually(async () => expect(await read(`${own}/db/default`, as)).toEqual([{ of: own }]));
        expect(await read(`${others[own]}/db/default`, as)).toBe(403);
      }
    }
    expect(await read('team-a/db/default', client.with(TOKENS['team-a.Other']))).toBe(404);
    expect(await read('team-a/db/default', client.with('x'.repeat(40)))).toBe(401);
    expect(await read('team-a/db/default', client.with(undefined))).toBe(401);
  });

  it('comes from every replica, with former versions, instances and files', async () => {
    const [tenant, path] = [tenants['team-a'] as ApiClient, configsIn('team-a')];
    await tenant.post(path, configOf('pool', { content: 'pool: 10', instances: { b1: 'pool: 11' } }));
    const first = await activated('team-a', 'pool');
    await tenant.mergePatch(`${path}/pool`, { spec: { content: 'pool: 20', instances: { b1: null, b2: 'pool: 21' } } });
    const second = await eventually(async () => {
      const found = await activated('team-a', 'pool');
      expect(found).not.toBe(first);
      return found;
    });
    for (const replica of replicas) {
      const as = new FeedClient({ ca: files.ca, port: await replica.port('feed'), token: TOKENS['team-a.Shop'] });
      await eventually(async () => expect(await read('team-a/pool/default', as)).toEqual([{ pool: 20 }]));
      expect(await read('team-a/pool/b2', as)).toEqual([{ pool: 21 }, { pool: 20 }]);
      expect(await read(`team-a/pool/b1,b2/${first}`, as)).toEqual([{ pool: 11 }, { pool: 10 }]);
      const file = await as.getPath(`/config/team-a/pool/default/${second}/application.yaml`);
      expect(file).toMatchObject({ status: 200, text: 'pool: 20' });
      const again = await as.getPath(`/config/team-a/pool/default`, { 'if-none-match': '"other"' });
      expect(await as.getPath('/config/team-a/pool/default', { 'if-none-match': again.etag })).toMatchObject({
        status: 304,
        text: '',
      });
    }
  });

  it('is what a Module reads that asks for it: with the version in its Pods', async () => {
    const tenant = tenants['team-a'] as ApiClient;
    const large = Array.from({ length: 1_000 }, (_, index) => `key-${index}: value-${index}`).join('\n');
    await tenant.post(configsIn('team-a'), configOf('large', { content: large }));
    const first = await activated('team-a', 'large');
    await tenant.post(modulesIn('team-a'), {
      apiVersion: GROUP,
      kind: 'Module',
      metadata: { name: 'shop-cart' },
      spec: {
        app: 'Shop',
        module: 'cart',
        base: { name: 'base' },
        configs: [
          { name: 'pool', follow: 'Immediately' },
          { name: 'large', follow: 'Immediately', as: 'Http' },
        ],
        release: { id: 'r1', image: 'https://jars.example.com/cart-1.0.0-ark-biz.jar' },
      },
    });
    const argsWith = (version: string, pool: number): string[] => [
      `--spring.application.json=${JSON.stringify({
        pool,
        'spring.config.import': ['configserver:$', '{MODULE_CONFIG_URL}/config/team-a'].join(''),
        'spring.cloud.config.name': 'large',
        'spring.cloud.config.profile': 'default',
        'spring.cloud.config.label': version,
        'spring.cloud.config.headers.Authorization': ['Bearer $', '{MODULE_CONFIG_TOKEN:}'].join(''),
      })}`,
    ];
    await eventually(async () => expect(await argsOf('cart')).toEqual(argsWith(first, 20)), 60_000);
    await tenant.mergePatch(`${configsIn('team-a')}/large`, { spec: { content: 'key-0: changed' } });
    await eventually(async () => expect(await argsOf('cart')).not.toEqual(argsWith(first, 20)), 60_000);
    const second = await activated('team-a', 'large');
    await eventually(async () => expect(await argsOf('cart')).toEqual(argsWith(second, 20)), 60_000);
    expect(await read(`team-a/large/default/${second}`)).toEqual([{ 'key-0': 'changed' }]);

    await tenant.mergePatch(`${modulesIn('team-a')}/shop-cart`, { spec: { rollbackTo: {} } });
    await eventually(async () => expect(await argsOf('cart')).toEqual(argsWith(first, 20)), 60_000);
    const [all] = (await read(`team-a/large/default/${first}`)) as object[];
    expect(Object.keys(all as object)).toHaveLength(1_000);
  });
});
