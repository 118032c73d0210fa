import { describe, expect, it } from 'vitest';
import { ControllerError } from '../../../../src/errors.ts';
import { MODULE_PODS, type ModulePod, projectModulePod } from '../../../../src/kinds/module-pod.ts';
import { type CachedNode, projectNode } from '../../../../src/kinds/vnode-object.ts';
import type { PodObject } from '../../../../src/kube/objects.ts';
import { isConnectionFailed } from '../../../../src/kube/transport/api-error.ts';
import { silentLogger } from '../../../../src/logger.ts';
import {
  CACHED_MODULE_DEPLOYMENTS,
  type CachedModuleDeployment,
  type ModuleDeploymentObject,
  projectModuleDeployment,
} from '../../../../src/platform/rollout/module-deployment.ts';
import { PodStore } from '../../../../src/platform/rollout/pod-store.ts';
import {
  CACHED_REVISIONS,
  projectRevision,
  type Revision,
  type RevisionObject,
} from '../../../../src/platform/rollout/revision.ts';
import { RevisionStore } from '../../../../src/platform/rollout/revision-store.ts';
import { RolloutController } from '../../../../src/platform/rollout/rollout-controller.ts';
import { cannotShare } from '../../../../src/platform/rollout/rollout-plan.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeObjects } from '../../../support/fake-objects.ts';
import { moduleDeployment } from '../../../support/rollouts.ts';

const BASES = ['vnode.a', 'vnode.b', 'vnode.c'];
const KEY = 'default/shop';

/** The process ends here. */
class Killed extends Error {}

/** One write goes wrong. */
interface Fault {
  readonly atWrite: number;
  /** Whether the write still happens. */
  readonly isDone: boolean;
  /** The process goes on, without an answer, and its caches learn of the write only after its next look. */
  readonly isLost?: boolean;
}

/** Bases and an API server that outlive the processes of a controller. */
class CrashWorld {
  readonly #deployments = new FakeObjects<ModuleDeploymentObject, CachedModuleDeployment>({
    project: projectModuleDeployment,
    indexers: CACHED_MODULE_DEPLOYMENTS.indexers ?? {},
    onWrite: (isDone) => this.#onWrite(isDone),
  });
  readonly #pods = new FakeObjects<PodObject, ModulePod>({
    project: projectModulePod,
    indexers: MODULE_PODS.indexers ?? {},
    onWrite: (isDone) => this.#onWrite(isDone),
  });
  readonly #revisions = new FakeObjects<RevisionObject, Revision>({
    project: projectRevision,
    indexers: CACHED_REVISIONS.indexers ?? {},
    onWrite: (isDone) => this.#onWrite(isDone),
  });
  readonly #nodes = new Map<string, CachedNode>(
    BASES.map((name) => {
      const labels = { 'virtual-kubelet.koupleless.io/env': 'dev' };
      const conditions = [{ type: 'Ready', status: 'True' as const }];
      return [name, projectNode({ metadata: { name, labels }, status: { conditions } } as never)];
    }),
  );
  #controller: RolloutController | undefined;
  #fault: Fault | undefined;
  #areCachesLate = false;
  #writes = 0;
  mostLive = 0;
  leastServed = Number.POSITIVE_INFINITY;

  get writes(): number {
    return this.#writes;
  }

  apply(version: string): void {
    const [former] = this.#deployments.all;
    const { metadata, spec } = moduleDeployment({ version });
    const generation = (former?.metadata.generation ?? 0) + 1;
    this.#deployments.put({ ...former, metadata: { ...former?.metadata, ...metadata, generation }, spec } as never);
  }

  /** Runs until the rollout is complete; a process that dies is followed by another one. */
  async run(fault?: Fault): Promise<void> {
    this.#fault = fault;
    this.#writes = 0;
    for (let step = 0; step < 200; step++) {
      try {
        await this.#reconcile();
      } catch (error) {
        if (!(error instanceof Killed) && !isConnectionFailed(error)) throw error;
        if (error instanceof Killed) this.#controller = undefined;
      }
      this.#live();
      const progress = this.#status?.conditions.find(({ type }) => type === 'Progressing');
      const isSeen = this.#status?.observedGeneration === this.#deployments.all[0]?.metadata.generation;
      if (isSeen && progress?.reason === 'RolloutComplete' && this.#pods.all.length === 3) return;
    }
    throw new Error(`never complete: ${JSON.stringify(this.#status)}`);
  }

  /** All that a user sees in the end. */
  get end(): unknown {
    const { updatedReplicas, availableReplicas, revision } = this.#status ?? {};
    return {
      pods: this.#pods.all.map(({ metadata, spec }) => `${metadata.labels?.version} ${spec.nodeName}`).sort(),
      status: { updatedReplicas, availableReplicas, revision },
      revisions: this.#revisions.all.map((one) => one.revision).sort(),
    };
  }

  get #status() {
    return this.#deployments.all[0]?.status;
  }

  /** One look, by a cache that learns of all writes only after it. */
  async #reconcile(): Promise<void> {
    this.#controller ??= this.#start();
    const caches = [this.#deployments.informer, this.#pods.informer, this.#revisions.informer];
    for (const cache of caches) cache.isPaused = true;
    try {
      await this.#controller.reconcile(KEY);
    } finally {
      if (!this.#areCachesLate) for (const cache of caches) cache.resume();
      this.#areCachesLate = false;
    }
  }

  #start(): RolloutController {
    const permit = (): boolean => true;
    const recorder = { event: () => {} };
    const clock = new FakeClock();
    const client = this.#deployments.client(() => {});
    const nodes = { get: (name: string) => this.#nodes.get(name), list: () => [...this.#nodes.values()] };
    const podClient = this.#pods.client(({ metadata }) => {
      this.#change(metadata.name, (pod) => {
        pod.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      });
    });
    const pods = new PodStore({
      informer: this.#pods.newInformer(),
      client: podClient,
      deployments: client,
      permit,
      clock,
    });
    const revisions = new RevisionStore({
      informer: this.#revisions.newInformer(),
      client: this.#revisions.client(({ metadata }) => this.#revisions.remove(metadata.name)),
      recorder,
      permit,
    });
    const deployments = this.#deployments.newInformer();
    const shared = { permit, recorder, clock, logger: silentLogger };
    return new RolloutController({ deployments, nodes, client, pods, revisions, env: 'dev', ...shared });
  }

  #change(name: string, change: (pod: PodObject) => void): void {
    const pod = this.#pods.all.find(({ metadata }) => metadata.name === name);
    if (pod === undefined) return;
    const copy = structuredClone(pod);
    change(copy);
    this.#pods.put(copy);
    this.#look();
  }

  /** The scheduler and the bases: deleted Pods go, new ones are bound and become Ready. */
  #live(): void {
    this.#look();
    for (const { metadata } of this.#pods.all) {
      if (metadata.deletionTimestamp !== undefined) this.#pods.remove(metadata.name);
    }
    for (const raw of this.#pods.all) {
      const pod = projectModulePod(raw);
      const isFree = (name: string): boolean =>
        !this.#pods.all.some((other) => other.spec.nodeName === name && cannotShare(pod, projectModulePod(other)));
      const nodeName = pod.nodeName ?? (pod.pinnedTo === undefined ? BASES : [pod.pinnedTo]).find(isFree);
      if (nodeName === undefined || pod.isReady) continue;
      this.#change(pod.name, (object) => {
        object.spec.nodeName = nodeName;
        object.status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
      });
    }
  }

  #look(): void {
    const live = this.#pods.all.map(projectModulePod).filter(({ isDeleting }) => !isDeleting);
    this.mostLive = Math.max(this.mostLive, live.length);
    this.leastServed = Math.min(this.leastServed, live.filter(({ isReady }) => isReady).length);
  }

  #onWrite(isDone: boolean): void {
    if (!isDone) this.#writes += 1;
    this.#look();
    if (this.#fault === undefined || this.#writes < this.#fault.atWrite || this.#fault.isDone !== isDone) return;
    const { isLost } = this.#fault;
    this.#fault = undefined;
    if (!isLost) throw new Killed();
    this.#areCachesLate = true;
    throw new ControllerError('Kube.ConnectionFailed', 'no answer');
  }
}

async function settled(): Promise<CrashWorld> {
  const world = new CrashWorld();
  world.apply('1.0.0');
  await world.run();
  world.mostLive = 0;
  world.leastServed = 3;
  return world;
}

const FAULTS = [{ isDone: false }, { isDone: true }, { isDone: false, isLost: true }, { isDone: true, isLost: true }];

/** Every write of an undisturbed run, with every fault. */
function faultsOf(writes: number): Fault[] {
  return Array.from({ length: writes }, (_, index) => FAULTS.map((fault) => ({ atWrite: index + 1, ...fault }))).flat();
}

describe('a controller that is killed, or gets no answer, at any write', () => {
  it('ends a rollout where an undisturbed one ends, and no Pod is missing on the way', async () => {
    const undisturbed = await settled();
    undisturbed.apply('2.0.0');
    await undisturbed.run();
    expect(undisturbed.end).toEqual({
      pods: BASES.map((name) => `2.0.0 ${name}`),
      status: { updatedReplicas: 3, availableReplicas: 3, revision: 2 },
      revisions: [1, 2],
    });
    expect(undisturbed.writes).toBeGreaterThan(10);
    for (const fault of faultsOf(undisturbed.writes)) {
      const world = await settled();
      world.apply('2.0.0');
      await world.run(fault);
      expect(world.end, JSON.stringify(fault)).toEqual(undisturbed.end);
      expect([world.leastServed, world.mostLive], JSON.stringify(fault)).toEqual([3, 4]);
    }
  });

  it('creates none of the first Pods twice', async () => {
    const undisturbed = new CrashWorld();
    undisturbed.apply('1.0.0');
    await undisturbed.run();
    for (const fault of faultsOf(undisturbed.writes)) {
      const world = new CrashWorld();
      world.apply('1.0.0');
      await world.run(fault);
      expect(world.mostLive, JSON.stringify(fault)).toBe(3);
      expect(world.end).toEqual(undisturbed.end);
    }
  });
});
