import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MODULE_DEPLOYMENTS } from '../../../../src/kinds/workload-kinds.ts';
import { type ResourceKind, SERVICES } from '../../../../src/kube/resource.ts';
import { ApiError } from '../../../../src/kube/transport/api-error.ts';
import { CATALOG } from '../../../../src/platform/catalog/catalog.ts';
import { CATALOG_ANNOTATION, CATALOG_LABEL } from '../../../../src/platform/catalog/compose/compose.ts';
import { MODULES, type ModuleObject } from '../../../../src/platform/catalog/module/module.ts';
import { DEFINITIONS } from '../../../manifests/definitions.ts';
import { PlatformRig } from '../../../support/platform-rig.ts';

const jar = (version: string): string => `https://jars.example.com/cart-${version}.0.0-ark-biz.jar`;
const KNOWN = DEFINITIONS.map(({ name }) => name);
const NAME = 'shop-cart';
const PORTS = [{ name: 'http', port: 80 }];

// biome-ignore lint/suspicious/noExplicitAny: any field of it changes
type Any = any;

let rig: PlatformRig;

beforeEach(async () => {
  rig = new PlatformRig(CATALOG, KNOWN);
  await rig.start();
});

afterEach(() => rig.stop());

const module = () => rig.all(MODULES)[0] as ModuleObject;
const stored = (kind: ResourceKind): Any => rig.all(kind).find(({ metadata }) => metadata.name === NAME);
const workload = (): Any => stored(MODULE_DEPLOYMENTS);
const container = (): Any => workload().spec.template.spec.containers[0];
const eventsOf = (reason: string) => rig.events.filter((event) => event === `Module Warning ${reason}`).length;

function condition(type: string): string | undefined {
  const found = module().status?.conditions.find((one) => one.type === type);
  return found && `${found.status} ${found.reason}: ${found.message}`;
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

/** Writes a composed object as somebody else. */
async function change(kind: ResourceKind, by: (object: Any) => void, seconds?: number): Promise<void> {
  const object = structuredClone(stored(kind));
  by(object);
  await rig.put(kind, object, seconds);
}

/** A webhook changes whatever is written. */
function webhook(kind: ResourceKind, by: (object: Any, isPatch: boolean) => void): void {
  rig.changeApplied(kind, (object, isPatch) => {
    const changed = structuredClone(object);
    by(changed, isPatch);
    return changed;
  });
}

const unmark = ({ metadata }: Any): void => void delete metadata.labels[CATALOG_LABEL.composed];
const dropDigest = ({ metadata }: Any): void => void delete metadata.annotations[CATALOG_ANNOTATION.digest];
const disown = ({ metadata }: Any): void => {
  metadata.ownerReferences = [];
};

describe('a contest', () => {
  const scale = (object: Any): void => {
    object.spec.replicas = 7;
  };

  it('that goes on for an hour is one event, one condition, and a try every 15 min in the end', async () => {
    await create();
    const versions = new Set<string>();
    const conditions = new Set<string | undefined>();
    for (let second = 0; second < 3_600; second++) {
      if (workload().spec.replicas !== 7) {
        await change(MODULE_DEPLOYMENTS, scale, 0);
        versions.add(workload().metadata.resourceVersion);
      }
      await rig.rest(1);
      if (second > 10) conditions.add(condition('Contested')?.split(':')[0]);
    }
    expect([eventsOf('Contested'), [...conditions]]).toEqual([1, ['True ChangedByOthers']]);
    // Three that make the contest, and after pauses of 1, 2, 4, 8, 15 and 15 minutes.
    expect(versions.size).toBe(10);
    expect(condition('Contested')).toContain('15 min');
  });

  it('ends when nobody has changed anything for a minute', async () => {
    await create();
    for (let times = 0; times < 4; times++) await change(MODULE_DEPLOYMENTS, scale);
    expect(condition('Contested')).toMatch(/^True ChangedByOthers/);
    await rig.rest(70);
    expect([workload().spec.replicas, condition('Contested')?.split(' ')[0]]).toEqual([1, 'True']);
    await rig.rest(60);
    expect(condition('Contested')).toBeUndefined();
    await change(MODULE_DEPLOYMENTS, scale);
    expect(workload().spec.replicas).toBe(1);
  });
});

describe.each([
  ['workload', MODULE_DEPLOYMENTS],
  ['Service', SERVICES],
])('the mark of a %s', (_, kind) => {
  it('comes back with an event when somebody removes it, and counts as any other field', async () => {
    await create({ ports: PORTS });
    await change(kind, unmark);
    expect(stored(kind).metadata.labels[CATALOG_LABEL.composed]).toBe('Module');
    expect(eventsOf('Restored')).toBe(1);
    for (let times = 0; times < 3; times++) await change(kind, unmark);
    expect([eventsOf('Restored'), eventsOf('Contested')]).toEqual([3, 1]);
  });

  it('that a webhook drops starts no loop, and the Module says so and looks again', async () => {
    webhook(kind, unmark);
    await create({ ports: PORTS });
    expect(condition('Ready')).toMatch(/^False Unwatched: .*platform\.koupleless\.io\/composed-by/);
    expect([module().status?.release?.id, eventsOf('NotComposed'), eventsOf('Restored')]).toEqual(['r1', 1, 0]);
    const written = () => [stored(kind).metadata.resourceVersion, module().metadata.resourceVersion];
    const before = written();
    await rig.rest(120);
    expect(written()).toEqual(before);
    const spoil = (object: Any): void => {
      if (kind === SERVICES) object.spec.ports = [];
      else object.spec.replicas = 7;
    };
    const good = structuredClone(stored(kind).spec);
    await change(kind, spoil, 40);
    expect(stored(kind).spec).toEqual(good);
    await patch({ release: { id: 'r2', image: jar('2') } });
    expect([container().image, module().status?.release?.id]).toEqual([jar('2'), 'r2']);
    rig.changeApplied(kind, (object) => object);
    await rig.rest(330);
    expect(condition('Ready')).toMatch(/^False Progressing/);
  });
});

describe('what a webhook drops', () => {
  it.each<[string, (object: Any) => void, string]>([
    ['the digest', dropDigest, 'metadata.annotations.platform.koupleless.io/composed-digest'],
    [
      'a label of the Pods',
      ({ spec }) => void delete spec.template.metadata.labels[CATALOG_LABEL.release],
      'spec.template.metadata.labels.platform.koupleless.io/release',
    ],
  ])('%s: the Module says what is missing, and writes nothing twice', async (_, drop, field) => {
    let applied = 0;
    webhook(MODULE_DEPLOYMENTS, (object) => {
      applied++;
      drop(object);
    });
    await create();
    expect(condition('Altered')).toContain(field);
    const before = [workload().metadata.resourceVersion, module().metadata.resourceVersion, applied];
    for (let times = 0; times < 5; times++) {
      await rig.put(MODULE_DEPLOYMENTS, { ...workload(), status: { observedGeneration: times } });
    }
    expect(applied).toBe(before[2]);
    await patch({ release: { id: 'r2', image: jar('2') } });
    expect([container().image, eventsOf('Restored'), eventsOf('Altered')]).toEqual([jar('2'), 0, 1]);
    rig.changeApplied(MODULE_DEPLOYMENTS, (object) => object);
    await rig.rest(310);
    expect([condition('Altered'), eventsOf('Restored')]).toEqual([undefined, 0]);
  });
});

describe('a Module that is stopped', () => {
  it.each<[string, (object: Any) => void]>([
    ['has lost its owner', disown],
    ['has lost its mark', unmark],
  ])('deletes the workload and the Service, though each %s at the same time', async (_, spoil) => {
    await create({ ports: PORTS });
    for (const kind of [MODULE_DEPLOYMENTS, SERVICES]) {
      rig.changeApplied(kind, () => {
        throw new ApiError('PATCH', { status: 403, reason: 'Forbidden' });
      });
      await change(kind, spoil);
    }
    await patch({ release: undefined, ports: [] });
    expect([stored(MODULE_DEPLOYMENTS), stored(SERVICES)]).toEqual([undefined, undefined]);
  });

  it('deletes nothing that is somebody else’s', async () => {
    const foreign = { metadata: { name: NAME, namespace: 'default', labels: { [CATALOG_LABEL.composed]: 'Module' } } };
    await rig.put(MODULE_DEPLOYMENTS, { ...foreign, spec: {} } as never);
    await create({ release: undefined });
    expect(stored(MODULE_DEPLOYMENTS)).toBeDefined();
  });
});

describe('a field that somebody else owns too', () => {
  /** As server-side apply: what another manager owns stays when the Module drops it. A patch removes it. */
  const keep = (by: (object: Any) => void): void =>
    webhook(MODULE_DEPLOYMENTS, (object, isPatch) => {
      if (!isPatch) by(object);
    });

  it.each<[string, object, (object: Any) => void, string]>([
    [
      'args',
      { args: ['--a'] },
      ({ spec }) => {
        spec.template.spec.containers[0].args = ['--a'];
      },
      'args',
    ],
    [
      'ports',
      { ports: PORTS },
      ({ spec }) => {
        spec.template.spec.containers[0].ports = [{ name: 'http', containerPort: 80, protocol: 'TCP' }];
      },
      'ports',
    ],
  ])('goes when the Module drops it: %s', async (_, before, put, field) => {
    await create(before);
    expect(container()[field]).toBeDefined();
    keep(put);
    await patch({ args: undefined, ports: undefined });
    expect(container()[field]).toBeUndefined();
    expect(eventsOf('Restored')).toBe(0);
  });

  it('goes before what the API server would refuse beside it, such as a second port of a name', async () => {
    await create({ ports: PORTS });
    rig.changeApplied(MODULE_DEPLOYMENTS, (object, isPatch) => {
      const isThere = container().ports?.some(({ containerPort }: Any) => containerPort === 80);
      if (!isPatch && isThere) throw new ApiError('PATCH', { status: 422, reason: 'Invalid' });
      return object;
    });
    await patch({ ports: [{ name: 'http', port: 81 }] });
    expect(container().ports).toEqual([{ name: 'http', containerPort: 81, protocol: 'TCP' }]);
    expect(condition('Ready')).toMatch(/^False Progressing/);
  });

  it('goes when somebody adds it to a workload whose Module has none, with an event', async () => {
    await create();
    await change(MODULE_DEPLOYMENTS, ({ spec }) => {
      spec.template.spec.containers[0].args = ['--evil'];
    });
    expect([container().args, eventsOf('Restored')]).toEqual([undefined, 1]);
  });

  it('goes from the ports of a Service, and what is not the Module’s stays', async () => {
    await create({ ports: PORTS });
    await change(SERVICES, ({ spec, metadata }) => {
      spec.ports.push({ name: 'other', port: 81, targetPort: 81, protocol: 'TCP' });
      spec.publishNotReadyAddresses = true;
      metadata.labels.team = 'a';
    });
    const { spec, metadata } = stored(SERVICES);
    expect(spec.ports.map(({ name }: { name: string }) => name)).toEqual(['http']);
    expect([spec.publishNotReadyAddresses, metadata.labels.team]).toEqual([true, 'a']);
  });

  it('is left where a webhook adds it to whatever is written', async () => {
    let written = 0;
    webhook(MODULE_DEPLOYMENTS, ({ spec }) => {
      written++;
      spec.template.spec.containers[0].args = ['--agent'];
    });
    await create();
    expect([container().args, written]).toEqual([['--agent'], 2]);
    await rig.put(MODULE_DEPLOYMENTS, { ...workload(), status: { observedGeneration: 9 } });
    await rig.rest(60);
    expect([written, eventsOf('Restored')]).toEqual([2, 0]);
  });

  it.each<[string, (object: Any) => void]>([
    [
      'restartedAt',
      ({ spec }) => {
        spec.template.metadata.annotations = { restartedAt: 'now' };
      },
    ],
    ['a variable', ({ spec }) => void spec.template.spec.containers[0].env.push({ name: 'OTHER', value: '1' })],
    ['a container', ({ spec }) => void spec.template.spec.containers.push({ name: 'sidecar', args: ['--own'] })],
  ])('that is not of the Module stays: %s', async (_, add) => {
    await create();
    await change(MODULE_DEPLOYMENTS, add);
    const before = workload().spec;
    await rig.rest();
    expect([workload().spec, eventsOf('Restored')]).toEqual([before, 0]);
  });
});
