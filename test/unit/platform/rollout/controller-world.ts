import { ControllerError } from '../../../../src/errors.ts';
import { MODULE_PODS, type ModulePod, projectModulePod } from '../../../../src/kinds/module-pod.ts';
import { type CachedNode, isReadyNode, projectNode } from '../../../../src/kinds/vnode-object.ts';
import type { EventRecorder } from '../../../../src/kube/events/event-recorder.ts';
import type { PodObject } from '../../../../src/kube/objects.ts';
import { fitsNode, placementOf } from '../../../../src/kube/placement.ts';
import { isConflict, isConnectionFailed } from '../../../../src/kube/transport/api-error.ts';
import { silentLogger } from '../../../../src/logger.ts';
import {
  CACHED_MODULE_DEPLOYMENTS,
  type CachedModuleDeployment,
  type ModuleDeploymentObject,
  type ModuleDeploymentSpec,
  type ModuleTemplate,
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
import { cannotShare } from '../../../../src/platform/rollout/rollout-template.ts';
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

export interface ControllerWorldOptions {
  /** Names of Nodes. */
  readonly bases?: readonly string[];
  /** A base has one active version of a module: that of the Pod created last. Default false: all versions serve. */
  readonly hasOneActive?: boolean;
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
  /** Pods of these versions become Ready no more, unless they have run before. */
  readonly broken = new Set<string>();
  /** Pods of this version are Failed as soon as they are bound. */
  endingVersion: string | undefined;
  /** Before each write of a Pod; what it throws the controller gets. */
  onPodWrite: () => void = () => {};
  /** A webhook that changes Pods. */
  onCreated: (pod: PodObject) => void = () => {};
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
  readonly nodes = new Map<string, CachedNode>();
  readonly #hasOneActive: boolean;
  #controller: RolloutController | undefined;
  #fault: Fault | undefined;
  #areCachesLate = false;
  /** The caches do not show what has happened since the last look. */
  isBlind = false;
  /** A process that was killed writes nothing more. */
  #isDead = false;
  #writes = 0;
  mostLive = 0;
  leastServed = Number.POSITIVE_INFINITY;
  /** How many Pods the controller has created. */
  created = 0;

  constructor({ bases = BASES, hasOneActive = false }: ControllerWorldOptions = {}) {
    this.#hasOneActive = hasOneActive;
    for (const name of bases) this.addBase(name);
  }

  addBase(name: string, { isReady = true, version }: { isReady?: boolean; version?: string } = {}): void {
    const labels = {
      'virtual-kubelet.koupleless.io/component': 'vnode',
      'virtual-kubelet.koupleless.io/env': 'dev',
      ...(version && { 'vnode.koupleless.io/version': version }),
    };
    const conditions = [{ type: 'Ready', status: isReady ? ('True' as const) : ('False' as const) }];
    this.nodes.set(name, projectNode({ metadata: { name, labels }, status: { conditions } } as never));
  }

  /** Its Node is deleted, and the Pods there. */
  removeBase(name: string): void {
    this.nodes.delete(name);
    for (const { metadata, spec } of this.pods) if (spec.nodeName === name) this.#pods.remove(metadata.name);
    this.#look();
  }

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
        if (error instanceof Killed) this.restart();
      }
      this.live();
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
    const result = await this.act();
    this.live();
    return result;
  }

  /** One look of the controller, and nothing else. */
  act(): Promise<Result | undefined> {
    return this.#reconcile();
  }

  /** As many looks as come to rest. */
  async rest(): Promise<void> {
    for (let step = 0; step < 20; step++) await this.look();
  }

  /** The base answers no more: nothing of it is Ready. */
  silence(name: string): void {
    const node = this.nodes.get(name);
    if (node === undefined) return;
    this.nodes.set(name, { ...node, conditions: [{ type: 'Ready', status: 'False' }] });
    for (const pod of this.#pods.all.map(projectModulePod)) {
      if (pod.nodeName === name && pod.isReady) this.setReady(pod.name, false);
    }
  }

  /** The base answers, for the first time or again. */
  hear(name: string, version?: string): void {
    this.addBase(name, version === undefined ? {} : { version });
    this.live();
  }

  /** The next write of this number goes wrong. Undefined: none does. */
  fail(fault: Fault | undefined): void {
    this.#fault = fault;
    this.#writes = 0;
  }

  wasKilled(error: unknown): boolean {
    return error instanceof Killed;
  }

  /** That of the last rollout that was completed. */
  get currentTemplate(): ModuleTemplate | undefined {
    const { currentRevision = '' } = this.#status ?? {};
    const revision = this.#revisions.all.find(({ metadata }) => metadata.name.endsWith(`-${currentRevision}`));
    return revision?.data?.spec?.template;
  }

  /** Another process goes on. */
  restart(): void {
    this.#controller = undefined;
    this.#isDead = false;
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

  /** As the cache of the controller has it. */
  get cachedSpec(): ModuleDeploymentSpec | undefined {
    return this.#deployments.informer.get(KEY)?.spec;
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

  /** Of a Pod whose module has run. */
  #statusOfPod(isReady: boolean, reason?: string): NonNullable<PodObject['status']> {
    const lastTransitionTime = this.clock.wallTime().toISOString();
    const state = reason === undefined ? {} : { state: { waiting: { reason } } };
    return {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime }],
      containerStatuses: [
        { name: 'shop', image: '', imageID: '', ready: isReady, started: true, restartCount: 0, ...state },
      ],
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
      this.isBlind = this.#areCachesLate;
      if (!this.isBlind) for (const cache of caches) cache.resume();
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
    const podWriter = this.#pods.client(({ metadata }) => {
      this.#change(metadata.name, (pod) => {
        pod.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      });
    });
    const podClient: typeof podWriter = {
      ...podWriter,
      create: (pod, options) => {
        const creationTimestamp = new Date(++this.created * 1000).toISOString();
        const created = structuredClone({ ...pod, metadata: { ...pod.metadata, creationTimestamp } });
        this.onCreated(created);
        return podWriter.create(created, options);
      },
    };
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
  live(): void {
    this.#look();
    for (const { metadata } of this.#pods.all) {
      if (metadata.deletionTimestamp !== undefined) this.#pods.remove(metadata.name);
    }
    for (const raw of this.#pods.all) {
      const pod = projectModulePod(raw);
      if (pod.isTerminal) continue;
      const nodeName = pod.nodeName ?? this.#baseFor(raw);
      if (nodeName === undefined) continue;
      if (pod.nodeName === undefined) {
        this.#change(pod.name, (object) => {
          object.spec.nodeName = nodeName;
          if (pod.labels.version === this.endingVersion) object.status = { phase: 'Failed' };
        });
      }
      this.#install(pod.name);
    }
    this.#activate();
  }

  #baseFor(raw: PodObject): string | undefined {
    const pod = projectModulePod(raw);
    const placement = placementOf(raw.spec);
    const isFree = (name: string): boolean =>
      !this.#pods.all.some((other) => other.spec.nodeName === name && cannotShare(pod, projectModulePod(other)));
    const fitting = [...this.nodes.values()].filter((node) => isReadyNode(node) && fitsNode(placement, node));
    const names = fitting.map(({ name }) => name);
    return names.find((name) => (pod.pinnedTo === undefined || pod.pinnedTo === name) && isFree(name));
  }

  #install(name: string): void {
    const raw = this.#pods.all.find(({ metadata }) => metadata.name === name);
    const pod = raw && projectModulePod(raw);
    const node = this.nodes.get(pod?.nodeName ?? '');
    const isBroken = (version: string): boolean => version === this.brokenVersion || this.broken.has(version);
    const hasVariable = raw?.spec.containers[0]?.env?.some(({ name: variable }) => variable === 'variable');
    if (!pod || pod.isReady || pod.isTerminal || pod.isDeactivated || !node || !isReadyNode(node)) return;
    if (!pod.hasRun && isBroken(`${pod.labels.version}${hasVariable ? '+x' : ''}`)) return;
    this.setReady(name, true);
  }

  /** The version of the youngest Pod of a base is the active one; the others are when that one goes. */
  #activate(): void {
    if (!this.#hasOneActive) return;
    const running = this.#pods.all.map(projectModulePod).filter((pod) => pod.hasRun && this.#isReachable(pod));
    for (const pods of Map.groupBy(running, ({ nodeName }) => nodeName).values()) {
      const last = pods.reduce((a, b) => (a.createdAt < b.createdAt ? b : a));
      for (const pod of pods) {
        const isActive = pod.labels.version === last.labels.version;
        if (pod.isDeactivated !== isActive) continue;
        this.#change(pod.name, (object) => {
          object.status = this.#statusOfPod(isActive, isActive ? undefined : 'BizDeactivated');
        });
      }
    }
  }

  #isReachable({ nodeName = '' }: ModulePod): boolean {
    const node = this.nodes.get(nodeName);
    return node !== undefined && isReadyNode(node);
  }

  #look(): void {
    const live = this.#pods.all.map(projectModulePod).filter(({ isDeleting }) => !isDeleting);
    this.mostLive = Math.max(this.mostLive, live.length);
    this.leastServed = Math.min(this.leastServed, live.filter(({ isReady }) => isReady).length);
  }

  #onWrite(isDone: boolean): void {
    if (this.#isDead) throw new Killed();
    if (!isDone) this.#writes += 1;
    this.#look();
    if (this.#fault === undefined || this.#writes < this.#fault.atWrite || this.#fault.isDone !== isDone) return;
    const { isLost } = this.#fault;
    this.#fault = undefined;
    if (!isLost) {
      this.#isDead = true;
      throw new Killed();
    }
    this.#areCachesLate = true;
    throw new ControllerError('Kube.ConnectionFailed', 'no answer');
  }
}
