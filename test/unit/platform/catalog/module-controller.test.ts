import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MODULE_DEPLOYMENTS } from '../../../../src/kinds/workload-kinds.ts';
import type { KubeObject } from '../../../../src/kube/objects.ts';
import { PODS, SERVICES } from '../../../../src/kube/resource.ts';
import { ApiError } from '../../../../src/kube/transport/api-error.ts';
import { CATALOG } from '../../../../src/platform/catalog/catalog.ts';
import { MODULES, type ModuleObject, type ModuleSpec } from '../../../../src/platform/catalog/module/module.ts';
import { MODULE_RELEASES } from '../../../../src/platform/catalog/release/module-release.ts';
import { DEFINITIONS } from '../../../manifests/definitions.ts';
import { PlatformRig } from '../../../support/platform-rig.ts';

const JAR = 'https://jars.example.com/cart-1.0.0-ark-biz.jar';
const NEXT = 'https://jars.example.com/cart-2.0.0-ark-biz.jar';
const KNOWN = DEFINITIONS.map(({ name }) => name);

interface Workload extends KubeObject {
  spec: { replicas?: number; paused?: boolean; template: { spec: { containers: { image: string }[] } } };
}

let rig: PlatformRig;
let generation: number;

beforeEach(async () => {
  generation = 0;
  rig = new PlatformRig(CATALOG, KNOWN);
  await rig.start();
});

afterEach(() => rig.stop());

/** Applies the Module as a user does. */
async function put(spec: Partial<ModuleSpec> = {}): Promise<void> {
  const before = rig.all(MODULES)[0] as ModuleObject | undefined;
  const metadata = { ...before?.metadata, name: 'shop-cart', namespace: 'default', generation: ++generation };
  const full = { app: 'shop', module: 'cart', base: { name: 'base' }, release: { id: 'r1', image: JAR }, ...spec };
  await rig.put(MODULES, { ...before, metadata, spec: full } as never);
}

async function publish(...releases: { id: string; image: string }[]): Promise<void> {
  const metadata = { name: 'shop-cart', namespace: 'default' };
  await rig.put(MODULE_RELEASES, { metadata, spec: { releases } } as never);
}

const workload = (): Workload | undefined => rig.all(MODULE_DEPLOYMENTS)[0] as Workload | undefined;
const image = (): string | undefined => workload()?.spec.template.spec.containers[0]?.image;
const version = (): string | undefined => workload()?.metadata.resourceVersion;
const status = () => (rig.all(MODULES)[0] as ModuleObject).status;
const condition = (type: string): string | undefined => {
  const found = status()?.conditions.find((one) => one.type === type);
  return found && `${found.status} ${found.reason}`;
};

/** Writes the workload as somebody else. */
async function change(by: (object: Workload) => void): Promise<void> {
  const object = structuredClone(workload()) as Workload;
  by(object);
  await rig.put(MODULE_DEPLOYMENTS, object);
}

describe('a Module', () => {
  it('has its workload and its Service, and says which release is in force', async () => {
    await put({ ports: [{ name: 'http', port: 8080 }] });
    expect(image()).toBe(JAR);
    expect(rig.all(SERVICES)).toHaveLength(1);
    expect(status()?.release).toMatchObject({ id: 'r1', image: JAR, version: '1.0.0' });
    expect(condition('Ready')).toBe('False Progressing');
    const counts = { observedGeneration: 9, replicas: 1, readyReplicas: 1, updatedReplicas: 1 };
    await rig.put(MODULE_DEPLOYMENTS, { ...workload(), status: counts } as never);
    expect(condition('Ready')).toBe('True Released');
    expect(rig.events).toEqual(['Module Normal Released']);
  });

  it('writes nothing twice', async () => {
    await put();
    const written = [version(), (rig.all(MODULES)[0] as ModuleObject).metadata.resourceVersion];
    await publish({ id: 'other', image: NEXT });
    await rig.rest();
    expect([version(), (rig.all(MODULES)[0] as ModuleObject).metadata.resourceVersion]).toEqual(written);
  });

  it('takes the jar of a published release, and keeps what runs when an id is not published', async () => {
    await put({ release: { id: 'r2' } });
    expect([workload(), condition('Ready')]).toEqual([undefined, 'False ReleaseMissing']);
    await publish({ id: 'r1', image: JAR }, { id: 'r2', image: NEXT });
    expect([image(), condition('ReleaseFound')]).toEqual([NEXT, 'True Found']);
    await put({ release: { id: 'r3' }, deploy: { replicas: 2 } });
    expect([image(), workload()?.spec.replicas]).toEqual([NEXT, 2]);
    expect([status()?.release?.id, condition('ReleaseFound')]).toEqual(['r2', 'False NotPublished']);
    expect(rig.events.filter((event) => event.endsWith('ReleaseMissing'))).toHaveLength(2);
  });

  it('has no Pods without a release, and a Service only with ports', async () => {
    await put({ ports: [{ name: 'http', port: 8080 }] });
    const { release: _, ...spec } = (rig.all(MODULES)[0] as ModuleObject).spec;
    const { metadata } = rig.all(MODULES)[0] as ModuleObject;
    await rig.put(MODULES, { metadata: { ...metadata, generation: 9 }, spec } as never);
    expect([rig.all(MODULE_DEPLOYMENTS), rig.all(SERVICES).length]).toEqual([[], 1]);
    expect(condition('Ready')).toBe('False NoRelease');
    await rig.put(MODULES, { metadata: { ...metadata, generation: 10 }, spec: { ...spec, ports: [] } } as never);
    expect(rig.all(SERVICES)).toEqual([]);
  });
});

describe('the Pods of a Module that do not serve', () => {
  const labels = {
    'virtual-kubelet.koupleless.io/component': 'module',
    'platform.koupleless.io/app': 'shop',
    'module.koupleless.io/name': 'cart',
    'platform.koupleless.io/release': 'r1',
  };
  const pod = (name: string, status: object, more: object = {}, seconds = 5) => {
    const metadata = { name, namespace: 'default', labels, ...more };
    const spec = { nodeName: `vnode.${name}`, containers: [{ name: 'cart', image: JAR }] };
    return rig.put(PODS, { metadata, spec, status } as never, seconds);
  };
  const ready = { conditions: [{ type: 'Ready', status: 'True' }] };
  const failing = (message: string) => ({
    containerStatuses: [{ name: 'cart', state: { waiting: { reason: 'InstallFailed', message } } }],
  });
  const problems = () =>
    status()?.problems?.map(({ pod: name, node, release, state, message }) => [name, node, release, state, message]);

  it('are in its status with their base and the reason, those that fail first', async () => {
    await put();
    await pod('a', { conditions: [{ type: 'PodScheduled', status: 'True' }] });
    await pod('b', failing('no such jar'));
    await pod('c', ready);
    await pod('d', ready, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect(problems()).toEqual([
      ['b', 'vnode.b', 'r1', 'InstallFailed', 'no such jar'],
      ['a', 'vnode.a', 'r1', 'NotInitialized', undefined],
      ['d', 'vnode.d', 'r1', 'Terminating', undefined],
    ]);
    for (const name of ['a', 'b']) await pod(name, ready);
    await rig.remove(PODS, 'd');
    expect(problems()).toBeUndefined();
  });

  it('are ten at most, and written once in 5 s', async () => {
    await put();
    for (let index = 0; index < 12; index++) {
      const name = `pod-${10 + index}`;
      await pod(name, failing(`attempt ${index}`));
    }
    expect(problems()).toHaveLength(10);
    const versions = new Set<string | undefined>();
    for (let second = 0; second < 20; second++) {
      await pod('pod-10', failing(`after ${second} s`), {}, 1);
      versions.add((rig.all(MODULES)[0] as ModuleObject).metadata.resourceVersion);
    }
    expect([4, 5]).toContain(versions.size);
    await rig.rest();
    expect(problems()?.[0]?.[4]).toBe('after 19 s');
  });
});

describe('a composed workload', () => {
  it('is there again when somebody deletes it', async () => {
    await put();
    await rig.remove(MODULE_DEPLOYMENTS, 'shop-cart');
    expect(image()).toBe(JAR);
  });

  it.each<[string, (stored: KubeObject) => KubeObject]>([
    [
      'is gone',
      () => {
        throw new ApiError('GET', { status: 404, reason: 'NotFound' });
      },
    ],
    ['is being deleted', (stored) => ({ ...stored, metadata: { ...stored.metadata, deletionTimestamp: 'now' } })],
    ['is another one', (stored) => ({ ...stored, metadata: { ...stored.metadata, uid: 'another' } })],
  ])('is not there again when its Module %s, though the watch does not show that yet', async (_, change) => {
    await put({ ports: [{ name: 'http', port: 8080 }] });
    rig.changeRead(MODULES, change);
    await rig.remove(MODULE_DEPLOYMENTS, 'shop-cart');
    await rig.remove(SERVICES, 'shop-cart');
    expect([workload(), rig.all(SERVICES)]).toEqual([undefined, []]);
  });

  it('gets a composed field back that somebody changes, and keeps the others', async () => {
    await put();
    await change((object) => {
      object.spec.replicas = 7;
      object.spec.paused = true;
    });
    expect([workload()?.spec.replicas, workload()?.spec.paused]).toEqual([1, true]);
    expect(rig.events.filter((event) => event.endsWith('Restored'))).toEqual(['Module Warning Restored']);
  });

  it('is left alone for a minute and then changed back when somebody changes it again and again', async () => {
    await put();
    const scale = (object: Workload): void => {
      object.spec.replicas = 7;
    };
    for (let times = 0; times < 4; times++) await change(scale);
    expect([workload()?.spec.replicas, condition('Contested')]).toEqual([7, 'True ChangedByOthers']);
    for (let times = 0; times < 13; times++) await rig.rest();
    expect([workload()?.spec.replicas, condition('Contested')]).toEqual([1, 'True ChangedByOthers']);
    await rig.rest(60);
    expect(condition('Contested')).toBeUndefined();
    expect(rig.events.filter((event) => event.endsWith('Contested'))).toHaveLength(1);
  });

  it('is not written again and again where a webhook changes what is written', async () => {
    rig.changeApplied(MODULE_DEPLOYMENTS, (object) => {
      const changed = structuredClone(object) as Workload;
      for (const container of changed.spec.template.spec.containers) container.image = `${container.image}?mirror`;
      return changed;
    });
    await put();
    const written = version();
    await rig.rest();
    expect([image(), version()]).toEqual([`${JAR}?mirror`, written]);
    await change((object) => {
      for (const container of object.spec.template.spec.containers) container.image = 'file:///evil.jar';
    });
    expect(image()).toBe(`${JAR}?mirror`);
    await put({ release: { id: 'r2', image: NEXT } });
    expect(image()).toBe(`${NEXT}?mirror`);
  });

  it('is somebody else’s where the name is taken', async () => {
    await rig.put(MODULE_DEPLOYMENTS, { metadata: { name: 'shop-cart', namespace: 'default' }, spec: {} } as never);
    await put();
    expect([workload()?.spec, condition('Ready')]).toEqual([{}, 'False NameTaken']);
    await rig.remove(MODULE_DEPLOYMENTS, 'shop-cart');
    for (let times = 0; times < 7; times++) await rig.rest();
    expect(image()).toBe(JAR);
  });

  it('waits for the right to write it, and says which', async () => {
    let isForbidden = true;
    rig.changeApplied(MODULE_DEPLOYMENTS, (object) => {
      if (isForbidden) throw new ApiError('no', { status: 403, reason: 'Forbidden' });
      return object;
    });
    await put();
    expect(condition('Ready')).toBe('False NotPermitted');
    expect(status()?.conditions[0]?.message).toContain('bind the ClusterRole module-platform-catalog');
    isForbidden = false;
    for (let times = 0; times < 7; times++) await rig.rest();
    expect(image()).toBe(JAR);
  });
});

describe('the history of a Module', () => {
  const history = () => (status()?.history ?? []).map(({ revision, id }) => `${revision} ${id}`);
  const release = () => (rig.all(MODULES)[0] as ModuleObject).spec.release;

  /** Changes the specification as `kubectl patch` does. */
  async function patch(change: object): Promise<void> {
    const before = rig.all(MODULES)[0] as ModuleObject;
    const metadata = { ...before.metadata, generation: (before.metadata.generation ?? 0) + 1 };
    await rig.put(MODULES, { ...before, metadata, spec: { ...before.spec, ...change } } as never);
  }

  it('has each release that was in force once, the newest first, and ten at most', async () => {
    await put();
    await patch({ release: { id: 'r2', image: NEXT } });
    await patch({ release: { id: 'r1', image: JAR } });
    expect(history()).toEqual(['3 r1', '2 r2']);
    for (let id = 3; id < 14; id++) await patch({ release: { id: `r${id}`, image: NEXT } });
    expect(history()).toHaveLength(10);
    expect(history()[0]).toBe('14 r13');
  });

  it('does not have a release that is not published', async () => {
    await put();
    await patch({ release: { id: 'r9' } });
    expect(history()).toEqual(['1 r1']);
  });

  it.each([
    [{}, 'r2'],
    [{ revision: 0 }, 'r2'],
    [{ revision: 1 }, 'r1'],
  ])('is where rollbackTo %j finds release %s', async (rollbackTo, id) => {
    await publish({ id: 'r1', image: JAR }, { id: 'r2', image: NEXT });
    await put({ release: { id: 'r1' } });
    await patch({ release: { id: 'r2' } });
    await patch({ release: { id: 'r3', image: 'https://jars.example.com/cart-3.0.0-ark-biz.jar' } });
    await patch({ rollbackTo });
    expect([release(), (rig.all(MODULES)[0] as ModuleObject).spec.rollbackTo]).toEqual([{ id }, undefined]);
    expect(status()?.release?.id).toBe(id);
    expect(rig.events).toContain('Module Normal RolledBack');
  });

  it('restores the jar of a release whose id has another one now', async () => {
    await publish({ id: 'r1', image: JAR });
    await put({ release: { id: 'r1' } });
    await patch({ release: { id: 'r2', image: NEXT } });
    await publish({ id: 'r1', image: 'https://jars.example.com/cart-1.0.1-ark-biz.jar' });
    await patch({ rollbackTo: {} });
    expect(release()).toMatchObject({ id: 'r1', image: JAR });
    expect(image()).toBe(JAR);
  });

  it('says where there is nothing to go back to, and goes on', async () => {
    await put();
    await patch({ rollbackTo: { revision: 7 } });
    expect([release()?.id, (rig.all(MODULES)[0] as ModuleObject).spec.rollbackTo]).toEqual(['r1', undefined]);
    expect(rig.events).toContain('Module Warning RollbackFailed');
  });

  it.each([false, true])('survives a rollback whose writes get no answer: %s', async (isDone) => {
    await put();
    await patch({ release: { id: 'r2', image: NEXT } });
    rig.loseNextAnswer(isDone);
    await patch({ rollbackTo: {} });
    expect([release()?.id, image(), history()]).toEqual(['r1', JAR, ['3 r1', '2 r2']]);
  });
});
