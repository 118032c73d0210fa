import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MODULE_DEPLOYMENTS } from '../../../../../src/kinds/workload-kinds.ts';
import type { ConfigMapObject, KubeObject } from '../../../../../src/kube/objects.ts';
import { PODS, type ResourceKind } from '../../../../../src/kube/resource.ts';
import { ApiError } from '../../../../../src/kube/transport/api-error.ts';
import { CATALOG } from '../../../../../src/platform/catalog/catalog.ts';
import { MODULE_CONFIGS, type ModuleConfigObject } from '../../../../../src/platform/catalog/config/module-config.ts';
import { MODULES, type ModuleObject, type ModuleSpec } from '../../../../../src/platform/catalog/module/module.ts';
import { DEFINITIONS } from '../../../../manifests/definitions.ts';
import { PlatformRig } from '../../../../support/platform-rig.ts';

const KNOWN = DEFINITIONS.map(({ name }) => name);
const CONFIG_MAPS: ResourceKind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  isNamespaced: true,
};
const JAR = 'https://jars.example.com/cart-1.0.0-ark-biz.jar';

let rig: PlatformRig;
let generation: number;

beforeEach(async () => {
  generation = 0;
  rig = new PlatformRig(CATALOG, KNOWN);
  await rig.start();
});

afterEach(() => rig.stop());

type Spec = Partial<ModuleConfigObject['spec']>;

/** Applies a ModuleConfig as a user does. */
async function put(name: string, spec: Spec, annotations: Record<string, string> = {}): Promise<void> {
  const before = find(name);
  const metadata = { ...before?.metadata, name, namespace: 'default', generation: ++generation, annotations };
  const target = { kind: 'Module', app: 'shop', name: 'cart' };
  const full = { target, file: 'application.yaml', format: 'yaml', ...spec };
  await rig.put(MODULE_CONFIGS, { ...before, metadata, spec: full } as never);
}

function find(name: string): ModuleConfigObject | undefined {
  return (rig.all(MODULE_CONFIGS) as ModuleConfigObject[]).find(({ metadata }) => metadata.name === name);
}

async function putModule(spec: Partial<ModuleSpec> = {}): Promise<void> {
  const before = rig.all(MODULES)[0] as ModuleObject | undefined;
  const metadata = { ...before?.metadata, name: 'shop-cart', namespace: 'default', generation: ++generation };
  const full = { app: 'shop', module: 'cart', base: { name: 'base' }, release: { id: 'r1', image: JAR }, ...spec };
  await rig.put(MODULES, { ...before, metadata, spec: full } as never);
}

const statusOf = (name = 'db') => find(name)?.status;
const contents = () => (rig.all(CONFIG_MAPS) as ConfigMapObject[]).map(({ data }) => data?.content);
const versionIds = (name = 'db') => statusOf(name)?.versions?.map(({ id }) => id) ?? [];
const stateOf = (name = 'db') => statusOf(name)?.conditions.find(({ type }) => type === 'Ready');
const contentOf = (id: string | undefined, name = 'db') => {
  const digest = statusOf(name)?.versions?.find((one) => one.id === id)?.digest;
  const found = (rig.all(CONFIG_MAPS) as ConfigMapObject[]).find(
    ({ metadata }) => metadata.name === `${name}-${digest?.slice(0, 10)}`,
  );
  return found?.data?.content;
};
const activeContent = (name = 'db') => contentOf(statusOf(name)?.activeVersion, name);
const moduleStatus = () => (rig.all(MODULES)[0] as ModuleObject | undefined)?.status;

interface Workload extends KubeObject {
  spec: {
    template: { metadata: { annotations?: Record<string, string> }; spec: { containers: { args?: string[] }[] } };
  };
}
const template = () => (rig.all(MODULE_DEPLOYMENTS)[0] as Workload | undefined)?.spec.template;
const args = () => template()?.spec.containers[0]?.args;

describe('a ModuleConfig', () => {
  it('has each content that was in force as a version, byte for byte', async () => {
    await put('db', { content: 'a:  1 # one\n' });
    expect([activeContent(), stateOf()?.reason]).toEqual(['a:  1 # one\n', 'Active']);
    const [first] = versionIds();
    await put('db', { content: 'a: 2' });
    expect([activeContent(), versionIds().length]).toEqual(['a: 2', 2]);
    await put('db', { content: 'a:  1 # one\n' });
    expect([statusOf()?.activeVersion, versionIds().length]).toEqual([first, 2]);
    expect(contentOf(first)).toBe('a:  1 # one\n');
    expect(rig.events.filter((event) => event.startsWith('ModuleConfig'))).toEqual(
      Array.from({ length: 3 }, () => 'ModuleConfig Normal Activated'),
    );
  });

  it('goes back and is pinned by activeVersion; an unknown one changes nothing', async () => {
    await put('db', { content: 'a: 1' });
    const [first = ''] = versionIds();
    await put('db', { content: 'a: 2' });
    await put('db', { content: 'a: 2', activeVersion: first });
    expect([activeContent(), stateOf()?.reason]).toEqual(['a: 1', 'Pinned']);
    await put('db', { content: 'a: 3', activeVersion: first });
    expect([activeContent(), versionIds().length]).toEqual(['a: 1', 3]);
    await put('db', { content: 'a: 3', activeVersion: '20200101000000-00000000' });
    expect([activeContent(), stateOf()?.reason]).toEqual(['a: 1', 'VersionNotFound']);
    await put('db', { content: 'a: 3' });
    expect(activeContent()).toBe('a: 3');
  });

  it('waits for activeVersion where the activation is manual', async () => {
    await put('db', { content: 'a: 1', activation: 'Manual' });
    expect([statusOf()?.activeVersion, stateOf()?.reason]).toEqual([undefined, 'Waiting']);
    const [first = ''] = versionIds();
    await put('db', { content: 'a: 1', activation: 'Manual', activeVersion: first });
    expect(activeContent()).toBe('a: 1');
  });

  it('keeps what is in force when its content cannot be read, and says where', async () => {
    await put('db', { content: 'a: 1' });
    await put('db', { content: 'a: 1\nb: [' });
    expect([activeContent(), stateOf()?.reason]).toEqual(['a: 1', 'ContentInvalid']);
    expect(stateOf()?.message).toMatch(/^spec\.content, line 2, column \d+: /);
    expect(rig.events).toContain('ModuleConfig Warning NotActivated');
  });

  it('says who changed it and why, if the annotations came with the change', async () => {
    await put(
      'db',
      { content: 'a: 1' },
      { 'platform.koupleless.io/changed-by': 'jo', 'kubernetes.io/change-cause': 'first' },
    );
    await put(
      'db',
      { content: 'a: 2' },
      { 'platform.koupleless.io/changed-by': 'jo', 'kubernetes.io/change-cause': 'second' },
    );
    expect(statusOf()?.versions?.map(({ by, reason }) => [by, reason])).toEqual([
      ['jo', 'second'],
      ['jo', 'first'],
    ]);
  });

  it('is of nobody whose signature was there before the change', async () => {
    const signed = { 'platform.koupleless.io/changed-by': 'jo' };
    await put('db', { content: 'a: 1' });
    // Somebody signs, and changes no content.
    await put('db', { content: 'a: 1', activation: 'Automatic' }, signed);
    await put('db', { content: 'a: 2' }, signed);
    expect(statusOf()?.versions?.map(({ by }) => by)).toEqual([undefined, undefined]);
    await put('db', { content: 'a: 2' });
    const { metadata } = find('db') as KubeObject;
    // The generation does not change with annotations.
    await rig.put(MODULE_CONFIGS, { ...find('db'), metadata: { ...metadata, annotations: signed } } as never);
    await put('db', { content: 'a: [' }, signed);
    await put('db', { content: 'a: 3' }, signed);
    expect(statusOf()?.versions?.map(({ by }) => by)).toEqual([undefined, undefined, undefined]);
    await put('db', { content: 'a: [' }, { 'platform.koupleless.io/changed-by': 'ann' });
    await put('db', { content: 'a: 4' }, { 'platform.koupleless.io/changed-by': 'ann' });
    expect(statusOf()?.versions?.[0]?.by).toBeUndefined();
  });

  it('is of whoever signed it, although it had to wait for its parent', async () => {
    const jo = { 'platform.koupleless.io/changed-by': 'jo', 'kubernetes.io/change-cause': 'first' };
    await put('db', { content: 'b: 1', parent: 'base' }, jo);
    await put('db', { content: 'b: 1', parent: 'base', activation: 'Manual' }, jo);
    // Another content beside that signature is not jo's.
    await put('other', { content: 'b: 1', parent: 'base' }, jo);
    await put('other', { content: 'b: 2', parent: 'base' }, jo);
    await put('base', { content: 'a: 1', target: { kind: 'Template' } });
    const signatures = (name: string) => statusOf(name)?.versions?.map(({ by, reason }) => [by, reason]);
    expect([signatures('db'), signatures('other')]).toEqual([[['jo', 'first']], [[undefined, undefined]]]);
    expect(statusOf()?.lastCause).toEqual({ by: 'jo', reason: 'first' });
  });

  it('leaves nothing of a content that is overwritten while it is stored', async () => {
    let isFirst = true;
    rig.onWrite(CONFIG_MAPS, () => {
      if (isFirst) void put('db', { content: 'a: 2' });
      isFirst = false;
    });
    await put('db', { content: 'a: 1' });
    await rig.rest(60);
    expect([contents(), activeContent(), versionIds().length]).toEqual([['a: 2'], 'a: 2', 1]);
  });

  it('has parts for single instances, which are part of its version', async () => {
    await put('db', { content: 'a: 1', instances: { b1: 'a: 2' } });
    await put('db', { content: 'a: 1', instances: { b1: 'a: 3' } });
    await put('db', { content: 'a: 1', instances: { b1: 'a: [' } });
    expect([versionIds().length, stateOf()?.message]).toEqual([
      2,
      expect.stringContaining('spec.instances[b1], line 1, column 5: '),
    ]);
    const parts = (rig.all(CONFIG_MAPS) as ConfigMapObject[]).map(({ data }) => data?.['instance.b1']);
    expect(parts).toEqual(['a: 2', 'a: 3']);
  });

  it('warns of keys that look like secrets, once for a version', async () => {
    await put('db', { content: 'db: { password: hunter2, url: x }' });
    await put('db', { content: `db: { password: "$\{DB_PASSWORD}" }` });
    expect(rig.events.filter((event) => event.endsWith('SecretSuspected'))).toHaveLength(1);
  });

  it('is merged over its parent, and takes what is new there when somebody asks', async () => {
    await put('base', { content: 'x: 1\nk: 1', target: { kind: 'Template' } });
    await put('db', { content: 'k: 2', parent: 'base' });
    expect(activeContent()).toBe('x: 1\nk: 2\n');
    const before = statusOf()?.activeVersion;
    await put('base', { content: 'x: 9\nk: 1', target: { kind: 'Template' } });
    expect(statusOf()?.activeVersion).toBe(before);
    const changed = statusOf()?.conditions.find(({ type }) => type === 'ParentChanged');
    expect([changed?.status, contentOf(versionIds()[0])]).toEqual(['True', 'x: 9\nk: 2\n']);
    expect(rig.events.filter((event) => event.endsWith('ParentChanged'))).toHaveLength(1);
    await put('db', { content: 'k: 2', parent: 'base', activeVersion: versionIds()[0] ?? '' });
    expect(activeContent()).toBe('x: 9\nk: 2\n');
  });

  it.each([
    ['is missing', 'none', 'there is no ModuleConfig none'],
    ['has no version in force', 'draft', 'no version of ModuleConfig draft is active yet'],
    ['is its child', 'child', 'the parents form a cycle: db > child > db'],
  ])('is not in force while its parent %s', async (_what, parent, message) => {
    await put('draft', { content: 'a: 1', activation: 'Manual' });
    await put('child', { content: 'a: 1', parent: 'db' });
    await put('db', { content: 'a: 1', parent });
    expect([statusOf()?.activeVersion, stateOf()?.reason]).toEqual([undefined, 'ParentInvalid']);
    expect(stateOf()?.message).toContain(message);
  });

  it('keeps the newest 48 versions, and those that somebody may need again', async () => {
    await put('db', { content: 'n: 0' });
    const [first = ''] = versionIds();
    const labels = {
      'virtual-kubelet.koupleless.io/component': 'module',
      'platform.koupleless.io/app': 'shop',
      'module.koupleless.io/name': 'cart',
    };
    const annotations = { 'platform.koupleless.io/configs': `db@${first}` };
    await rig.put(PODS, {
      metadata: { name: 'p', namespace: 'default', labels, annotations },
      spec: { containers: [] },
    } as never);
    for (let index = 1; index <= 60; index++) await put('db', { content: `n: ${index}` });
    expect([versionIds().length, contents().length]).toEqual([49, 49]);
    expect(versionIds()).toContain(first);
    await rig.remove(PODS, 'p');
    await put('db', { content: 'n: 61' });
    expect([versionIds().length, contents().length, versionIds().includes(first)]).toEqual([48, 48, false]);
  });

  it('has at most 256 versions that somebody uses, and goes on when one is free', async () => {
    await put('db', { content: 'n: 0' });
    const { metadata, status } = find('db') as ModuleConfigObject;
    const [first] = status?.versions ?? [];
    const others = Array.from({ length: 255 }, (_, index) => ({
      ...first,
      id: `20200101000000-${String(index).padStart(8, '0')}`,
      digest: String(index).padStart(64, '0'),
      source: `s${index}`,
    }));
    const versions = [...(status?.versions ?? []), ...others];
    const labels = {
      'virtual-kubelet.koupleless.io/component': 'module',
      'platform.koupleless.io/app': 'shop',
      'module.koupleless.io/name': 'cart',
    };
    const configs = versions.map((version) => `db@${version?.id}`).join();
    const annotations = { 'platform.koupleless.io/configs': configs };
    const pod = { metadata: { name: 'p', namespace: 'default', labels, annotations }, spec: { containers: [] } };
    await rig.put(PODS, pod as never);
    await rig.put(MODULE_CONFIGS, { ...find('db'), metadata, status: { ...status, versions } } as never);
    await put('db', { content: 'n: 1' });
    expect([stateOf()?.reason, versionIds().length, activeContent()]).toEqual(['TooManyVersions', 256, 'n: 0']);
    await rig.remove(PODS, 'p');
    await rig.rest(60);
    expect([stateOf()?.reason, versionIds().length, activeContent()]).toEqual(['Active', 48, 'n: 1']);
  });

  it('removes no version on the strength of a history that could not be read', async () => {
    const replicaSets: ResourceKind = {
      group: 'apps',
      version: 'v1',
      kind: 'ReplicaSet',
      plural: 'replicasets',
      isNamespaced: true,
    };
    rig.refuse(replicaSets, 'list', new ApiError('GET', { status: 500 }));
    for (let index = 0; index <= 49; index++) await put('db', { content: `n: ${index}` });
    expect(contents().length).toBeGreaterThan(48);
  });

  it('goes only when nobody uses it, and says who does', async () => {
    await put('db', { content: 'a: 1' });
    expect(find('db')?.metadata.finalizers).toEqual(['platform.koupleless.io/config-in-use']);
    await putModule({ configs: [{ name: 'db' }] });
    const { metadata } = find('db') as KubeObject;
    await rig.put(MODULE_CONFIGS, {
      ...find('db'),
      metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    } as never);
    expect(stateOf()).toMatchObject({
      reason: 'InUse',
      message: 'it is deleted when nobody uses it: Module shop-cart',
    });
    expect(rig.events).toContain('ModuleConfig Warning DeletionWaits');
    await putModule({ configs: [] });
    expect(find('db')?.metadata.finalizers ?? []).toEqual([]);
  });

  it('goes as soon as its last child has gone', async () => {
    await put('base', { content: 'a: 1', target: { kind: 'Template' } });
    await put('db', { content: 'b: 1', parent: 'base' });
    expect(statusOf('base')?.usedBy).toEqual([{ kind: 'ModuleConfig', name: 'db' }]);
    const { metadata } = find('base') as KubeObject;
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    await rig.put(MODULE_CONFIGS, { ...find('base'), metadata: { ...metadata, deletionTimestamp } } as never);
    expect(stateOf('base')?.message).toContain('ModuleConfig db');
    await rig.remove(MODULE_CONFIGS, 'db');
    expect(find('base')?.metadata.finalizers ?? []).toEqual([]);
  });

  it('has no version of a former one of its name', async () => {
    await put('db', { content: 'a: 1' });
    const former = find('db')?.metadata.uid;
    const formerContents = contents();
    await rig.remove(MODULE_CONFIGS, 'db');
    expect(contents()).toEqual(formerContents);
    await put('db', { content: 'a: 1' });
    expect([activeContent(), stateOf()?.reason, contents().length]).toEqual(['a: 1', 'Active', 1]);
    const owners = rig.all(CONFIG_MAPS).flatMap(({ metadata }) => metadata.ownerReferences?.map(({ uid }) => uid));
    expect(owners).toEqual([find('db')?.metadata.uid]);
    expect(owners).not.toContain(former);
  });

  it('removes no version after a change that its watch does not show yet', async () => {
    for (let index = 0; index < 48; index++) await put('db', { content: `n: ${index}` });
    rig.changeRead(MODULE_CONFIGS, (object) => ({
      ...object,
      metadata: { ...object.metadata, resourceVersion: 'later' },
    }));
    await put('db', { content: 'n: 48' });
    expect(contents()).toContain('n: 0');
    rig.changeRead(MODULE_CONFIGS, (object) => object);
    await rig.rest(60);
    expect([contents().includes('n: 0'), contents().length]).toEqual([false, 48]);
  });

  it('has its first version where the write of its status got no answer', async () => {
    for (const isDone of [false, true]) {
      for (let write = 0; write < 3; write++) {
        await rig.stop();
        generation = 0;
        rig = new PlatformRig(CATALOG, KNOWN);
        await rig.start();
        const metadata = { name: 'db', namespace: 'default', generation: 1 };
        const target = { kind: 'Module', app: 'shop' };
        rig.loseNextAnswer(isDone);
        await rig.put(
          MODULE_CONFIGS,
          { metadata, spec: { target, file: 'a', format: 'yaml', content: 'a: 1' } } as never,
          60,
        );
        expect([activeContent(), contents().length, versionIds().length]).toEqual(['a: 1', 1, 1]);
      }
    }
  });
});

describe('the configuration of a Module', () => {
  const first = () => versionIds().at(-1) ?? '';

  it('is an argument and an annotation of its Pods, with its own arguments after it', async () => {
    await put('db', { content: 'db: { url: x }' });
    await putModule({ configs: [{ name: 'db' }], args: ['--own'] });
    expect(args()).toEqual(['--spring.application.json={"db.url":"x"}', '--own']);
    expect(template()?.metadata.annotations).toMatchObject({ 'platform.koupleless.io/configs': `db@${first()}` });
    expect(moduleStatus()?.release?.configs).toEqual([{ name: 'db', version: first() }]);
    expect(moduleStatus()?.conditions.find(({ type }) => type === 'ConfigFound')?.status).toBe('True');
  });

  it('waits for the next release, or follows at once', async () => {
    await put('db', { content: 'a: 1' });
    await put('log', { content: 'b: 1' });
    await putModule({ configs: [{ name: 'db' }, { name: 'log', follow: 'Immediately' }] });
    await put('db', { content: 'a: 2' });
    await put('log', { content: 'b: 2' });
    expect(args()).toEqual(['--spring.application.json={"a":1,"b":2}']);
    await putModule({
      configs: [{ name: 'db' }, { name: 'log', follow: 'Immediately' }],
      release: { id: 'r2', image: JAR.replace('1.0.0', '2.0.0') },
    });
    expect(args()).toEqual(['--spring.application.json={"a":2,"b":2}']);
  });

  it('comes back with rollbackTo, and is pinned', async () => {
    await put('db', { content: 'a: 1' });
    await putModule({ configs: [{ name: 'db', follow: 'Immediately' }] });
    await put('db', { content: 'a: 2' });
    expect(args()).toEqual(['--spring.application.json={"a":2}']);
    await putModule({ configs: [{ name: 'db', follow: 'Immediately' }], rollbackTo: {} });
    expect(args()).toEqual(['--spring.application.json={"a":1}']);
    const { configs, rollbackTo } = (rig.all(MODULES)[0] as ModuleObject).spec;
    expect([configs, rollbackTo]).toEqual([[{ name: 'db', follow: 'Immediately', version: first() }], undefined]);
    await put('db', { content: 'a: 3' });
    expect(args()).toEqual(['--spring.application.json={"a":1}']);
  });

  it('holds up a release while it is missing; what was in force runs on', async () => {
    await put('db', { content: 'a: 1' });
    await putModule({ configs: [{ name: 'db' }] });
    await putModule({ configs: [{ name: 'other' }], release: { id: 'r2', image: JAR.replace('1.0.0', '2.0.0') } });
    expect(args()).toEqual(['--spring.application.json={"a":1}']);
    expect(moduleStatus()?.release?.id).toBe('r1');
    expect(moduleStatus()?.conditions.find(({ type }) => type === 'ConfigFound')).toMatchObject({
      status: 'False',
      message: 'there is no ModuleConfig other',
    });
    await put('other', { content: 'o: 1' });
    expect([args(), moduleStatus()?.release?.id]).toEqual([['--spring.application.json={"o":1}'], 'r2']);
  });

  it('runs on over HTTP while what should follow it is missing, and goes back to that', async () => {
    await put('db', { content: `a: ${'x'.repeat(9_000)}` });
    await putModule({ configs: [{ name: 'db', as: 'Http' }] });
    const overHttp = args();
    expect(overHttp?.[0]).toContain('configserver:');
    await putModule({ configs: [{ name: 'none', as: 'Http' }], deploy: { replicas: 2 } });
    expect([args(), moduleStatus()?.release?.configs]).toEqual([
      overHttp,
      [{ name: 'db', version: first(), as: 'Http' }],
    ]);
    await put('other', { content: 'o: 1' });
    await putModule({ configs: [{ name: 'other' }] });
    expect(args()).toEqual(['--spring.application.json={"o":1}']);
    await putModule({ configs: [{ name: 'other' }], rollbackTo: {} });
    expect([args(), (rig.all(MODULES)[0] as ModuleObject).spec.configs]).toEqual([
      overHttp,
      [{ name: 'db', version: first(), as: 'Http' }],
    ]);
  });

  it('does not go back to what is gone', async () => {
    await put('db', { content: 'a: 1' });
    await putModule({ configs: [{ name: 'db' }] });
    await put('other', { content: 'o: 1' });
    await putModule({ configs: [{ name: 'other' }] });
    await rig.remove(MODULE_CONFIGS, 'db');
    await putModule({ configs: [{ name: 'other' }], rollbackTo: {} });
    const { configs, rollbackTo } = (rig.all(MODULES)[0] as ModuleObject).spec;
    expect([configs, rollbackTo]).toEqual([[{ name: 'other' }], undefined]);
    expect(rig.events).toContain('Module Warning RollbackFailed');
    expect(args()).toEqual(['--spring.application.json={"o":1}']);
  });

  it('says which active version waits for the next release', async () => {
    await put('db', { content: 'a: 1' });
    await putModule({ configs: [{ name: 'db' }] });
    const found = () => moduleStatus()?.conditions.find(({ type }) => type === 'ConfigFound');
    expect(found()).toMatchObject({ status: 'True', reason: 'Found', message: '' });
    await put('db', { content: 'a: 2' });
    expect(found()).toMatchObject({
      status: 'True',
      reason: 'Waiting',
      message: `db: version ${versionIds()[0]} waits, since ${first()} runs until the next release`,
    });
  });

  it('does not change alone where no base may be without the module', async () => {
    await put('db', { content: 'a: 1' });
    const strategy = { type: 'RollingUpdate' as const, rollingUpdate: { maxUnavailable: 0 } };
    const spec = { configs: [{ name: 'db', follow: 'Immediately' as const }], deploy: { strategy } };
    await putModule(spec);
    await put('db', { content: 'a: 2' });
    expect(args()).toEqual(['--spring.application.json={"a":1}']);
    expect(moduleStatus()?.conditions.find(({ type }) => type === 'Ready')?.message).toContain('maxUnavailable: 0');
    await putModule({ ...spec, release: { id: 'r2', image: JAR.replace('1.0.0', '2.0.0') } });
    expect(args()).toEqual(['--spring.application.json={"a":2}']);
  });

  it('is not made where it is too long, or has no properties', async () => {
    await put('db', { content: 'a: 1' });
    await putModule({ configs: [{ name: 'db', follow: 'Immediately' }] });
    await put('db', { content: `a: ${'x'.repeat(9_000)}` });
    expect(args()).toEqual(['--spring.application.json={"a":1}']);
    expect(moduleStatus()?.conditions.find(({ type }) => type === 'Ready')?.message).toMatch(/at most 8192/);
    await put('text', { content: 'x', format: 'text', file: 'x.txt' });
    await putModule({ configs: [{ name: 'text' }] });
    expect(moduleStatus()?.conditions.find(({ type }) => type === 'Ready')?.message).toContain('the format text');
  });

  it('stays, and lets the Module scale, where its version has gone with a former ModuleConfig', async () => {
    await put('db', { content: 'a: 1' });
    await putModule({ configs: [{ name: 'db' }] });
    const former = first();
    await rig.remove(MODULE_CONFIGS, 'db');
    for (const { metadata } of rig.all(CONFIG_MAPS)) await rig.remove(CONFIG_MAPS, metadata.name);
    await rig.rest(5);
    await put('db', { content: 'a: 2' });
    const next = new PlatformRig(CATALOG, KNOWN, {}, rig);
    await rig.stop();
    rig = next;
    await rig.start();
    await putModule({ configs: [{ name: 'db' }], deploy: { replicas: 3 } });
    expect(moduleStatus()?.conditions.find(({ type }) => type === 'ConfigFound')).toMatchObject({
      status: 'False',
      message: `ModuleConfig db no longer has version ${former}: publish a release, or name a version`,
    });
    expect([args(), (rig.all(MODULE_DEPLOYMENTS)[0] as { spec?: { replicas?: number } }).spec?.replicas]).toEqual([
      ['--spring.application.json={"a":1}'],
      3,
    ]);
    await putModule({ configs: [{ name: 'db' }], release: { id: 'r2', image: JAR.replace('1.0.0', '2.0.0') } });
    expect(args()).toEqual(['--spring.application.json={"a":2}']);
  });

  it('is stored again where somebody has deleted its content', async () => {
    await put('db', { content: 'a: 1' });
    await put('unused', { content: 'a: 1' });
    const [stored] = rig.all(CONFIG_MAPS);
    await rig.remove(CONFIG_MAPS, stored?.metadata.name ?? '');
    const next = new PlatformRig(CATALOG, KNOWN, {}, rig);
    await rig.stop();
    rig = next;
    await rig.start();
    await putModule({ configs: [{ name: 'db' }] });
    await rig.rest(60);
    expect(args()).toEqual(['--spring.application.json={"a":1}']);
  });
});
