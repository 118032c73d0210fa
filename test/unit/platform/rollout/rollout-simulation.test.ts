import fc from 'fast-check';
import { expect, it } from 'vitest';
import { projectModulePod } from '../../../../src/kinds/module-pod.ts';
import { isReadyNode } from '../../../../src/kinds/vnode-object.ts';
import { isConflict, isConnectionFailed } from '../../../../src/kube/transport/api-error.ts';
import { REVISION_LABEL } from '../../../../src/labels.ts';
import type { ModuleDeploymentSpec } from '../../../../src/platform/rollout/module-deployment.ts';
import { limitsOf } from '../../../../src/platform/rollout/rollout-limits.ts';
import { runsOf } from '../../../support/property-runs.ts';
import { moduleDeployment } from '../../../support/rollouts.ts';
import { ControllerWorld } from './controller-world.ts';

const CONFIRM = 'platform.koupleless.io/confirm-batch';
const BASES = ['a', 'b', 'c', 'd', 'e'];
/** Only these fit the newest version: modules and bases are released together. */
const NEW_BASES = ['f', 'g', 'h'];
const NEWEST = '4.0.0';
const DEADLINE_SECONDS = 120;

/** `+x`: only a variable differs, so that a base cannot have both. */
const version = fc.constantFrom('1.0.0', '1.0.0+x', '2.0.0', '3.0.0', '4.0.0');
const strategy = fc.oneof(
  fc.record({
    type: fc.constant('RollingUpdate'),
    rollingUpdate: fc
      .record({
        maxSurge: fc.integer({ min: 0, max: 2 }),
        maxUnavailable: fc.integer({ min: 0, max: 2 }),
        placement: fc.constantFrom('SameBase', 'Any'),
      })
      .filter(({ maxSurge, maxUnavailable }) => maxSurge + maxUnavailable > 0),
  }),
  fc.record({
    type: fc.constant('Batch'),
    batch: fc.record({ count: fc.integer({ min: 1, max: 3 }), needConfirm: fc.boolean() }),
  }),
  fc.constant({}),
);
type Happening = readonly [what: string, happen: (world: ControllerWorld) => Promise<void> | void];

/** Something that happens, with a value that is drawn. */
function drawn<T>(
  what: string,
  value: fc.Arbitrary<T>,
  happen: (world: ControllerWorld, value: T) => Promise<void> | void,
) {
  return value.map((given): Happening => [`${what} ${JSON.stringify(given)}`, (world) => happen(world, given)]);
}

// biome-ignore lint/suspicious/noExplicitAny: whatever a user writes
function edited<T>(what: string, value: fc.Arbitrary<T>, edit: (spec: any, value: T) => void) {
  return drawn(what, value, (world, given) => world.edit(({ spec }) => edit(spec, given)));
}

const happening = fc.oneof(
  {
    weight: 8,
    arbitrary: drawn('look', fc.integer({ min: 1, max: 4 }), async (world, times) => {
      for (let count = 0; count < times; count++) await act(world);
    }),
  },
  {
    weight: 3,
    arbitrary: edited('apply', version, (spec, wanted) => {
      spec.template = templateOf(wanted);
    }),
  },
  edited('roll back to revision', fc.nat(2), (spec, revision) => {
    spec.rollbackTo = { revision };
  }),
  edited('pause', fc.boolean(), (spec, isPaused) => {
    spec.paused = isPaused;
  }),
  edited('scale to', fc.integer({ min: 1, max: 6 }), (spec, replicas) => {
    spec.replicas = replicas;
  }),
  drawn('confirm batch', fc.integer({ min: 1, max: 3 }), (world, batch) =>
    world.edit(({ metadata }) => {
      metadata.annotations = { [CONFIRM]: String(batch) };
    }),
  ),
  {
    weight: 3,
    arbitrary: drawn('lose Pod', fc.nat(9), (world, index) => {
      const pods = of(world);
      world.removePod(pods[index % Math.max(1, pods.length)]?.name ?? '');
      world.live();
    }),
  },
  { weight: 3, arbitrary: drawn('break version', version, (world, name) => void world.broken.add(name)) },
  drawn('mend version', version, (world, name) => void world.broken.delete(name)),
  drawn('silence base', fc.constantFrom(...BASES, ...NEW_BASES), (world, name) => world.silence(name)),
  {
    weight: 2,
    arbitrary: drawn('hear base', fc.constantFrom(...BASES, ...NEW_BASES), (world, name) => {
      world.hear(name, NEW_BASES.includes(name) ? '2' : undefined);
    }),
  },
  drawn('remove base', fc.constantFrom(...BASES, ...NEW_BASES), (world, name) => world.removeBase(name)),
  drawn('restart', fc.constant(''), (world) => world.restart()),
  drawn(
    'fail',
    fc.record({ atWrite: fc.integer({ min: 1, max: 6 }), isDone: fc.boolean(), isLost: fc.boolean() }),
    async (world, fault) => {
      world.fail(fault);
      await act(world);
    },
  ),
  drawn('wait, s:', fc.constantFrom(1, 30, 130), (world, seconds) => world.clock.advance(seconds * 1000)),
);

function versionOf({ metadata, spec }: ModuleDeploymentSpec['template']): string {
  const hasVariable = spec.containers[0]?.env?.some(({ name }) => name === 'variable');
  return `${metadata.labels.version}${hasVariable ? '+x' : ''}`;
}

function templateOf(wanted: string) {
  const [number = '', variable] = wanted.split('+');
  const { template } = moduleDeployment({ version: number, ...(variable && { env: { variable } }) }).spec;
  if (wanted !== NEWEST) return template;
  const annotations = { 'platform.koupleless.io/base-version': '2' };
  return { ...template, metadata: { ...template.metadata, annotations } };
}

/** Bases that can be reached and fit a version. */
function readyFor(world: ControllerWorld, wanted: string): string[] {
  const names = [...world.nodes.values()].filter(isReadyNode).map(({ name }) => name);
  return names.filter((name) => wanted !== NEWEST || NEW_BASES.includes(name));
}

const of = (world: ControllerWorld) => world.pods.map(projectModulePod).filter(({ isDeleting }) => !isDeleting);

/** How many bases that can be reached have a version that serves, or that the base makes active again. */
function serving(world: ControllerWorld): number {
  const bases = of(world).filter(({ hasRun, nodeName = '' }) => {
    const node = world.nodes.get(nodeName);
    return hasRun && node !== undefined && isReadyNode(node);
  });
  return new Set(bases.map(({ nodeName }) => nodeName)).size;
}

function boundsOf(spec: ModuleDeploymentSpec) {
  const replicas = spec.replicas ?? 1;
  const limits = limitsOf(spec.strategy ?? {}, replicas);
  // An old Pod may have to go first: see docs/module-deployments.md.
  const mayMiss = limits.isLossless ? limits.maxUnavailable : Math.max(1, limits.maxUnavailable);
  return { replicas, ...limits, mayMiss };
}

/** One look of the controller takes no more than it may. */
async function act(world: ControllerWorld): Promise<void> {
  const before = { serving: serving(world), live: of(world).length };
  const isBlind = world.isBlind;
  // The controller cannot know what its cache does not show yet.
  const { replicas, mayMiss, maxSurge } = boundsOf(world.cachedSpec ?? world.deployment.spec);
  try {
    await world.act();
  } catch (error) {
    if (world.wasKilled(error)) world.restart();
    else if (!isConnectionFailed(error) && !isConflict(error)) throw error;
  }

  // Nobody knows what happened since.
  if (isBlind) return world.live();
  const told = JSON.stringify({ events: world.messages.slice(-6) });
  expect(serving(world), told).toBeGreaterThanOrEqual(Math.min(before.serving, replicas - mayMiss));
  expect(of(world).length, told).toBeLessThanOrEqual(Math.max(before.live, replicas + maxSurge));
  world.live();
}

function shown(world: ControllerWorld): object {
  const pods = of(world).map(({ name, labels, nodeName, pinnedTo, isReady, isDeactivated, hasRun }) => ({
    name,
    version: labels.version,
    base: nodeName ?? pinnedTo,
    state: { isReady, isDeactivated, hasRun },
  }));
  const bases = [...world.nodes.values()].map((node) => `${node.name} ${isReadyNode(node)}`);
  const { status } = world.deployment;
  return { status, pods, bases, broken: [...world.broken], messages: world.messages.slice(-8) };
}

/** Long enough for every deadline, with nothing else happening. */
async function settle(world: ControllerWorld): Promise<void> {
  world.fail(undefined);
  let created = 0;
  for (let step = 0; step < 60; step++) {
    if (step === 45) created = world.created;
    await act(world);
    world.clock.advance(5_000);
  }
  expect(world.created, 'Pods without end').toBe(created);
}

/** The end of the story: what a user may count on. */
function check(world: ControllerWorld, told: string): void {
  const { replicas: wanted, mayMiss, isLossless } = boundsOf(world.deployment.spec);
  const newest = versionOf(world.deployment.spec.template);
  const ready = readyFor(world, newest).length;
  const reason = world.progress;
  const silent = [...world.nodes.values()].filter((node) => !isReadyNode(node));
  const isHeldUp = of(world).some(({ nodeName }) => silent.some(({ name }) => name === nodeName));
  // With an explicit maxUnavailable of 0, a Pod that cannot stay beside the old one waits for another base.
  const isStopped = isLossless && reason === 'ProgressDeadlineExceeded';
  // Copies of the former template that were promised, and never run, hold bases that cannot have both: see docs/limits.md.
  const update = world.deployment.status?.updateRevision;
  const isBlocked =
    reason === 'ProgressDeadlineExceeded' &&
    of(world).some(
      ({ hasRun, labels }) => !hasRun && labels[REVISION_LABEL] !== update && labels.version === newest.split('+')[0],
    );
  if (
    !world.broken.has(newest) &&
    !isHeldUp &&
    !isStopped &&
    !isBlocked &&
    reason !== 'Paused' &&
    reason !== 'WaitingConfirm'
  ) {
    const available = of(world).filter(({ isReady }) => isReady);
    const isFitting = newest !== NEWEST || ready >= wanted;
    if (isFitting) {
      expect(available.length, told).toBeGreaterThanOrEqual(Math.min(wanted, ready));
      expect(new Set(of(world).map(({ labels }) => labels.version)), told).toEqual(new Set([newest.split('+')[0]]));
    } else expect(['WaitingForBase', 'RolloutComplete'], told).toContain(reason);
    if (ready >= wanted) expect(reason, told).toBe('RolloutComplete');
  } else {
    expect(
      ['Paused', 'WaitingConfirm', 'WaitingForBase', 'ProgressDeadlineExceeded', 'RolloutComplete'],
      told,
    ).toContain(reason);
  }
  const current = world.currentTemplate && versionOf(world.currentTemplate);
  if (current !== undefined && !world.broken.has(current) && !isHeldUp) {
    expect(serving(world), told).toBeGreaterThanOrEqual(Math.min(wanted - mayMiss, readyFor(world, current).length));
  }
}

it('whatever happens, a ModuleDeployment serves what it promises, and ends at the newest template or says why not', async () => {
  await fc.assert(
    fc.asyncProperty(
      strategy,
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom('Pause', 'Rollback'),
      fc.array(happening, { maxLength: 40 }),
      async (strategyDrawn, replicas, onFailure, all) => {
        const world = new ControllerWorld({ bases: BASES, hasOneActive: true });
        const spec = { strategy: strategyDrawn, progressDeadlineSeconds: DEADLINE_SECONDS, onFailure };
        world.apply('1.0.0', { replicas, spec });
        for (let step = 0; step < 10; step++) await world.look();
        for (const [, happen] of all) await happen(world);
        await settle(world);
        check(world, JSON.stringify({ happened: all.map(([what]) => what), ...shown(world) }));
      },
    ),
    { numRuns: runsOf(200) },
  );
});
