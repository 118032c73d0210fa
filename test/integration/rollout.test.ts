import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { refusal } from '../support/admission.ts';
import { eventually } from '../support/eventually.ts';
import { endpointsOf, eventsOf, find, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import {
  moduleDeployment,
  moduleDeploymentPath,
  PodSpectator,
  type RolloutManifest,
  rolloutOf,
  statusOf,
} from '../support/rollouts.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/moduledeployments.platform.koupleless.io';
const IDENTITIES = ['base-1', 'base-2', 'base-3'];
const BASES = IDENTITIES.length;

let world: World;
let fleet: Fleet;
let platform: Platform;
let controller: ControllerProcess;
let seen: PodSpectator;

async function apply(manifest: RolloutManifest = {}): Promise<void> {
  await world.controlPlane.apply(moduleDeployment(manifest) as KubeObject);
}

/** Applied, and rolled out whole. */
async function settled(manifest: RolloutManifest = {}): Promise<void> {
  await apply(manifest);
  const count = manifest.replicas ?? BASES;
  await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([count, count, count, 'RolloutComplete']));
  await eventually(() => expect(seen.available).toHaveLength(count));
  seen.reset();
}

async function reasons(): Promise<string[]> {
  return (await eventsOf(world.admin, 'ModuleDeployment', 'shop')).map(({ reason }) => reason);
}

function basesOf(all: readonly KubeObject[]): unknown[] {
  return all.map(({ spec }) => spec.nodeName).sort();
}

function versionsOf(all: readonly KubeObject[]): unknown[] {
  return all.map(({ metadata }) => metadata.labels?.version).sort();
}

/** Looks at every base whenever a command ends: which calls of the module would have failed? */
function callAll(): () => string[] {
  const failures: string[] = [];
  const stop = fleet.history.subscribe(({ command, outcome }) => {
    for (const identity of IDENTITIES) {
      const modules = fleet.base(identity).modules();
      const serves = modules.some(({ bizName, state }) => bizName === 'shop' && state === 'ACTIVATED');
      if (!serves) failures.push(`${identity} after ${command} ${outcome}`);
    }
  });
  return () => {
    stop();
    return failures;
  };
}

async function startPlatform(): Promise<ControllerProcess> {
  const started = await platform.start(`platform-${Date.now()}`, 'rollout');
  await started.line(({ msg }) => msg === 'started leading');
  return started;
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  await world.startController();
  fleet = await world.startFleet({ count: BASES, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  controller = await startPlatform();
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

beforeEach(async () => {
  seen = await PodSpectator.start(world.admin, 'app=shop');
});

afterEach(async () => {
  seen.stop();
  await world.admin.delete(moduleDeploymentPath()).catch(() => {});
  await eventually(async () => expect(await pods(world.admin, 'app=shop')).toEqual([]));
});

describe('ModuleDeployment', () => {
  it('A-002-1: its CRD is made again when somebody has deleted it', async () => {
    await world.admin.delete(CRD);
    await eventually(async () => expect(await find(world.admin, CRD)).toBeUndefined());
    await controller.stop('SIGKILL');
    controller = await startPlatform();
    const crd = await world.admin.get(CRD);
    expect(crd.status.conditions).toContainEqual(expect.objectContaining({ type: 'Established', status: 'True' }));
  });

  it('A-002-2: creates its Pods, and reports what it did', async () => {
    await settled();
    const { revision, conditions, unavailableReplicas, observedGeneration } = await statusOf(world.admin);
    expect({ revision, unavailableReplicas, observedGeneration }).toEqual({
      revision: 1,
      unavailableReplicas: 0,
      observedGeneration: 1,
    });
    expect(conditions.map(({ type, status }) => `${type}=${status}`)).toEqual([
      'Available=True',
      'Progressing=True',
      'Ready=True',
    ]);
    await eventually(async () => {
      expect((await reasons()).sort()).toEqual([
        'NewRevision',
        'RolloutComplete',
        'SuccessfulCreate',
        'SuccessfulCreate',
        'SuccessfulCreate',
      ]);
    });
    expect(basesOf(seen.available)).toEqual(IDENTITIES.map((identity) => `vnode.${identity}`));
  });

  it('A-002-3: never has more Pods than replicas, however often its controller starts again', async () => {
    fleet.setFault({ failure: 'java.io.FileNotFoundException: no such jar' });
    await apply();
    await eventually(() => expect(seen.live).toHaveLength(3));
    for (let restart = 0; restart < 20; restart++) {
      expect(await controller.stop()).toBe(0);
      controller = await startPlatform();
    }
    expect(seen.names.size).toBe(3);
    // Deleted and applied again at once: the Pods of the former one do not count.
    await world.admin.delete(moduleDeploymentPath());
    fleet.clearFaults();
    await settled();
    expect(seen.names.size).toBe(6);
  });

  it('A-002-4: replaces a Pod that somebody deletes', async () => {
    await settled();
    const [first] = seen.available;
    await world.admin.delete(`/api/v1/namespaces/default/pods/${first?.metadata.name}`);
    await eventually(() => expect(seen.leastServed).toBe(2));
    await eventually(() => expect(seen.available).toHaveLength(3));
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 3, 3, 'RolloutComplete']));
  });

  it('A-002-5: an update replaces each Pod on its own base, and at no time one is missing', async () => {
    await settled();
    const placeOf = new Map(seen.available.map(({ metadata, spec }) => [metadata.uid, spec.nodeName]));
    const failures = callAll();
    await apply({ version: '2.0.0' });
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 3, 3, 'RolloutComplete']));
    expect(failures()).toEqual([]);
    await eventually(() => expect(versionsOf(seen.live)).toEqual(['2.0.0', '2.0.0', '2.0.0']));
    expect([seen.leastServed, seen.mostLive]).toEqual([3, 4]);
    for (const { metadata, spec } of seen.live) {
      const replaced = metadata.annotations?.['platform.koupleless.io/replaces'];
      expect(placeOf.get(replaced)).toBe(spec.nodeName);
    }
    expect((await statusOf(world.admin)).revision).toBe(2);
    await eventually(async () =>
      expect(await reasons()).toEqual(expect.arrayContaining(['RolloutStarted', 'PodReplaced', 'RolloutComplete'])),
    );
  });

  it('A-002-5: a change of a variable alone rolls too, one base at a time; a change of replicas is no revision', async () => {
    await settled();
    await apply({ env: { MODE: 'fast' } });
    await eventually(async () => expect((await statusOf(world.admin)).revision).toBe(2));
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 3, 3, 'RolloutComplete']));
    expect(seen.leastServed).toBe(2);
    await apply({ env: { MODE: 'fast' }, replicas: 2 });
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([2, 2, 2, 'RolloutComplete']));
    expect((await statusOf(world.admin)).revision).toBe(2);
  });

  it('A-002-6: scales through its scale subresource, and with a new version at once', async () => {
    await settled({ replicas: 2 });
    await world.admin.mergePatch(`${moduleDeploymentPath()}/scale`, { spec: { replicas: 3 } });
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 3, 3, 'RolloutComplete']));
    await apply({ version: '2.0.0', replicas: 1 });
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([1, 1, 1, 'RolloutComplete']));
    await eventually(() => expect(versionsOf(seen.live)).toEqual(['2.0.0']));
    expect(seen.leastServed).toBeGreaterThanOrEqual(1);
  });

  it('A-002-7 and A-002-8: a version that fails stops the rollout; a rollback brings the former one back', async () => {
    const spec = { progressDeadlineSeconds: 5 };
    await settled({ spec });
    const kept = seen.available.map(({ metadata }) => metadata.name).sort();
    fleet.setFault({ bizVersion: '2.0.0', failure: 'java.io.FileNotFoundException: no such jar' });
    await apply({ version: '2.0.0', spec });
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([4, 1, 3, 'ProgressDeadlineExceeded']));
    const { conditions } = await statusOf(world.admin);
    expect(conditions.find(({ type }) => type === 'Progressing')?.status).toBe('False');
    expect(seen.available.map(({ metadata }) => metadata.name).sort()).toEqual(kept);
    await eventually(async () => expect(await reasons()).toContain('ProgressDeadlineExceeded'));

    await world.admin.mergePatch(moduleDeploymentPath(), { spec: { rollbackTo: { revision: 0 } } });
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 3, 3, 'RolloutComplete']));
    const { spec: after } = await world.admin.get(moduleDeploymentPath());
    expect(after.rollbackTo).toBeUndefined();
    expect(after.template.metadata.labels.version).toBe('1.0.0');
    expect((await statusOf(world.admin)).revision).toBe(3);
    expect(seen.available.map(({ metadata }) => metadata.name).sort()).toEqual(kept);
    await eventually(async () => expect(await reasons()).toContain('RollbackDone'));
    fleet.clearFaults();

    await world.admin.mergePatch(moduleDeploymentPath(), { spec: { rollbackTo: { revision: 99 } } });
    await eventually(async () => expect(await reasons()).toContain('RollbackRevisionNotFound'));
  });

  it('A-002-9: a rollout goes on where a killed controller has left it, and no base is without the module', async () => {
    await settled();
    const failures = callAll();
    await apply({ version: '2.0.0' });
    await eventually(() => expect(seen.names.size).toBeGreaterThan(3));
    await controller.stop('SIGKILL');
    controller = await startPlatform();
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 3, 3, 'RolloutComplete']));
    expect(versionsOf(seen.live)).toEqual(['2.0.0', '2.0.0', '2.0.0']);
    expect(failures()).toEqual([]);
    expect([seen.leastServed, seen.mostLive]).toEqual([3, 4]);
  });

  it('A-002-10: in batches it waits for a confirmation, each time', async () => {
    const spec = { strategy: { type: 'Batch', batch: { count: 3, useBeta: true, needConfirm: true } } };
    await settled({ spec });
    await apply({ version: '2.0.0', spec });
    const annotate = (batch: string) =>
      world.admin.mergePatch(moduleDeploymentPath(), {
        metadata: { annotations: { 'platform.koupleless.io/confirm-batch': batch } },
      });
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 1, 3, 'WaitingConfirm']));
    expect((await statusOf(world.admin)).batch).toMatchObject({ current: 1, total: 3, waitingConfirm: true });
    await annotate('1');
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 2, 3, 'WaitingConfirm']));
    await annotate('2');
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 3, 3, 'RolloutComplete']));
    expect(seen.leastServed).toBe(3);
    // What was confirmed was that rollout.
    await apply({ version: '3.0.0', spec });
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 1, 3, 'WaitingConfirm']));
    const { annotations = {} } = (await world.admin.get(moduleDeploymentPath())).metadata;
    expect(annotations).not.toHaveProperty(['platform.koupleless.io/confirm-batch']);
  });

  it('A-002-11: goes with its Pods, or leaves them to the next one of its name', async () => {
    await settled();
    await world.admin.delete(moduleDeploymentPath(), { propagationPolicy: 'Orphan' });
    await eventually(async () => expect(await find(world.admin, moduleDeploymentPath())).toBeUndefined());
    const orphans = (await pods(world.admin, 'app=shop')).map(({ metadata }) => metadata.name).sort();
    expect(orphans).toHaveLength(3);
    await settled();
    expect((await pods(world.admin, 'app=shop')).map(({ metadata }) => metadata.name).sort()).toEqual(orphans);
    await world.admin.delete(moduleDeploymentPath());
    await eventually(() => expect(seen.live).toEqual([]));
  });

  it('A-002-12: a Service sends to its Ready Pods before, during and after a rollout', async () => {
    const service = { metadata: { name: 'shop', namespace: 'default' }, apiVersion: 'v1', kind: 'Service' };
    await world.controlPlane.apply({ ...service, spec: { selector: { app: 'shop' }, ports: [{ port: 80 }] } });
    const spec = { strategy: { type: 'Batch', batch: { count: 3, needConfirm: true } } };
    const untilSame = () =>
      eventually(async () => {
        const names = (await endpointsOf(world.admin, 'shop')).map((line) => line.split(' ')[0]);
        expect(names).toEqual(seen.available.map(({ metadata }) => metadata.name).sort());
        expect(names).toHaveLength(3);
      });
    await settled({ spec });
    await untilSame();
    await apply({ version: '2.0.0', spec });
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 1, 3, 'WaitingConfirm']));
    await untilSame();
    expect(versionsOf(seen.available)).toEqual(['1.0.0', '1.0.0', '2.0.0']);
    await apply({ version: '2.0.0' });
    await world.admin.mergePatch(moduleDeploymentPath(), { spec: { strategy: null } });
    await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 3, 3, 'RolloutComplete']));
    await untilSame();
  });

  it('says which field of a manifest is wrong, and what to write', async () => {
    const refused = async (change: (manifest: ReturnType<typeof moduleDeployment>) => void): Promise<string> => {
      const manifest = moduleDeployment();
      change(manifest);
      return refusal(world, manifest);
    };
    expect(await refused(({ spec }) => Object.assign(spec.template.metadata, { labels: { app: 'shop' } }))).toContain(
      'template.metadata.labels needs virtual-kubelet.koupleless.io/component: module',
    );
    expect(await refused(({ spec }) => Object.assign(spec.selector.matchLabels, { app: 'other' }))).toContain(
      'template.metadata.labels must have all labels of selector.matchLabels',
    );
    expect(
      await refused(({ spec }) => Object.assign(spec.template.spec.containers[0] ?? {}, { image: 'nginx:1' })),
    ).toContain('image must be the address of a jar');
    const none = { maxSurge: 0, maxUnavailable: '0%' };
    expect(await refused(({ spec }) => Object.assign(spec, { strategy: { rollingUpdate: none } }))).toContain(
      'maxSurge and maxUnavailable cannot both be 0',
    );
    await apply();
    expect(
      await refused(({ spec }) => {
        Object.assign(spec.selector.matchLabels, { version: '1.0.0' });
      }),
    ).toContain('selector cannot be changed');
  });
});
