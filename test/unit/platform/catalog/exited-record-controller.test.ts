import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject, PodObject, PodStatus } from '../../../../src/kube/objects.ts';
import { PODS } from '../../../../src/kube/resource.ts';
import { ApiError } from '../../../../src/kube/transport/api-error.ts';
import { CATALOG } from '../../../../src/platform/catalog/catalog.ts';
import { CATALOG_PODS, projectCatalogPod } from '../../../../src/platform/catalog/catalog-pod.ts';
import { CACHED_MODULES } from '../../../../src/platform/catalog/module/cached-module.ts';
import { MODULES, type ModuleObject } from '../../../../src/platform/catalog/module/module.ts';
import { PLATFORM_CONFIGS, RECORD_LIMIT } from '../../../../src/platform/catalog/platform-config/platform-config.ts';
import { Departures } from '../../../../src/platform/catalog/record/departures.ts';
import {
  type CachedExitedRecord,
  EXITED_RECORDS,
  type ExitedRecordObject,
  MAX_LIVE,
  projectExitedRecord,
} from '../../../../src/platform/catalog/record/exited-record.ts';
import {
  ExitedRecordController,
  type ExitedRecordControllerOptions,
} from '../../../../src/platform/catalog/record/exited-record-controller.ts';
import { DEFINITIONS } from '../../../manifests/definitions.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeInformer } from '../../../support/fake-informer.ts';
import { FakeObjects } from '../../../support/fake-objects.ts';
import { PlatformRig } from '../../../support/platform-rig.ts';

const KNOWN = DEFINITIONS.map(({ name }) => name);
const LABELS = {
  'virtual-kubelet.koupleless.io/component': 'module',
  'platform.koupleless.io/app': 'Shop',
  'module.koupleless.io/name': 'cart',
  'platform.koupleless.io/release': 'r1',
};
const KEY = 'default/Shop/cart';

let rig: PlatformRig;

beforeEach(async () => {
  rig = new PlatformRig(CATALOG, KNOWN);
  await rig.start();
  await putModule();
});

afterEach(() => rig.stop());

const moduleOf = (uid = 'module-1'): KubeObject => {
  const metadata = { name: 'shop-cart', namespace: 'default', uid, generation: 1 };
  return { metadata, spec: { app: 'Shop', module: 'cart', base: { name: 'base' } } } as never;
};

const putModule = (uid?: string): Promise<void> => rig.put(MODULES, moduleOf(uid));

function podOf(name: string, more: Partial<KubeObject['metadata']> & { status?: PodStatus } = {}): KubeObject {
  const { status = {}, ...metadata } = more;
  const createTime = '2026-11-28T10:00:00Z';
  const own = { name, namespace: 'default', uid: `uid-${name}`, creationTimestamp: createTime, labels: LABELS };
  const spec = { nodeName: 'vnode.b1', containers: [] };
  const addresses = { hostIP: '10.0.0.1', podIP: '10.0.0.1' };
  return { metadata: { ...own, ...metadata }, spec, status: { ...addresses, ...status } } as never;
}

const record = (): ExitedRecordObject | undefined => rig.all(EXITED_RECORDS)[0] as ExitedRecordObject | undefined;
const exited = (): string | undefined =>
  record()
    ?.status?.pods.map(({ name }) => name)
    .join(' ');
const live = (): string | undefined =>
  record()
    ?.status?.live.map(({ name }) => name)
    .join(' ');
const version = (): number => Number(record()?.metadata.resourceVersion);

/** Longer than the delay of Pods that live. */
async function wait(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await rig.rest();
}

/** Stops the controller, and starts another one when `meanwhile` has happened. */
async function restart(meanwhile: () => Promise<unknown>): Promise<void> {
  await rig.stop();
  await meanwhile();
  rig = new PlatformRig(CATALOG, KNOWN, {}, rig);
  await rig.start();
  await rig.rest();
}

describe('the record of a Module', () => {
  it('is there with the first Pod, belongs to the Module, and has the Pods that live', async () => {
    await wait();
    expect(record()).toBeUndefined();
    await rig.put(PODS, podOf('a'));
    expect(record()).toBeUndefined();
    await wait();
    expect(record()).toMatchObject({
      metadata: {
        name: 'shop-cart',
        namespace: 'default',
        ownerReferences: [{ kind: 'Module', name: 'shop-cart', uid: 'module-1', controller: true }],
      },
      spec: { app: 'Shop', module: 'cart' },
      status: {
        exited: 0,
        pods: [],
        live: [{ uid: 'uid-a', name: 'a', id: 'r1', node: 'vnode.b1', nodeIP: '10.0.0.1', podIP: '10.0.0.1' }],
      },
    });
  });

  it('is written at most once in 10 s for Pods that live', async () => {
    await rig.put(PODS, podOf('a'));
    await wait();
    const first = version();
    await rig.put(PODS, podOf('b'));
    expect(version()).toBe(first);
    await wait();
    expect(live()).toBe('a b');
  });

  it('has a Pod at once when it has gone, with the reason', async () => {
    const state = { waiting: { reason: 'ErrImagePull', message: 'no such jar' } };
    const containers = [{ name: 'cart', image: 'i', imageID: '', ready: false, restartCount: 0, state }];
    await rig.put(PODS, podOf('a', { status: { containerStatuses: containers } }));
    await rig.put(PODS, podOf('b'));
    await rig.remove(PODS, 'a');
    expect(record()?.status).toMatchObject({
      exited: 1,
      pods: [{ uid: 'uid-a', name: 'a', id: 'r1', node: 'vnode.b1', reason: 'ErrImagePull', message: 'no such jar' }],
      live: [{ uid: 'uid-b' }],
    });
    expect(record()?.status?.pods[0]?.deleteTime).toMatch(/^\d{4}-.*Z$/);
    await rig.remove(PODS, 'b');
    expect([exited(), live()]).toEqual(['b a', '']);
    expect(record()?.status?.pods[0]).not.toHaveProperty('reason');
  });

  it('has no entry before a Pod that is being deleted has gone', async () => {
    await rig.put(PODS, podOf('a'));
    await wait();
    await rig.put(PODS, podOf('a', { deletionTimestamp: '2026-11-28T11:00:00Z' }));
    await wait();
    expect([exited(), live()]).toEqual(['', 'a']);
    await rig.remove(PODS, 'a');
    expect(exited()).toBe('a');
  });

  it('takes 100 Pods that go at once in few writes, and keeps 48', async () => {
    const names = Array.from({ length: 100 }, (_, index) => `p${String(index).padStart(3, '0')}`);
    await Promise.all(names.map((name) => rig.put(PODS, podOf(name))));
    await wait();
    const before = version();
    await Promise.all(names.map((name) => rig.remove(PODS, name)));
    expect(exited()?.split(' ')).toEqual(names.toReversed().slice(0, 48));
    expect(record()?.status?.exited).toBe(100);
    // Versions of the rig count all writes.
    expect(version() - before).toBeLessThanOrEqual(2);
  });

  it('loses none of its newest entries when more Pods go at once than the memory keeps', async () => {
    const config = { metadata: { name: 'platform', namespace: 'default' }, spec: { recordLimit: { exitedPod: 100 } } };
    await rig.put(PLATFORM_CONFIGS, config as never);
    const status = { reason: 'Evicted', message: 'no place' };
    const names = Array.from({ length: 400 }, (_, index) => `p${String(index).padStart(3, '0')}`);
    await Promise.all(names.map((name) => rig.put(PODS, podOf(name, { status }))));
    await wait();
    await Promise.all(names.map((name) => rig.remove(PODS, name)));
    const entries = record()?.status?.pods ?? [];
    expect(entries.map(({ name }) => name)).toEqual(names.toReversed().slice(0, 100));
    expect(entries.filter(({ reason, foundMissing }) => reason !== 'Evicted' || foundMissing)).toEqual([]);
  });

  it('gets shorter with the limit of its namespace', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `p${index}`);
    await Promise.all(names.map((name) => rig.put(PODS, podOf(name))));
    await Promise.all(names.map((name) => rig.remove(PODS, name)));
    expect(exited()?.split(' ')).toEqual(names.toReversed());
    const config = { metadata: { name: 'platform', namespace: 'default' }, spec: { recordLimit: { exitedPod: 10 } } };
    await rig.put(PLATFORM_CONFIGS, config as never);
    expect(exited()?.split(' ')).toEqual(names.toReversed().slice(0, 10));
    expect(record()?.status?.exited).toBe(20);
  });

  it('is not written while nothing happens', async () => {
    await rig.put(PODS, podOf('a'));
    await rig.put(PODS, podOf('b'));
    await rig.remove(PODS, 'a');
    await wait();
    const before = version();
    await rig.put(PODS, podOf('b', { status: { conditions: [{ type: 'Ready', status: 'True' }] } }));
    await restart(wait);
    await wait();
    expect(version()).toBe(before);
  });

  it('has each Pod that went while no controller ran once, and says that it was found missing', async () => {
    for (const name of ['a', 'b', 'c']) await rig.put(PODS, podOf(name));
    await wait();
    await restart(async () => {
      await rig.remove(PODS, 'a');
      await rig.remove(PODS, 'b');
      // It has the name of another Pod now.
      await rig.put(PODS, podOf('b', { uid: 'uid-b2' }));
    });
    expect(
      record()
        ?.status?.pods.map(({ uid }) => uid)
        .sort(),
    ).toEqual(['uid-a', 'uid-b']);
    expect(record()?.status?.pods.map(({ foundMissing }) => foundMissing)).toEqual([true, true]);
    await restart(wait);
    await wait();
    expect([record()?.status?.exited, live()]).toEqual([2, 'b c']);
  });

  it.each([true, false])('has a Pod once although the answer to its write was lost; written: %s', async (isDone) => {
    await rig.put(PODS, podOf('a'));
    await wait();
    rig.loseNextAnswer(isDone);
    await rig.remove(PODS, 'a');
    expect([exited(), record()?.status?.exited]).toEqual(['a', 1]);
  });

  it.each([true, false])('is there although the answer to its creation was lost; created: %s', async (isDone) => {
    await rig.put(PODS, podOf('a'));
    rig.loseNextAnswer(isDone);
    await rig.remove(PODS, 'a');
    expect(exited()).toBe('a');
  });

  it('has no entry of a Pod that only lost its labels', async () => {
    for (const name of ['a', 'b']) await rig.put(PODS, podOf(name));
    await wait();
    await rig.put(PODS, podOf('a', { labels: {} }));
    await restart(() => rig.put(PODS, podOf('b', { labels: {} })));
    await wait();
    expect([exited(), live()]).toEqual(['', '']);
    await rig.put(PODS, podOf('a'));
    await rig.remove(PODS, 'a');
    expect(exited()).toBe('a');
  });

  it('has no Pods of a Module that differs in the case of its app', async () => {
    await rig.put(PODS, podOf('a', { labels: { ...LABELS, 'platform.koupleless.io/app': 'SHOP' } }));
    await rig.remove(PODS, 'a');
    expect(record()).toBeUndefined();
  });

  it('is a new one for a new Module of the name', async () => {
    await rig.put(PODS, podOf('a'));
    await rig.remove(PODS, 'a');
    const { uid } = record()?.metadata ?? {};
    await rig.remove(MODULES, 'shop-cart');
    await putModule('module-2');
    await rig.put(PODS, podOf('b'));
    await wait();
    expect(record()?.metadata.uid).not.toBe(uid);
    expect(record()?.metadata.ownerReferences?.[0]?.uid).toBe('module-2');
    expect([exited(), live()]).toEqual(['', 'b']);
  });

  it('is there again when somebody deletes it', async () => {
    await rig.put(PODS, podOf('a'));
    await wait();
    await rig.remove(EXITED_RECORDS, 'shop-cart');
    await wait();
    expect(live()).toBe('a');
  });

  it('is not made while its Module is being deleted', async () => {
    const module = moduleOf();
    const metadata = { ...module.metadata, deletionTimestamp: '2026-11-28T11:00:00Z' };
    await rig.put(MODULES, { ...module, metadata });
    await rig.put(PODS, podOf('a'));
    await rig.remove(PODS, 'a');
    expect(record()).toBeUndefined();
  });
});

describe('one of several processes', () => {
  const errorOf = (status: number, reason: string): ApiError =>
    new ApiError(reason, { status, reason, retryAfterMs: undefined, causes: undefined });
  let clock: FakeClock;
  let stored: FakeObjects<ExitedRecordObject, CachedExitedRecord>;
  let client: ExitedRecordControllerOptions['client'];
  let writes: number;
  /** Pods that the API server has. */
  let alive: Set<string>;
  let asked: string[];
  let versions: number;

  beforeEach(() => {
    clock = new FakeClock();
    writes = 0;
    stored = new FakeObjects({
      project: projectExitedRecord,
      onWrite: (isDone) => {
        if (isDone) writes++;
      },
    });
    client = stored.client(({ metadata }) => stored.remove(metadata.name));
    alive = new Set();
    asked = [];
    versions = 0;
  });

  function start(own: typeof client = client, records = stored.informer) {
    const pods = new FakeInformer(clock, projectCatalogPod, CATALOG_PODS.indexers);
    const modules = new FakeInformer(clock, (raw) => CACHED_MODULES.project(raw, {} as never));
    const get = async ({ name }: { name: string }) => {
      asked.push(name);
      if (!alive.has(name)) throw errorOf(404, 'NotFound');
      return podOf(name) as PodObject;
    };
    const podClient = { get };
    const limitOf = () => 48;
    const options = { modules, pods, records, client: own, podClient, limitOf, permit: () => true, clock };
    const controller = new ExitedRecordController(options);
    const deliver = (type: 'PUT' | 'DELETED', name: string): void =>
      pods.deliver({ type, object: podOf(name, { resourceVersion: String(++versions) }) });
    modules.deliver({ type: 'PUT', object: moduleOf() });
    return {
      modules,
      come: (name: string) => deliver('PUT', name),
      go: (name: string) => {
        deliver('PUT', name);
        deliver('DELETED', name);
      },
      reconcile: () => controller.reconcile('default/shop-cart'),
    };
  }

  const names = (): string[] | undefined => stored.all[0]?.status?.pods.map(({ name }) => name);

  it('waits 10 s from the first change of Pods that live, and begins again when they are as before', async () => {
    const { come, go, reconcile } = start();
    come('a');
    expect(await reconcile()).toEqual({ requeueAfterMs: 10_000 });
    clock.advance(4_000);
    come('b');
    expect(await reconcile()).toEqual({ requeueAfterMs: 6_000 });
    alive = new Set(['a', 'b']);
    for (const name of alive) go(name);
    expect(await reconcile()).toBeUndefined();
    clock.advance(1_000);
    come('a');
    expect(await reconcile()).toEqual({ requeueAfterMs: 10_000 });
    clock.advance(9_999);
    expect(await reconcile()).toEqual({ requeueAfterMs: 1 });
    clock.advance(1);
    expect([await reconcile(), writes]).toEqual([undefined, 2]);
  });

  it('writes exits 1 s after the write before, and at once for a new Module', async () => {
    const { modules, go, reconcile } = start();
    go('a');
    expect(await reconcile()).toBeUndefined();
    clock.advance(300);
    go('b');
    expect(await reconcile()).toEqual({ requeueAfterMs: 700 });
    expect(names()).toEqual(['a']);
    clock.advance(700);
    await reconcile();
    expect(names()).toEqual(['b', 'a']);
    modules.deliver({ type: 'DELETED', object: { ...moduleOf() } });
    stored.remove('shop-cart');
    expect(await reconcile()).toBeUndefined();
    modules.deliver({ type: 'PUT', object: moduleOf('module-2') });
    go('c');
    expect(await reconcile()).toBeUndefined();
    expect(names()).toEqual(['c']);
  });

  it('asks for each Pod once, however often its write fails', async () => {
    let isRefused = true;
    const create: typeof client.create = async (...args) => {
      if (isRefused) throw errorOf(500, 'InternalError');
      return client.create(...args);
    };
    const { go, reconcile } = start({ ...client, create });
    go('a');
    for (let attempt = 0; attempt < 2; attempt++) await expect(reconcile()).rejects.toMatchObject({ status: 500 });
    isRefused = false;
    await reconcile();
    expect([names(), asked]).toEqual([['a'], ['a']]);
  });

  it('has nothing of a former Module in the record of the next one', async () => {
    const { modules, go, reconcile } = start();
    go('a');
    modules.deliver({ type: 'DELETED', object: moduleOf() });
    modules.deliver({ type: 'PUT', object: moduleOf('module-2') });
    expect([await reconcile(), stored.all]).toEqual([undefined, []]);
  });

  it('looks again later in a namespace that has not opted in', async () => {
    const refuse = async (): Promise<never> => {
      throw errorOf(403, 'Forbidden');
    };
    const { go, reconcile } = start({ ...client, create: refuse });
    go('a');
    expect(await reconcile()).toEqual({ requeueAfterMs: 30_000 });
  });

  it('writes nothing for a version that another one has changed meanwhile', async () => {
    const first = start();
    const late = new FakeInformer(clock, projectExitedRecord);
    stored.addListener((event) => late.deliver(event));
    const second = start(client, late);
    first.go('a');
    await first.reconcile();
    late.isPaused = true;
    clock.advance(1_000);
    for (const process of [first, second]) {
      process.go('b');
      process.go('c');
    }
    await first.reconcile();
    expect(names()).toEqual(['c', 'b', 'a']);
    await expect(second.reconcile()).rejects.toMatchObject({ status: 409 });
    late.resume();
    expect(await second.reconcile()).toBeUndefined();
    second.go('d');
    clock.advance(1_000);
    await second.reconcile();
    expect([names(), stored.all[0]?.status?.exited]).toEqual([['d', 'c', 'b', 'a'], 4]);
  });
});

describe('a process that does not lead', () => {
  const clock = new FakeClock();
  let pods: FakeInformer<ReturnType<typeof projectCatalogPod>>;
  let departures: Departures;
  let versions: number;
  const names = (): string =>
    departures
      .of(KEY)
      .map(({ exit }) => exit.name)
      .join(' ');
  const go = (name: string): void => {
    const pod = podOf(name, { resourceVersion: String(++versions) });
    pods.deliver({ type: 'PUT', object: pod });
    pods.deliver({ type: 'DELETED', object: podOf(name, { resourceVersion: String(++versions) }) });
  };

  beforeEach(() => {
    versions = 0;
    pods = new FakeInformer(clock, projectCatalogPod, CATALOG_PODS.indexers);
    departures = new Departures({ informer: pods, isWanted: (labels) => labels === KEY, clock });
  });

  it('forgets what the record has, and what went before that', () => {
    for (const name of ['a', 'b', 'c', 'd']) go(name);
    expect(names()).toBe('a b c d');
    departures.settle(KEY, new Set(['uid-x']));
    expect(names()).toBe('a b c d');
    departures.settle(KEY, new Set(['uid-a', 'uid-c']));
    expect(names()).toBe('d');
    departures.settle(KEY, new Set(['uid-d']));
    expect(names()).toBe('');
  });

  it('keeps a bounded number of them, the newest', () => {
    for (let index = 0; index < MAX_LIVE + 5; index++) go(`p${index}`);
    expect(departures.of(KEY)).toHaveLength(MAX_LIVE);
    expect(departures.of(KEY)[0]?.exit.name).toBe('p5');
  });

  it('keeps as many as a record can have that have gone for certain, whatever may have gone after them', () => {
    const leave = (name: string): void => {
      const metadata = { deletionTimestamp: '2026-11-28T11:00:00Z' };
      pods.deliver({ type: 'PUT', object: podOf(name, { ...metadata, resourceVersion: String(++versions) }) });
      pods.deliver({ type: 'DELETED', object: podOf(name, { ...metadata, resourceVersion: String(++versions) }) });
    };
    for (let index = 0; index < RECORD_LIMIT.max + 20; index++) leave(`gone-${index}`);
    for (let index = 0; index < MAX_LIVE; index++) go(`unknown-${index}`);
    const kept = departures.of(KEY);
    expect(kept).toHaveLength(MAX_LIVE);
    expect(kept.filter(({ isCertain }) => isCertain).map(({ exit }) => exit.name)).toEqual(
      Array.from({ length: RECORD_LIMIT.max }, (_, index) => `gone-${index + 20}`),
    );
    expect(kept.at(-1)?.exit.name).toBe(`unknown-${MAX_LIVE - 1}`);
  });

  it('keeps none of a Pod without a Module, and none that lives after all', () => {
    const pod = podOf('other', { labels: { ...LABELS, 'module.koupleless.io/name': 'other' }, resourceVersion: '1' });
    pods.deliver({ type: 'PUT', object: pod });
    pods.deliver({ type: 'DELETED', object: pod });
    expect(departures.of('default/Shop/other')).toEqual([]);
    go('a');
    pods.deliver({ type: 'PUT', object: podOf('a', { resourceVersion: String(++versions) }) });
    expect(names()).toBe('');
  });

  it('takes Pods that a restored cluster does not have for no exits', async () => {
    pods.deliver({ type: 'PUT', object: podOf('a', { resourceVersion: '5' }) });
    await pods.goBackTo([]);
    expect(names()).toBe('');
  });
});

describe('a Pod of a former Module of the name', () => {
  it('is in no record of the new one, although it is seen to go only then', async () => {
    await rig.put(PODS, podOf('old', { deletionTimestamp: '2026-11-28T10:00:01Z' } as never));
    await rig.remove(MODULES, 'shop-cart');
    const { metadata, spec } = moduleOf('module-2') as ModuleObject;
    await rig.put(MODULES, { metadata: { ...metadata, creationTimestamp: '2026-11-28T10:00:02Z' }, spec } as never);
    await rig.put(PODS, podOf('new', { creationTimestamp: '2026-11-28T10:00:03Z' }));
    await wait();
    await rig.remove(PODS, 'old');
    await wait();
    expect([live(), exited()]).toEqual(['new', '']);
    await rig.remove(PODS, 'new');
    await wait();
    expect([live(), exited()]).toEqual(['', 'new']);
  });
});
