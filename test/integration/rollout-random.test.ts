import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import type { ModuleDeploymentStatus } from '../../src/platform/rollout/module-deployment.ts';
import { limitsOf } from '../../src/platform/rollout/rollout-limits.ts';
import { eventually } from '../support/eventually.ts';
import { isSchedulable, nodes } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { moduleDeployment, moduleDeploymentPath, PodSpectator, statusOf } from '../support/rollouts.ts';
import { startWorld } from '../support/start-world.ts';
import { type ControllerProcess, podPath, type World } from '../support/world.ts';

const BASES = 6;
const STEPS = 100;
/** How often it is waited for what a ModuleDeployment promises. */
const STEPS_BETWEEN_CHECKS = 10;
/** Sequences that have found faults before, and one that is new in each run. */
const SEEDS = [7, Date.now() % 1_000_000];
const BROKEN = '3.0.0';
const STRATEGY = { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } };

let world: World;
let fleet: Fleet;
let platform: Platform;
let controller: ControllerProcess;
let seen: PodSpectator;

type Step = readonly [what: string, value: number];

const step = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(fc.constant('version'), fc.integer({ min: 1, max: 3 })) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('lose'), fc.nat(9)) },
  fc.tuple(fc.constantFrom('roll back', 'pause', 'go on', 'kill'), fc.constant(0)),
  fc.tuple(fc.constant('scale'), fc.integer({ min: 1, max: BASES - 1 })),
  fc.tuple(fc.constantFrom('restart base', 'wait'), fc.nat(BASES - 1)),
);

const edit = (spec: object) => world.admin.mergePatch(moduleDeploymentPath(), { spec });

async function start(): Promise<ControllerProcess> {
  const started = await platform.start(`platform-${Date.now()}`, 'rollout');
  await started.line(({ msg }) => msg === 'started leading');
  return started;
}

async function take([what, value]: Step): Promise<void> {
  if (what === 'version') {
    await edit({ template: moduleDeployment({ version: `${value}.0.0` }).spec.template });
  } else if (what === 'lose') {
    const pod = seen.live[value % Math.max(1, seen.live.length)];
    if (pod) await world.admin.delete(podPath(pod.metadata.name)).catch(() => {});
  } else if (what === 'roll back') await edit({ rollbackTo: {} });
  else if (what === 'pause') await edit({ paused: true });
  else if (what === 'go on') await edit({ paused: false });
  else if (what === 'scale') await edit({ replicas: value });
  else if (what === 'kill') {
    await controller.stop('SIGKILL');
    controller = await start();
  } else if (what === 'restart base') await fleet.base(`base-${value + 1}`).restart();
  else for (let count = 0; count <= value; count++) await statusOf(world.admin);
}

/** Enough serve, whatever is on its way. */
async function checkPromise(told: string): Promise<void> {
  await eventually(async () => {
    const { spec } = await world.admin.get(moduleDeploymentPath());
    const { maxUnavailable } = limitsOf(spec.strategy ?? {}, spec.replicas);
    expect(seen.available.length, told).toBeGreaterThanOrEqual(spec.replicas - maxUnavailable);
  });
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  await world.startController();
  fleet = await world.startFleet({ count: BASES, activateNewModule: true, installMs: 300 });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  controller = await start();
  seen = await PodSpectator.start(world.admin, 'app=shop');
});

afterAll(async () => {
  seen?.stop();
  await platform?.stop();
  await world?.stop();
});

it.each(SEEDS)('a hundred accidents on the real control plane, drawn by %i', async (seed) => {
  const steps = fc.sample(fc.array(step, { minLength: STEPS, maxLength: STEPS }), { seed, numRuns: 1 })[0] ?? [];
  fleet.setFault({ bizVersion: BROKEN, failure: 'java.io.FileNotFoundException: no such jar' });
  const spec = { strategy: STRATEGY, progressDeadlineSeconds: 5 };
  await world.controlPlane.apply(moduleDeployment({ replicas: 4, spec }) as KubeObject);
  await eventually(() => expect(seen.available).toHaveLength(4));
  seen.reset();
  const taken: Step[] = [];
  for (const [index, one] of steps.entries()) {
    taken.push(one);
    await take(one);
    if (index % STEPS_BETWEEN_CHECKS === STEPS_BETWEEN_CHECKS - 1) await checkPromise(JSON.stringify(taken));
  }
  const told = JSON.stringify(taken);
  expect(seen.mostLive, told).toBeLessThanOrEqual(BASES);
  await edit({ paused: false, rollbackTo: null, template: moduleDeployment({ version: '2.0.0' }).spec.template });
  await eventually(async () => {
    const { metadata, status } = await world.admin.get(moduleDeploymentPath());
    expect(status.observedGeneration).toBe(metadata.generation);
    const ready = (status as ModuleDeploymentStatus).conditions.find(({ type }) => type === 'Ready');
    expect(ready?.status, told).toBe('True');
  });
  expect(new Set(seen.available.map(({ metadata }) => metadata.labels?.version))).toEqual(new Set(['2.0.0']));
  await world.admin.delete(moduleDeploymentPath());
  await eventually(() => expect(seen.live).toEqual([]));
});
