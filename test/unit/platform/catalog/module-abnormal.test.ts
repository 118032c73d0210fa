import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ControllerError } from '../../../../src/errors.ts';
import { MODULE_DEPLOYMENTS } from '../../../../src/kinds/workload-kinds.ts';
import type { KubeObject } from '../../../../src/kube/objects.ts';
import { type ResourceKind, SERVICES } from '../../../../src/kube/resource.ts';
import { ApiError } from '../../../../src/kube/transport/api-error.ts';
import { CATALOG } from '../../../../src/platform/catalog/catalog.ts';
import { MODULES, type ModuleObject } from '../../../../src/platform/catalog/module/module.ts';
import { rollBack } from '../../../../src/platform/catalog/module/module-rollback.ts';
import { MODULE_RELEASES, type ModuleReleaseSpec } from '../../../../src/platform/catalog/release/module-release.ts';
import { DEFINITIONS } from '../../../manifests/definitions.ts';
import { PlatformRig } from '../../../support/platform-rig.ts';

const jar = (version: string): string => `https://jars.example.com/cart-${version}.0.0-ark-biz.jar`;
const SHA = 'a'.repeat(64);
const REFUSED = new ApiError('PATCH', { status: 422, reason: 'Invalid' });
const KNOWN = DEFINITIONS.map(({ name }) => name);

interface Workload extends KubeObject {
  spec: { template: { metadata: KubeObject['metadata']; spec: { containers: { image: string }[] } } };
}

let rig: PlatformRig;

beforeEach(async () => {
  rig = new PlatformRig(CATALOG, KNOWN);
  await rig.start();
});

afterEach(() => rig.stop());

const module = () => rig.all(MODULES)[0] as ModuleObject;
const workload = () => rig.all(MODULE_DEPLOYMENTS)[0] as Workload | undefined;
const image = () => workload()?.spec.template.spec.containers[0]?.image;
const history = () => (module().status?.history ?? []).map(({ revision, id }) => `${revision} ${id}`);
const released = () => rig.events.filter((event) => event === 'Module Normal Released').length;

function ready(): string | undefined {
  const found = module().status?.conditions.find(({ type }) => type === 'Ready');
  return found && `${found.status} ${found.reason}: ${found.message}`;
}

async function create(spec: object = {}, annotations: Record<string, string> = {}): Promise<void> {
  const full = { app: 'shop', module: 'cart', base: { name: 'base' }, release: { id: 'r1', image: jar('1') }, ...spec };
  const metadata = { name: 'shop-cart', namespace: 'default', generation: 1, annotations };
  await rig.put(MODULES, { metadata, spec: full } as never);
}

/** Changes the specification as `kubectl patch` does. */
async function patch(change: object): Promise<void> {
  const { metadata, spec, ...rest } = module();
  const next = { ...metadata, generation: (metadata.generation ?? 0) + 1 };
  await rig.put(MODULES, { ...rest, metadata: next, spec: { ...spec, ...change } } as never);
}

async function publish(spec: ModuleReleaseSpec): Promise<void> {
  const metadata = { ...rig.all(MODULE_RELEASES)[0]?.metadata, name: 'shop-cart', namespace: 'default' };
  await rig.put(MODULE_RELEASES, { metadata, spec } as never);
}

function refuse(kind: ResourceKind, isMeant: (object: Workload) => boolean = () => true, error: Error = REFUSED): void {
  rig.changeApplied(kind, (object) => {
    if (isMeant(object as Workload)) throw error;
    return object;
  });
}

const isOf = (version: string) => (object: Workload) => object.spec.template.spec.containers[0]?.image === jar(version);

describe('what was in force runs on as it is', () => {
  const r1 = { id: 'r1', image: jar('1'), sha256: SHA, baseVersions: ['1.0'] };

  it.each<[string, () => Promise<void>]>([
    ['when nobody has published the id that is asked for', () => patch({ release: { id: 'r9' } })],
    ['when the ModuleRelease is lost', () => rig.remove(MODULE_RELEASES, 'shop-cart')],
    [
      'when the ModuleRelease is replaced by force',
      async () => {
        await rig.remove(MODULE_RELEASES, 'shop-cart');
        await publish({ releases: [r1] });
      },
    ],
  ])('%s: with its digest and the bases that it fits', async (_, lose) => {
    await publish({ releases: [r1] });
    await create({ release: { id: 'r1' } });
    const before = structuredClone(workload()?.spec);
    await lose();
    expect(workload()?.spec).toEqual(before);
    expect(history()).toEqual(['1 r1']);
  });

  it.each<[string, () => Promise<void>]>([
    ['its default is removed', () => publish({ releases: [r1] })],
    ['the ModuleRelease is lost', () => rig.remove(MODULE_RELEASES, 'shop-cart')],
  ])('when it came by auto-release, and %s', async (_, lose) => {
    await publish({ default: 'r1', releases: [r1] });
    await create({ release: undefined }, { 'platform.koupleless.io/auto-release': 'true' });
    const before = structuredClone(workload());
    expect(before?.metadata.uid).toBeDefined();
    await lose();
    expect(workload()?.metadata.uid).toBe(before?.metadata.uid);
    expect(workload()?.spec).toEqual(before?.spec);
  });

  it.each(['false', 'False', '0', 'no', ''])('and nothing comes by auto-release with the value "%s"', async (value) => {
    await publish({ default: 'r1', releases: [r1] });
    await create({ release: undefined }, { 'platform.koupleless.io/auto-release': value });
    expect(workload()).toBeUndefined();
  });
});

describe('a release that the API server refuses', () => {
  it('is not in force, is no release of the history, and no event says so', async () => {
    await create();
    refuse(MODULE_DEPLOYMENTS, isOf('2'));
    await patch({ release: { id: 'r2', image: jar('2') } });
    expect([image(), module().status?.release?.id, history(), released()]).toEqual([jar('1'), 'r1', ['1 r1'], 1]);
    expect(ready()).toMatch(/^False Refused/);
    await patch({ release: { id: 'r9' } });
    expect([image(), module().status?.release?.id]).toEqual([jar('1'), 'r1']);
  });

  it.each<[string, object, object?]>([
    ['is refused', { release: { id: 'r3', image: jar('3') } }],
    ['is not published', { release: { id: 'r3' } }],
    ['came in the same patch', { release: { id: 'r3', image: jar('4') }, rollbackTo: {} }],
    ['was a stop', { release: undefined }],
  ])(
    'is not the one that rollbackTo leaves: it goes to the newest that was in force. The newer one %s',
    async (_, change) => {
      await create();
      await patch({ release: { id: 'r2', image: jar('2') } });
      refuse(MODULE_DEPLOYMENTS, isOf('3'));
      await patch(change);
      if (!('rollbackTo' in change)) await patch({ rollbackTo: {} });
      expect([module().spec.release?.id, image()]).toEqual(['r2', jar('2')]);
    },
  );
});

describe('a Service', () => {
  it.each<[string, () => Promise<void>]>([
    [
      'whose name is taken',
      () => rig.put(SERVICES, { metadata: { name: 'shop-cart', namespace: 'default' }, spec: {} } as never),
    ],
    ['that is refused', async () => refuse(SERVICES)],
  ])('%s does not hold up releases and their history', async (_, spoil) => {
    await spoil();
    await create({ ports: [{ name: 'http', port: 80 }] });
    await patch({ release: { id: 'r2', image: jar('2') } });
    expect([image(), history()]).toEqual([jar('2'), ['2 r2', '1 r1']]);
    expect(ready()).toMatch(/^False (NameTaken|Refused)/);
    await patch({ rollbackTo: {} });
    expect(image()).toBe(jar('1'));
  });

  it('is written though the workload is refused', async () => {
    refuse(MODULE_DEPLOYMENTS);
    await create({ ports: [{ name: 'http', port: 80 }] });
    expect([workload(), rig.all(SERVICES).length]).toEqual([undefined, 1]);
  });
});

describe('a rollback', () => {
  it('restores the version that the Module gave', async () => {
    await publish({ releases: [{ id: 'r1', image: 'https://jars.example.com/odd.jar' }] });
    await create({ release: { id: 'r1', version: '1.5' } });
    await patch({ release: { id: 'r2', image: jar('2') } });
    await patch({ rollbackTo: {} });
    expect(module().spec.release).toMatchObject({ id: 'r1', version: '1.5' });
    expect(module().status?.release).toMatchObject({ id: 'r1', version: '1.5' });
  });

  it.each<[string, () => Promise<void>]>([
    ['is lost', () => rig.remove(MODULE_RELEASES, 'shop-cart')],
    ['has another jar under the id', () => publish({ releases: [{ id: 'r1', image: jar('9') }] })],
  ])('restores the versions of bases that the release fits, though its ModuleRelease %s', async (_, lose) => {
    await publish({ releases: [{ id: 'r1', image: jar('1'), baseVersions: ['1.0'] }] });
    await create({ release: { id: 'r1' } });
    const before = structuredClone(workload()?.spec);
    expect(JSON.stringify(before)).toContain('"values":["1.0"]');
    await patch({ release: { id: 'r2', image: jar('2') } });
    await lose();
    await patch({ rollbackTo: {} });
    expect(module().spec.release).toMatchObject({ id: 'r1', image: jar('1') });
    expect(workload()?.spec).toEqual(before);
    expect(module().status?.history?.[0]).toMatchObject({ revision: 3, id: 'r1', baseVersions: ['1.0'] });
  });

  it('has the versions of bases that the release fits now', async () => {
    await publish({ releases: [{ id: 'r1', image: jar('1'), baseVersions: ['1.0'] }] });
    await create({ release: { id: 'r1' } });
    await publish({ releases: [{ id: 'r1', image: jar('1'), baseVersions: ['1.0', '1.1'] }] });
    expect(module().status?.history).toMatchObject([{ revision: 1, id: 'r1', baseVersions: ['1.0', '1.1'] }]);
    await publish({ releases: [{ id: 'r1', image: jar('1') }] });
    expect(module().status?.history?.[0]).not.toHaveProperty('baseVersions');
    expect(history()).toEqual(['1 r1']);
  });

  it('says that the right is missing', async () => {
    await create();
    await patch({ release: { id: 'r2', image: jar('2') } });
    rig.refuse(MODULES, 'mergePatch', new ApiError('PATCH', { status: 403, reason: 'Forbidden' }));
    await patch({ rollbackTo: {} });
    expect(ready()).toMatch(/^False NotPermitted/);
    expect(rig.events).toContain('Module Warning NotComposed');
  });

  it('leaves a release that somebody publishes between its two writes', async () => {
    const revision = (number: number, id: string) => ({ revision: number, id, image: jar(String(number)), time: 't' });
    const stored = {
      namespace: 'default',
      name: 'shop-cart',
      uid: 'u',
      resourceVersion: '1',
      spec: { app: 'shop', module: 'cart', release: { id: 'r2', image: jar('2') }, rollbackTo: {} },
      status: { history: [revision(2, 'r2'), revision(1, 'r1')] },
    };
    const patches: KubeObject[] = [];
    const published = {
      metadata: { uid: 'u', resourceVersion: '3' },
      spec: { release: { id: 'r3' }, rollbackTo: { revision: 1 } },
    };
    const client = {
      fieldManager: 'platform-catalog',
      get: async () => published,
      mergePatch: async (_: unknown, change: KubeObject) => {
        patches.push(change);
        if (patches.length === 2) throw new ApiError('PATCH', { status: 409, reason: 'Conflict' });
        return { metadata: { resourceVersion: '2' } };
      },
    };
    const events: string[] = [];
    const report = (...event: string[]) => void events.push(event.slice(0, 2).join(' '));
    const findConfig = (): undefined => undefined;
    const options = { client: client as never, published: undefined, findConfig, permit: () => true, report };
    await rollBack(stored as never, options);
    expect(patches).toHaveLength(3);
    expect(patches[2]).toMatchObject({ metadata: { resourceVersion: '3' }, spec: { rollbackTo: null } });
    expect((patches[2] as unknown as { spec: object }).spec).not.toHaveProperty('release');
    expect(events).toEqual(['Normal RolledBack']);
  });
});

describe('a Module', () => {
  it('says so while the API server takes nothing, and no longer when it does', async () => {
    await create();
    let isAway = true;
    refuse(MODULE_DEPLOYMENTS, () => isAway, new ControllerError('Kube.ConnectionFailed', 'no answer'));
    await patch({ deploy: { replicas: 3 } });
    await rig.rest(30);
    expect(ready()).toMatch(/^False Unavailable: it is tried again: .*no answer/);
    isAway = false;
    await rig.rest(120);
    expect(ready()).toMatch(/^False Progressing/);
  });

  it('says which of its annotations are no counts', async () => {
    await create({}, { 'platform.koupleless.io/min-replicas': 'many' });
    expect(ready()).toContain('platform.koupleless.io/min-replicas');
  });

  it('that is created again waits for what its former one has made', async () => {
    const owner = {
      apiVersion: 'platform.koupleless.io/v1alpha1',
      kind: 'Module',
      name: 'shop-cart',
      uid: 'former',
      controller: true,
    };
    const metadata = { name: 'shop-cart', namespace: 'default', ownerReferences: [owner] };
    await rig.put(MODULE_DEPLOYMENTS, { metadata, spec: {} } as never);
    await create();
    expect(ready()).toMatch(/^False Deleting/);
    await rig.remove(MODULE_DEPLOYMENTS, 'shop-cart');
    await rig.rest(40);
    expect(image()).toBe(jar('1'));
  });
});

describe('a workload that gets the annotations of a former state, as by kubectl rollout undo', () => {
  it('is restored with an event, and contested when that goes on', async () => {
    await create();
    const first = structuredClone(workload()) as Workload;
    await patch({ release: { id: 'r2', image: jar('2') } });
    for (let time = 0; time < 5; time++) {
      const { metadata } = workload() as Workload;
      await rig.put(MODULE_DEPLOYMENTS, {
        ...first,
        metadata: { ...metadata, annotations: first.metadata.annotations },
      } as never);
    }
    expect(rig.events.filter((event) => event.endsWith('Restored'))).toHaveLength(3);
    expect(rig.events.filter((event) => event.endsWith('Contested'))).toHaveLength(1);
  });
});

describe('a release with the name of a property that every object has', () => {
  it.each(['constructor', 'toString', 'valueOf'])('%s is seen, written once, and removed as others are', async (id) => {
    await publish({ releases: [{ id: 'r1', image: jar('1') }] });
    await publish({
      releases: [
        { id: 'r1', image: jar('1') },
        { id, image: jar('2') },
      ],
    });
    const status = () => (rig.all(MODULE_RELEASES)[0] as KubeObject & { status: { firstSeen: object } }).status;
    expect(Object.keys(status().firstSeen)).toEqual(['r1', id]);
    const version = rig.all(MODULE_RELEASES)[0]?.metadata.resourceVersion;
    await rig.rest();
    expect(rig.all(MODULE_RELEASES)[0]?.metadata.resourceVersion).toBe(version);
    await publish({ releases: [{ id: 'r1', image: jar('1') }] });
    expect(Object.keys(status().firstSeen)).toEqual(['r1']);
  });
});

describe('a Module that follows the default', () => {
  it('goes back from it with the first rollbackTo', async () => {
    const publish = (id: string) =>
      rig.put(MODULE_RELEASES, {
        metadata: { name: 'shop-cart', namespace: 'default' },
        spec: { default: id, releases: ['1', '2'].map((one) => ({ id: `r${one}`, image: jar(one) })) },
      } as never);
    await publish('r1');
    await create({ release: undefined }, { 'platform.koupleless.io/auto-release': 'true' });
    await publish('r2');
    expect([image(), history()]).toEqual([jar('2'), ['2 r2', '1 r1']]);
    await patch({ rollbackTo: {} });
    expect([module().spec.release?.id, image()]).toEqual(['r1', jar('1')]);
  });
});

describe('a workload that its controller has not seen yet', () => {
  it('changes no status for two seconds, and is no longer waited for then', async () => {
    await create();
    const seen = { observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1 };
    const metadata = { ...workload()?.metadata, generation: 1 };
    await rig.put(MODULE_DEPLOYMENTS, { ...workload(), metadata, status: seen } as never);
    expect(ready()).toBe('True Released: 1 of 1 are Ready');
    const version = module().metadata.resourceVersion;
    const change = (generation: number, status: object, seconds: number) =>
      rig.put(MODULE_DEPLOYMENTS, { ...workload(), metadata: { ...metadata, generation }, status } as never, seconds);
    await change(2, { ...seen, readyReplicas: 0 }, 1);
    expect(module().metadata.resourceVersion).toBe(version);
    await change(2, { ...seen, observedGeneration: 2 }, 1);
    expect(module().metadata.resourceVersion).toBe(version);
    await change(3, { ...seen, readyReplicas: 0 }, 1);
    expect(module().metadata.resourceVersion).toBe(version);
    await rig.rest(2);
    expect(ready()).toMatch(/^False Progressing/);
  });
});

describe('a release that nobody has published', () => {
  it('is not Ready, although what was in force runs on', async () => {
    await create();
    const seen = { observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1 };
    await rig.put(MODULE_DEPLOYMENTS, { ...workload(), status: seen } as never);
    await patch({ release: { id: 'r9' } });
    expect([ready(), image()]).toEqual([
      'False ReleaseMissing: nobody has published release r9; release r1 runs on',
      jar('1'),
    ]);
  });
});
