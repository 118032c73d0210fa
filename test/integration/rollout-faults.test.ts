import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { eventsOf, isSchedulable, nodes, pods } from '../support/observe.ts';
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
import { podPath, type World } from '../support/world.ts';

const BASES = 6;
const NEVER = { bizVersion: '2.0.0', failure: 'java.io.FileNotFoundException: no such jar' };
const STUCK = 'ProgressDeadlineExceeded';

let world: World;
let fleet: Fleet;
let platform: Platform;
let seen: PodSpectator;

async function apply(manifest: RolloutManifest = {}): Promise<void> {
  await world.controlPlane.apply(moduleDeployment(manifest) as KubeObject);
}

async function settled(manifest: RolloutManifest): Promise<void> {
  await apply(manifest);
  const { replicas } = manifest;
  await eventually(async () =>
    expect(await rolloutOf(world.admin)).toEqual([replicas, replicas, replicas, 'RolloutComplete']),
  );
  await eventually(() => expect(seen.available).toHaveLength(replicas ?? 0));
  seen.reset();
}

const edit = (spec: object) => world.admin.mergePatch(moduleDeploymentPath(), { spec });
const versionsOf = (all: readonly KubeObject[]) => all.map(({ metadata }) => metadata.labels?.version).sort();
const basesOf = (all: readonly KubeObject[]) => new Set(all.map(({ spec }) => spec.nodeName)).size;

async function conditions(): Promise<Record<string, string>> {
  const { conditions: all } = await statusOf(world.admin);
  return Object.fromEntries(all.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  await world.startController();
  fleet = await world.startFleet({ count: BASES, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  const controller = await platform.start('platform', 'rollout');
  await controller.line(({ msg }) => msg === 'started leading');
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
  fleet.clearFaults();
  await world.admin.delete(moduleDeploymentPath()).catch(() => {});
  await eventually(async () => expect(await pods(world.admin, 'app=shop')).toEqual([]));
});

describe('a version that is never installed', () => {
  const limits = { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } };

  it.each<[string, object]>([
    ['in a rolling update', { strategy: limits }],
    ['in batches', { strategy: { ...limits, type: 'Batch', batch: { count: 2 } } }],
    [
      'where the scheduler chooses the bases',
      { strategy: { rollingUpdate: { ...limits.rollingUpdate, placement: 'Any' } } },
    ],
    ['before the deadline', { strategy: limits, progressDeadlineSeconds: 600 }],
  ])('%s replaces no Pod of the former one, however many of these are lost', async (_what, more) => {
    const spec = { progressDeadlineSeconds: 2, ...more };
    await settled({ replicas: 4, spec });
    fleet.setFault(NEVER);
    await apply({ version: '2.0.0', replicas: 4, spec });
    const isStopped = spec.progressDeadlineSeconds === 2;
    await eventually(() => expect(versionsOf(seen.live)).toContain('2.0.0'));
    if (isStopped) await eventually(async () => expect((await rolloutOf(world.admin))[3]).toBe(STUCK));
    for (let lost = 0; lost < 4; lost++) {
      const [oldest] = seen.available;
      await world.admin.delete(podPath(oldest?.metadata.name ?? ''));
      await eventually(() =>
        expect(seen.live.map(({ metadata }) => metadata.name)).not.toContain(oldest?.metadata.name),
      );
      await eventually(() => expect(seen.available.length).toBeGreaterThanOrEqual(3));
      expect(new Set(versionsOf(seen.available))).toEqual(new Set(['1.0.0']));
    }
    if (isStopped) expect((await rolloutOf(world.admin))[3]).toBe(STUCK);
    expect(seen.mostLive).toBeLessThanOrEqual(5);
  });

  it('is Stalled for kubectl wait and GitOps, and Ready again after the rollback', async () => {
    const spec = { progressDeadlineSeconds: 1 };
    await settled({ replicas: 3, spec });
    expect(await conditions()).toMatchObject({ Ready: 'True RolloutComplete' });
    fleet.setFault(NEVER);
    await apply({ version: '2.0.0', replicas: 3, spec });
    await eventually(async () =>
      expect(await conditions()).toMatchObject({ Ready: `False ${STUCK}`, Stalled: `True ${STUCK}` }),
    );
    await edit({ rollbackTo: {} });
    await eventually(async () => expect(await conditions()).toMatchObject({ Ready: 'True RolloutComplete' }));
    expect(await conditions()).not.toHaveProperty('Stalled');
  });

  it('does not keep a larger number of Pods from serving', async () => {
    const spec = { progressDeadlineSeconds: 1 };
    await settled({ replicas: 2, spec });
    fleet.setFault(NEVER);
    await apply({ version: '2.0.0', replicas: 2, spec });
    await eventually(async () => expect((await rolloutOf(world.admin))[3]).toBe(STUCK));
    await edit({ replicas: 3 });
    await eventually(() => expect(versionsOf(seen.available)).toEqual(['1.0.0', '1.0.0', '1.0.0']));
  });
});

describe('a change of the same version, for which the old Pod has to go first', () => {
  it('creates one Pod for each that it replaces', async () => {
    await settled({ version: '1.0.0', replicas: 3 });
    await apply({ version: '1.0.0', replicas: 3, env: { MODE: 'other' } });
    await eventually(async () => {
      const { revision, conditions: all } = await statusOf(world.admin);
      expect([revision, all.find(({ type }) => type === 'Ready')?.status]).toEqual([2, 'True']);
    });
    expect(seen.names.size).toBe(6);
  });

  it('creates one Pod also when it never serves', async () => {
    const spec = { progressDeadlineSeconds: 1 };
    await settled({ version: '1.0.0', replicas: 1, spec });
    fleet.setFault({ bizVersion: '1.0.0', failure: 'java.io.FileNotFoundException: no such jar' });
    await apply({ version: '1.0.0', replicas: 1, spec, env: { MODE: 'other' } });
    await eventually(async () => expect((await rolloutOf(world.admin))[3]).toBe(STUCK));
    expect(seen.names.size).toBe(2);
  });
});

it('in a pause nothing is replaced, also when the template goes back in the middle', async () => {
  const spec = { strategy: { type: 'Batch', batch: { count: 3, needConfirm: true } } };
  await settled({ version: '1.0.0', replicas: 3, spec });
  await apply({ version: '2.0.0', replicas: 3, spec });
  await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 1, 3, 'WaitingConfirm']));
  const names = seen.live.map(({ metadata }) => metadata.name).sort();
  await edit({ paused: true });
  await edit({ rollbackTo: {} });
  await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 2, 3, 'Paused']));
  expect(seen.live.map(({ metadata }) => metadata.name).sort()).toEqual(names);
  await edit({ paused: false });
  await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([3, 3, 3, 'RolloutComplete']));
});

it('while it is paused, a lost Pod comes back as the version that it had', async () => {
  await settled({ replicas: 3 });
  await edit({ paused: true });
  await apply({ version: '2.0.0', replicas: 3, spec: { paused: true } });
  await eventually(async () => expect((await rolloutOf(world.admin))[3]).toBe('Paused'));
  const lost = seen.available[0]?.metadata.name ?? '';
  await world.admin.delete(podPath(lost));
  await eventually(() => expect(seen.live.map(({ metadata }) => metadata.name)).not.toContain(lost));
  await eventually(() => expect(versionsOf(seen.available)).toEqual(['1.0.0', '1.0.0', '1.0.0']));
});

it('between two batches further Pods take bases that have neither version', async () => {
  const spec = { strategy: { type: 'Batch', batch: { count: 2, needConfirm: true } } };
  await settled({ replicas: 4, spec });
  await apply({ version: '2.0.0', replicas: 4, spec });
  await eventually(async () => expect(await rolloutOf(world.admin)).toEqual([4, 2, 4, 'WaitingConfirm']));
  await edit({ replicas: BASES });
  await eventually(() => expect(seen.available).toHaveLength(BASES));
  expect(basesOf(seen.available)).toBe(BASES);
  expect(new Set(versionsOf(seen.available))).toEqual(new Set(['1.0.0', '2.0.0']));
});

it('what stands in the way of a reconcile is in the status, and an event', async () => {
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'none', namespace: 'default' } };
  await world.controlPlane.apply({ ...quota, spec: { hard: { 'count/controllerrevisions.apps': '0' } } });
  const path = '/api/v1/namespaces/default/resourcequotas/none';
  await eventually(async () => expect((await world.admin.get(path)).status?.hard).toBeDefined());
  await apply({ replicas: 2 });
  await eventually(async () =>
    expect(await conditions()).toMatchObject({
      ReplicaFailure: 'True ReconcileFailed',
      Ready: 'False ReconcileFailed',
      Stalled: 'True ReconcileFailed',
    }),
  );
  await eventually(async () => {
    const events = await eventsOf(world.admin, 'ModuleDeployment', 'shop');
    expect(events.find(({ reason }) => reason === 'ReconcileFailed')?.message).toContain('exceeded quota');
  });
  await world.admin.delete(path);
  await eventually(async () => expect(await conditions()).toMatchObject({ Ready: 'True RolloutComplete' }));
});

it('a version that never serves goes back by itself where its spec says so', async () => {
  const spec = { progressDeadlineSeconds: 1, onFailure: 'Rollback' };
  await settled({ replicas: 3, spec });
  fleet.setFault(NEVER);
  await apply({ version: '2.0.0', replicas: 3, spec });
  await eventually(async () => expect((await statusOf(world.admin)).revision).toBe(3));
  await eventually(async () => expect(await conditions()).toMatchObject({ Ready: 'True RolloutComplete' }));
  expect(new Set(versionsOf(seen.available))).toEqual(new Set(['1.0.0']));
  await eventually(async () => {
    const reasons = (await eventsOf(world.admin, 'ModuleDeployment', 'shop')).map(({ reason }) => reason);
    expect(reasons).toEqual(expect.arrayContaining([STUCK, 'RollbackStarted', 'RollbackDone']));
  });
  expect(seen.leastServed).toBe(3);
});

it('a version for new bases waits for them without a deadline, and takes nothing away meanwhile', async () => {
  const spec = { progressDeadlineSeconds: 1, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } };
  await settled({ replicas: 2, spec });
  const next = moduleDeployment({ version: '2.0.0', replicas: 2, spec });
  Object.assign(next.spec.template.metadata, { annotations: { 'platform.koupleless.io/base-version': '2.0.0' } });
  await world.controlPlane.apply(next as KubeObject);
  await eventually(async () => expect((await rolloutOf(world.admin))[3]).toBe('WaitingForBase'));
  const lost = seen.available[0]?.metadata.name ?? '';
  await world.admin.delete(podPath(lost));
  await eventually(() => expect(seen.live.map(({ metadata }) => metadata.name)).not.toContain(lost));
  await eventually(() => expect(versionsOf(seen.available)).toEqual(['1.0.0', '1.0.0']));
  expect((await rolloutOf(world.admin))[3]).toBe('WaitingForBase');
  await world.startFleet({ count: 2, identityPrefix: 'new-', version: '2.0.0', activateNewModule: true });
  await eventually(async () => expect((await rolloutOf(world.admin))[3]).toBe('RolloutComplete'));
  expect(versionsOf(seen.available)).toEqual(['2.0.0', '2.0.0']);
  expect(seen.available.map(({ spec: { nodeName } }) => nodeName).sort()).toEqual(['vnode.new-1', 'vnode.new-2']);
});
