import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
import { eventually } from '../support/eventually.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import type { World } from '../support/world.ts';

const GROUP = 'platform.koupleless.io/v1alpha1';
const BASES = 2;
const CONTROLLERS = ['rollout', 'catalog'];
const MODULES = `/apis/${GROUP}/namespaces/${TENANT_NAMESPACE}/modules`;
const CONFIGS = `/apis/${GROUP}/namespaces/${TENANT_NAMESPACE}/moduleconfigs`;
const CONFIG_MAPS = `/api/v1/namespaces/${TENANT_NAMESPACE}/configmaps`;
const CHANGED_BY = 'platform.koupleless.io/changed-by';
const TENANT_USER = `system:serviceaccount:${TENANT_NAMESPACE}:mallory`;

interface Version {
  readonly id: string;
  readonly digest: string;
  readonly lastActivated?: string;
  readonly by?: string;
}

let world: World;
let platform: Platform;
let tenant: ApiClient;
/** The platform's account in the hands of a thief. */
let thief: ApiClient;

function configOf(name: string, spec: Record<string, unknown>, annotations: Record<string, string> = {}): KubeObject {
  const target = { kind: 'Module', app: 'Shop' };
  return {
    apiVersion: GROUP,
    kind: 'ModuleConfig',
    metadata: { name, namespace: TENANT_NAMESPACE, annotations },
    spec: { target, file: 'application.yaml', format: 'yaml', ...spec },
  };
}

function moduleOf(module: string, configs: readonly object[], version = '1.0.0'): KubeObject {
  const image = `https://jars.example.com/${module}-${version}-ark-biz.jar`;
  return {
    apiVersion: GROUP,
    kind: 'Module',
    metadata: { name: `shop-${module}`, namespace: TENANT_NAMESPACE },
    spec: {
      app: 'Shop',
      module,
      base: { name: 'base' },
      configs,
      deploy: { replicas: BASES },
      release: { id: version, image },
    },
  };
}

const change = (name: string, spec: object): Promise<KubeObject> => tenant.mergePatch(`${CONFIGS}/${name}`, { spec });
const answerOf = (call: Promise<unknown>): Promise<string> => call.then(() => 'accepted', messageOf);

/** A ModuleConfig whose status is of its present specification. */
async function settled(name: string): Promise<KubeObject> {
  return eventually(async () => {
    const config = await tenant.get(`${CONFIGS}/${name}`);
    expect(config.status?.observedGeneration).toBe(config.metadata.generation);
    return config;
  });
}

async function versionsOf(name: string): Promise<readonly Version[]> {
  return (await settled(name)).status.versions;
}

/** Content of a version, as the API server has it. */
async function contentOf(name: string, { digest }: Version): Promise<string | undefined> {
  return (await tenant.get(`${CONFIG_MAPS}/${name}-${digest.slice(0, 10)}`)).data?.content;
}

async function activeContent(name: string): Promise<string | undefined> {
  const { status } = await settled(name);
  const active = status.versions.find(({ id }: Version) => id === status.activeVersion);
  return active && contentOf(name, active);
}

async function untilActive(name: string, content: string): Promise<void> {
  await eventually(async () => expect(await activeContent(name)).toBe(content));
}

/** Arguments of the Pods of a module that serve. */
async function argsOf(module: string): Promise<string[]> {
  const all = await pods(world.admin, `module.koupleless.io/name=${module}`, TENANT_NAMESPACE);
  return all.filter(isReady).map(({ spec }) => JSON.stringify(spec?.containers[0]?.args ?? []));
}

async function untilArgs(module: string, properties: object): Promise<void> {
  const args = JSON.stringify([`--spring.application.json=${JSON.stringify(properties)}`]);
  await eventually(async () => expect(await argsOf(module)).toEqual(Array(BASES).fill(args)), 60_000);
}

async function conditionOf(name: string, type: string): Promise<Record<string, string>> {
  return (await settled(name)).status.conditions.find((one: { type: string }) => one.type === type);
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world, CONTROLLERS);
  await platform.installPolicies();
  await world.startController();
  await world.startFleet({ count: BASES, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  tenant = await createTenant(world.controlPlane);
  thief = await world.controlPlane.client({ serviceAccount: 'koupleless-system/module-platform' });
  const controller = await platform.start('catalog-1', CONTROLLERS.join());
  await controller.line(({ msg, lease }) => msg === 'started leading' && lease === 'platform-catalog');
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

describe('a namespace that has not opted in', () => {
  it('gets no version, and its ModuleConfigs say what is missing', async () => {
    await tenant.post(CONFIGS, configOf('early', { content: 'a: 1' }));
    await eventually(async () => {
      const { status } = await tenant.get(`${CONFIGS}/early`);
      expect(status?.conditions[0]).toMatchObject({ status: 'False', reason: 'NotPermitted' });
    });
    await platform.optIn(TENANT_NAMESPACE);
    await eventually(async () => expect(await activeContent('early')).toBe('a: 1'), 60_000);
    await tenant.delete(`${CONFIGS}/early`);
    await eventually(async () =>
      expect((await tenant.list(CONFIG_MAPS)).map(({ metadata }) => metadata.name)).toEqual(['kube-root-ca.crt']),
    );
  });
});

describe('a ModuleConfig', () => {
  beforeAll(async () => {
    await platform.optIn(TENANT_NAMESPACE);
  });

  it('reaches Pods with the next release, or at once, and goes back with its Module', async () => {
    await tenant.post(CONFIGS, configOf('colour', { content: 'shop: { colour: red }' }));
    await untilActive('colour', 'shop: { colour: red }');
    await tenant.post(MODULES, moduleOf('slow', [{ name: 'colour' }]));
    await tenant.post(MODULES, moduleOf('fast', [{ name: 'colour', follow: 'Immediately' }]));
    await untilArgs('slow', { 'shop.colour': 'red' });
    await untilArgs('fast', { 'shop.colour': 'red' });
    const [first] = await versionsOf('colour');

    await change('colour', { content: 'shop: { colour: blue }' });
    await untilArgs('fast', { 'shop.colour': 'blue' });
    await untilArgs('slow', { 'shop.colour': 'red' });
    await tenant.mergePatch(`${MODULES}/shop-slow`, { spec: { release: moduleOf('slow', [], '2.0.0').spec.release } });
    await untilArgs('slow', { 'shop.colour': 'blue' });

    for (const module of ['slow', 'fast']) {
      await tenant.mergePatch(`${MODULES}/shop-${module}`, { spec: { rollbackTo: {} } });
      await untilArgs(module, { 'shop.colour': 'red' });
      const { spec } = await tenant.get(`${MODULES}/shop-${module}`);
      expect([spec.configs[0].version, spec.rollbackTo, spec.release.id]).toEqual([first?.id, undefined, '1.0.0']);
    }
    const { history } = (await tenant.get(`${MODULES}/shop-fast`)).status;
    expect(history.map(({ configs }: { configs: { version: string }[] }) => configs[0]?.version)).toEqual([
      first?.id,
      (await versionsOf('colour'))[0]?.id,
    ]);

    await tenant.delete(`${CONFIGS}/colour`);
    await eventually(async () =>
      expect((await tenant.get(`${CONFIGS}/colour`)).status.conditions[0]).toMatchObject({
        reason: 'InUse',
        message: 'it is deleted when nobody uses it: Module shop-fast, Module shop-slow',
      }),
    );
    await untilArgs('fast', { 'shop.colour': 'red' });
    for (const module of ['slow', 'fast']) await tenant.delete(`${MODULES}/shop-${module}`);
    await eventually(async () => expect(await tenant.list(CONFIGS)).toEqual([]));
    await eventually(async () => expect(await tenant.list(CONFIG_MAPS)).toHaveLength(1));
  });

  it('takes the last of 20 writes, and every version that was in force comes back byte for byte', async () => {
    const contents = Array.from({ length: 20 }, (_, index) => `n:  ${index} # of ${index}\n`);
    await tenant.post(CONFIGS, configOf('many', { content: 'n: start' }));
    await untilActive('many', 'n: start');
    await Promise.all(contents.map((content) => change('many', { content })));
    const last = (await tenant.get(`${CONFIGS}/many`)).spec.content;
    expect(contents).toContain(last);
    await untilActive('many', last);
    const versions = await versionsOf('many');
    expect(versions.length).toBeGreaterThan(1);
    for (const version of versions) {
      expect(version.lastActivated).toBeDefined();
      await change('many', { activeVersion: version.id });
      const content = (await activeContent('many')) ?? '';
      expect([...contents, 'n: start']).toContain(content);
      expect(createHash('sha256').update(`[]\n${content}`).digest('hex')).toBe(version.digest);
      expect((await settled('many')).status.activeVersion).toBe(version.id);
    }
    await change('many', { activeVersion: '20200101000000-00000000' });
    expect(await conditionOf('many', 'Ready')).toMatchObject({ status: 'False', reason: 'VersionNotFound' });
    expect((await settled('many')).status.activeVersion).toBe(versions.at(-1)?.id);
    await change('many', { activeVersion: null });
    await untilActive('many', last);
  });

  it('has two versions after B, A, B, A', async () => {
    await tenant.post(CONFIGS, configOf('twice', { content: 'b: 1' }));
    const seen = new Set<string>();
    for (const content of ['b: 1', 'a: 1', 'b: 1', 'a: 1']) {
      await change('twice', { content });
      await untilActive('twice', content);
      seen.add((await settled('twice')).status.activeVersion);
    }
    expect([seen.size, (await versionsOf('twice')).length]).toEqual([2, 2]);
  });

  it('waits for somebody where its activation is manual, and where only its parent has changed', async () => {
    await tenant.post(CONFIGS, configOf('base', { content: 'x: 1\nk: 1', target: { kind: 'Template' } }));
    await untilActive('base', 'x: 1\nk: 1');
    await tenant.post(CONFIGS, configOf('child', { content: 'k: 2', parent: 'base', activation: 'Manual' }));
    expect(await conditionOf('child', 'Ready')).toMatchObject({ status: 'False', reason: 'Waiting' });
    await change('child', { activeVersion: (await versionsOf('child'))[0]?.id });
    await untilActive('child', 'x: 1\nk: 2\n');
    await change('base', { content: 'x: 9\nk: 1' });
    await eventually(async () => expect(await conditionOf('child', 'ParentChanged')).toMatchObject({ status: 'True' }));
    expect(await activeContent('child')).toBe('x: 1\nk: 2\n');
    await change('child', { activeVersion: (await versionsOf('child'))[0]?.id });
    await untilActive('child', 'x: 9\nk: 2\n');
    await tenant.delete(`${CONFIGS}/base`);
    await eventually(async () =>
      expect((await tenant.get(`${CONFIGS}/base`)).status.conditions[0]?.message).toContain('ModuleConfig child'),
    );
    await tenant.delete(`${CONFIGS}/child`);
    await eventually(async () =>
      expect((await tenant.list(CONFIGS)).map(({ metadata }) => metadata.name)).not.toContain('base'),
    );
  });

  it('stays as it is after a dry run', async () => {
    await tenant.post(CONFIGS, configOf('dry', { content: 'a: 1' }));
    await untilActive('dry', 'a: 1');
    const { resourceVersion } = (await settled('dry')).metadata;
    await tenant.mergePatch(`${CONFIGS}/dry?dryRun=All`, { spec: { content: 'a: 2' } });
    expect((await settled('dry')).metadata.resourceVersion).toBe(resourceVersion);
    await change('dry', { content: 'a: 3' });
    await untilActive('dry', 'a: 3');
    const found = await Promise.all((await versionsOf('dry')).map((version) => contentOf('dry', version)));
    expect(found).toEqual(['a: 3', 'a: 1']);
  });

  it('keeps what is in force when its content cannot be read', async () => {
    await tenant.post(CONFIGS, configOf('broken', { content: 'a: 1' }));
    await untilActive('broken', 'a: 1');
    await change('broken', { content: 'a: 1\nb: [' });
    expect(await conditionOf('broken', 'Ready')).toMatchObject({ status: 'False', reason: 'ContentInvalid' });
    expect(await activeContent('broken')).toBe('a: 1');
  });

  it('keeps a version that only an old ReplicaSet still names', async () => {
    const limits = `/apis/${GROUP}/namespaces/${TENANT_NAMESPACE}/platformconfigs`;
    const spec = { recordLimit: { configVersion: 10 } };
    await tenant.post(limits, { apiVersion: GROUP, kind: 'PlatformConfig', metadata: { name: 'platform' }, spec });
    await tenant.post(CONFIGS, configOf('old', { content: 'n: 0' }));
    await untilActive('old', 'n: 0');
    const first = (await versionsOf('old'))[0] as Version;
    const labels = { 'platform.koupleless.io/app': 'Shop' };
    const annotations = { 'platform.koupleless.io/configs': `old@${first.id}` };
    const sets = `/apis/apps/v1/namespaces/${TENANT_NAMESPACE}/replicasets`;
    await tenant.post(sets, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'old', labels },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels, annotations },
          spec: { containers: [{ name: 'm', image: 'https://jars.example.com/m.jar' }] },
        },
      },
    });
    const writeMore = async (from: number): Promise<Version[]> => {
      for (let index = from; index < from + 11; index++) {
        await change('old', { content: `n: ${index}` });
        await untilActive('old', `n: ${index}`);
      }
      return [...(await versionsOf('old'))];
    };
    const kept = await writeMore(1);
    expect([kept.length, kept.at(-1)?.id, await contentOf('old', first)]).toEqual([11, first.id, 'n: 0']);
    await tenant.delete(`${sets}/old`);
    const left = await writeMore(12);
    expect([left.length, left.map(({ id }) => id).includes(first.id)]).toEqual([10, false]);
    await tenant.delete(`${limits}/platform`);
  });

  it('is signed with nobody else’s name', async () => {
    const signed = (by: string) => configOf('signed', { content: 'a: 1' }, { [CHANGED_BY]: by });
    expect(await answerOf(tenant.post(CONFIGS, signed('admin')))).toContain(`must be your own name, ${TENANT_USER}`);
    await tenant.post(CONFIGS, signed(TENANT_USER));
    expect((await versionsOf('signed'))[0]?.by).toBe(TENANT_USER);
    const forged = { metadata: { annotations: { [CHANGED_BY]: 'admin' } }, spec: { content: 'a: 2' } };
    expect(await answerOf(tenant.mergePatch(`${CONFIGS}/signed`, forged))).toContain('must be your own name');
    // Who changes something else leaves the name as it is.
    await world.admin.mergePatch(`${CONFIGS}/signed`, { spec: { activation: 'Manual' } });
  });
});

describe('whoever has stolen the token of the platform', () => {
  const ownerReferences = [{ apiVersion: GROUP, kind: 'ModuleConfig', name: 'x', uid: 'x', controller: true }];
  const version = (metadata: object, more: object = {}): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'x-0123456789',
      namespace: TENANT_NAMESPACE,
      labels: { 'platform.koupleless.io/composed-by': 'ModuleConfig' },
      ownerReferences,
      ...metadata,
    },
    immutable: true,
    data: { content: '' },
    ...more,
  });

  it.each<[string, object, object]>([
    ['of a name that Pods may wait for', { name: 'settings' }, {}],
    ['of nobody', { ownerReferences: [] }, {}],
    ['without the label', { labels: {} }, {}],
    ['that can be changed', {}, { immutable: false }],
    ['that does not go', { finalizers: ['example.com/stay'] }, {}],
  ])('makes no ConfigMap %s', async (_what, metadata, more) => {
    const answer = await answerOf(thief.post(`${CONFIG_MAPS}?dryRun=All`, version(metadata, more)));
    expect(answer).toContain('this account may create and delete versions of configurations only');
  });

  it('makes one as the platform does, so that the refusals are of the policy', async () =>
    expect(await answerOf(thief.post(`${CONFIG_MAPS}?dryRun=All`, version({})))).toBe('accepted'));

  it('deletes no ConfigMap of others', async () => {
    await tenant.post(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'own' },
      data: {},
    } as never);
    expect(await answerOf(thief.delete(`${CONFIG_MAPS}/own`))).toContain('this account may create and delete versions');
  });
});
