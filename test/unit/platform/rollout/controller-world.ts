import { ControllerError } from '../../../../src/errors.ts';
import { MODULE_PODS, type ModulePod, projectModulePod } from '../../../../src/kinds/module-pod.ts';
import { type CachedNode, projectNode } from '../../../../src/kinds/vnode-object.ts';
import type { EventRecorder } from '../../../../src/kube/events/event-recorder.ts';
import type { PodObject } from '../../../../src/kube/objects.ts';
import { isConflict, isConnectionFailed } from '../../../../src/kube/transport/api-error.ts';
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
import type { Result } from '../../../../src/reconcile/reconciler.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeObjects } from '../../../support/fake-objects.ts';
import { moduleDeployment, type RolloutManifest } from '../../../support/rollouts.ts';

export const BASES = ['vnode.a', 'vnode.b', 'vnode.c'];
const KEY = 'default/shop';
/** In the order of their numbers. */
const byNumber = (a: RevisionObject, b: RevisionObject): number => a.revision - b.revision;

/** The process ends here. */
class Killed extends Error {}

/** One write goes wrong. */
export interface Fault {
  readonly atWrite: number;
  /** Whether the write still happens. */
  readonly isDone: boolean;
  /** The process goes on, without an answer, and its caches learn of the write only after its next look. */
  readonly isLost?: boolean;
}

/** What tests change of a ModuleDeployment. */
interface Edited {
  readonly metadata: { generation: number; annotations?: Record<string, string> };
  // biome-ignore lint/suspicious/noExplicitAny: whatever a user writes
  readonly spec: any;
}

/** Bases and an API server that outlive the processes of a controller. */
export class ControllerWorld {
  readonly clock = new FakeClock();
  /** `Normal NewRevision`. */
  readonly events: string[] = [];
  /** Of those events. */
  readonly messages: string[] = [];
  /** Pods of this version never become Ready. */
  brokenVersion: string | undefined;
  /** Pods of this version are Failed as soon as they are bound. */
  endingVersion: string | undefined;
  /** Before each write of a Pod; what it throws the controller gets. */
  onPodWrite: () => void = () => {};
  /** Before each write of the spec of a ModuleDeployment; what it throws the controller gets. */
  onSpecWrite: (patch: object) => void = () => {};
  /** How often the API server was asked for all Pods. */
  podLists = 0;
  readonly #deployments = new FakeObjects<ModuleDeploymentObject, CachedModuleDeployment>({
    project: projectModuleDeployment,
    indexers: CACHED_MODULE_DEPLOYMENTS.indexers ?? {},
    onWrite: (isDone) => this.#onWrite(isDone),
  });
  readonly #pods = new FakeObjects<PodObject, ModulePod>({
    project: projectModulePod,
    indexers: MODULE_PODS.indexers ?? {},
    onWrite: (isDone) => {
      if (!isDone) this.onPodWrite();
      this.#onWrite(isDone);
    },
  });
  readonly #revisions = new FakeObjects<RevisionObject, Revision>({
    project: projectRevision,
    indexers: CACHED_REVISIONS.indexers ?? {},
    onWrite: (isDone) => this.#onWrite(isDone),
  });
  /** By name. */
  readonly nodes = new Map<string, CachedNode>(
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

  apply(version: string, more: RolloutManifest = {}): void {
    const [former] = this.#deployments.all;
    const { metadata, spec } = moduleDeployment({ version, ...more });
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
        // Decided from a cache that did not know of a write yet: tried again, as by the reconciler.
        const isStale = isConflict(error);
        if (!(error instanceof Killed) && !isConnectionFailed(error) && !isStale) throw error;
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

  /** One look of the controller; then the scheduler and the bases do their part. */
  async look(): Promise<Result | undefined> {
    const result = await this.#reconcile();
    this.#live();
    return result;
  }

  /** As many looks as come to rest. */
  async rest(): Promise<void> {
    for (let step = 0; step < 20; step++) await this.look();
  }

  /** Another process goes on. */
  restart(): void {
    this.#controller = undefined;
  }

  /** As a user edits it. */
  edit(change: (object: Edited) => void): void {
    const copy = structuredClone(this.deployment) as unknown as Edited;
    change(copy);
    copy.metadata.generation += 1;
    this.#deployments.put(copy as never);
  }

  get deployment(): ModuleDeploymentObject {
    const [deployment] = this.#deployments.all;
    if (deployment === undefined) throw new Error('no ModuleDeployment');
    return deployment;
  }

  /** Why the rollout goes on, or does not. */
  get progress(): string | undefined {
    return this.#status?.conditions.find(({ type }) => type === 'Progressing')?.reason;
  }

  get pods(): PodObject[] {
    return this.#pods.all;
  }

  /** Of Pods that are not being deleted, the oldest first. */
  get versions(): (string | undefined)[] {
    return this.pods
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.labels?.version);
  }

  get revisions(): RevisionObject[] {
    return [...this.#revisions.all].sort(byNumber);
  }

  putPod(pod: PodObject): void {
    this.#pods.put(pod);
  }

  putRevision(revision: RevisionObject): void {
    this.#revisions.put(revision);
  }

  removeRevision(name: string): void {
    this.#revisions.remove(name);
  }

  removePod(name: string): void {
    this.#pods.remove(name);
  }

  /** The base of a Pod becomes Ready or does not serve any more. */
  setReady(name: string, isReady: boolean): void {
    this.#change(name, (pod) => {
      pod.status = this.#statusOfPod(isReady);
    });
  }

  #statusOfPod(isReady: boolean): NonNullable<PodObject['status']> {
    const lastTransitionTime = this.clock.wallTime().toISOString();
    return {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime }],
    };
  }

  get #status() {
    return this.#deployments.all[0]?.status;
  }

  /** One look, by a cache that learns of all writes only after it. */
  async #reconcile(): Promise<Result | undefined> {
    this.#controller ??= this.#start();
    const caches = [this.#deployments.informer, this.#pods.informer, this.#revisions.informer];
    for (const cache of caches) cache.isPaused = true;
    try {
      return await this.#controller.reconcile(KEY);
    } finally {
      if (!this.#areCachesLate) for (const cache of caches) cache.resume();
      this.#areCachesLate = false;
    }
  }

  #start(): RolloutController {
    const permit = (): boolean => true;
    const recorder: EventRecorder = {
      event: (_subject, type, reason, message) => {
        this.events.push(`${type} ${reason}`);
        this.messages.push(message);
      },
    };
    const { clock, nodes: all } = this;
    const writer = this.#deployments.client(() => {});
    const client: typeof writer = {
      ...writer,
      mergePatch: async (ref, patch, options) => {
        if (options?.subresource === undefined) this.onSpecWrite(patch);
        return await writer.mergePatch(ref, patch, options);
      },
      jsonPatch: async (ref, patch, options) => {
        this.onSpecWrite(patch);
        return await writer.jsonPatch(ref, patch, options);
      },
    };
    const nodes = { get: (name: string) => all.get(name), list: () => [...all.values()] };
    const podClient = this.#pods.client(({ metadata }) => {
      this.#change(metadata.name, (pod) => {
        pod.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      });
    });
    const list: typeof podClient.list = (...selection) => {
      this.podLists += 1;
      return podClient.list(...selection);
    };
    const pods = new PodStore({
      informer: this.#pods.newInformer(),
      client: { ...podClient, list },
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
      if (nodeName === undefined || pod.isReady || pod.isTerminal) continue;
      const isBroken = pod.labels.version === this.brokenVersion;
      if (isBroken && pod.nodeName !== undefined) continue;
      this.#change(pod.name, (object) => {
        object.spec.nodeName = nodeName;
        if (!isBroken) object.status = this.#statusOfPod(true);
        if (pod.labels.version === this.endingVersion) object.status = { phase: 'Failed' };
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
