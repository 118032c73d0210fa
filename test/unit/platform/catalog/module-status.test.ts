import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MODULE_DEPLOYMENTS } from '../../../../src/kinds/workload-kinds.ts';
import type { KubeObject } from '../../../../src/kube/objects.ts';
import { CATALOG } from '../../../../src/platform/catalog/catalog.ts';
import { MODULES, type ModuleObject } from '../../../../src/platform/catalog/module/module.ts';
import { MODULE_RELEASES } from '../../../../src/platform/catalog/release/module-release.ts';
import { DEFINITIONS } from '../../../manifests/definitions.ts';
import { PlatformRig } from '../../../support/platform-rig.ts';

const jar = (version: string): string => `https://jars.example.com/cart-${version}.0.0-ark-biz.jar`;
const KNOWN = DEFINITIONS.map(({ name }) => name);
const NAME = 'shop-cart';

// biome-ignore lint/suspicious/noExplicitAny: any field of it changes
type Any = any;

let rig: PlatformRig;
/** Times of the clock at which the status was written by the controller. */
let writes: number[];

beforeEach(async () => {
  rig = new PlatformRig(CATALOG, KNOWN);
  await rig.start();
  writes = [];
  rig.onWrite(MODULES, () => void writes.push(rig.clock.now()));
});

afterEach(() => rig.stop());

const module = () => rig.all(MODULES)[0] as ModuleObject;
const workload = (): Any => rig.all(MODULE_DEPLOYMENTS)[0];
const released = () => rig.events.filter((event) => event === 'Module Normal Released').length;
const ready = () => module().status?.conditions.find(({ type }) => type === 'Ready');

function withoutTimes(status: Any): Any {
  return JSON.parse(JSON.stringify(status, (key, value) => (/time$/i.test(key) ? undefined : value)));
}

async function create(spec: object = {}): Promise<void> {
  const full = { app: 'shop', module: 'cart', base: { name: 'base' }, release: { id: 'r1', image: jar('1') }, ...spec };
  await rig.put(MODULES, { metadata: { name: NAME, namespace: 'default', generation: 1 }, spec: full } as never);
}

/** Changes the specification as `kubectl patch` does. */
async function patch(change: object): Promise<void> {
  const { metadata, spec, ...rest } = module();
  const next = { ...metadata, generation: (metadata.generation ?? 0) + 1 };
  await rig.put(MODULES, { ...rest, metadata: next, spec: { ...spec, ...change } } as never);
}

/** Writes the status as `kubectl edit --subresource=status` does. */
async function edit(change: object, seconds?: number): Promise<void> {
  const object = structuredClone(module());
  await rig.put(MODULES, { ...object, status: { ...object.status, ...change } } as never, seconds);
}

const counts = (ready: number, seconds: number) => {
  const status = { observedGeneration: 99, replicas: 3, readyReplicas: ready, updatedReplicas: 3 };
  return rig.put(MODULE_DEPLOYMENTS, { ...workload(), status } as KubeObject, seconds);
};

describe('a status that somebody else writes', () => {
  it.each<[string, object]>([
    ['its counts', { readyReplicas: 77 }],
    ['its conditions', { conditions: [] }],
    ['its release', { release: undefined }],
  ])('is mended at once: %s, by one write', async (_, change) => {
    await create();
    const before = structuredClone(module().status);
    writes = [];
    await edit(change, 2);
    expect(withoutTimes(module().status)).toEqual(withoutTimes(before));
    await rig.rest(60);
    expect(writes).toHaveLength(1);
  });

  it('is written once a second at most where it is written again and again', async () => {
    await create();
    writes = [];
    for (let times = 0; times < 50; times++) {
      await edit({ conditions: [] }, 0);
      if (times % 10 === 9) await rig.rest(1);
    }
    expect(writes.length).toBeLessThanOrEqual(6);
    await rig.rest();
    expect(ready()?.reason).toBe('Progressing');
  });

  it('costs no reconcile where it is the controller itself', async () => {
    await create();
    const reconciles = await rig.reconcilesOf('catalog');
    await patch({ release: { id: 'r2', image: jar('2') } });
    expect(module().status?.release?.id).toBe('r2');
    // That of the Module and that of the workload that was written for it.
    expect((await rig.reconcilesOf('catalog')) - reconciles).toBe(2);
  });
});

describe('the counts of a workload that change all the time', () => {
  it('are written once a second at most, the first and the last one too', async () => {
    await create({ deploy: { replicas: 3 } });
    await counts(0, 5);
    writes = [];
    for (let times = 0; times < 100; times++) {
      await counts(times % 2 === 0 ? 1 : 2, 0);
      if (times === 0) expect(module().status?.readyReplicas).toBe(1);
      if (times % 10 === 9) await rig.rest(1);
    }
    expect([10, 11]).toContain(writes.length);
    await counts(0, 2);
    expect(module().status?.readyReplicas).toBe(0);
  });

  it('do not hold up a condition', async () => {
    await create({ deploy: { replicas: 3 } });
    await counts(1, 5);
    await counts(2, 0);
    await counts(3, 0);
    expect(ready()?.reason).toBe('Released');
  });
});

describe('the write of a status that gets no answer', () => {
  it.each([false, true])('loses no event, and records it once: it has happened: %s', async (isDone) => {
    await create();
    expect(released()).toBe(1);
    rig.loseNextAnswer(isDone, MODULES);
    await patch({ release: { id: 'r2', image: jar('2') } });
    expect([module().status?.release?.id, released()]).toEqual(['r2', 2]);
    await rig.rest(60);
    expect(released()).toBe(2);
  });
});

describe('a fault in the composition', () => {
  const publish = (baseVersions: string[]) =>
    rig.put(MODULE_RELEASES, {
      metadata: { name: NAME, namespace: 'default' },
      spec: {
        releases: [
          { id: 'r1', image: jar('1'), baseVersions: ['1.0'] },
          { id: 'r2', image: jar('2'), baseVersions },
        ],
      },
    } as never);
  const base = { name: 'base', versions: ['1.0'] };

  it('of the release that is asked for does not hold up the copies, the strategy and the arguments', async () => {
    await publish(['9.9']);
    await create({ base, release: { id: 'r1' } });
    await patch({ release: { id: 'r2' } });
    const strategy = { type: 'Recreate' };
    await patch({ deploy: { replicas: 4, strategy }, args: ['--a'] });
    expect(workload().spec).toMatchObject({ replicas: 4, strategy });
    expect(workload().spec.template.spec.containers[0]).toMatchObject({ image: jar('1'), args: ['--a'] });
    expect([ready()?.reason, module().status?.release?.id, module().status?.history?.length]).toEqual([
      'NotComposable',
      'r1',
      1,
    ]);
    expect(ready()?.message).toContain('release r1 runs on');
    await publish(['1.0']);
    expect([workload().spec.replicas, workload().spec.template.spec.containers[0].image]).toEqual([4, jar('2')]);
  });

  it('of the Module itself holds up all of it, and the condition says so', async () => {
    await publish(['1.0']);
    await create({ base, release: { id: 'r1' } });
    const before = structuredClone(workload().spec);
    await patch({ base: { name: 'base', versions: ['7'] }, deploy: { replicas: 4 } });
    expect(workload().spec).toEqual(before);
    expect(ready()?.message).toContain('the workload stays as it is, its replicas and its strategy too');
  });
});
