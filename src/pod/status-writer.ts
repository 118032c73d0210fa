import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { podSubject } from '../kube/events/event-object.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import { secondsTime } from '../kube/micro-time.ts';
import { isInvalidUid, isNotFound, isNotPermitted } from '../kube/transport/api-error.ts';
import { type Informer, objectKey } from '../kube/watch/informer-types.ts';
import type { Leadership } from '../leadership.ts';
import { LruMap } from '../lru-map.ts';
import type { Metrics } from '../metrics.ts';
import type { BasePlan } from './base-plan.ts';
import { departingStatusOf } from './departures.ts';
import type { ContainerView } from './module-view.ts';
import { podEventsOf } from './pod-events.ts';
import {
  asStoredBeside,
  type BaseFacts,
  computePodStatus,
  type PodStatusInput,
  withOwnConditionsOf,
} from './pod-status.ts';
import { podStatusPatchOf } from './pod-status-patch.ts';
import { isTerminal, type VPod, type VPodStatus } from './vpod.ts';
import { gainsReady, inWriteOrder, losesReady, namesOf, ownNamesOf, type StatusChange } from './write-order.ts';

export interface StatusWriterOptions {
  readonly api: KubeClient;
  readonly informer: Informer<VPod>;
  readonly recorder: EventRecorder;
  readonly leadership: Pick<Leadership, 'isHeld'>;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/**
 * Maximum number of owners, such as ReplicaSets, that are remembered. One Pod of each owner reports which fields have
 * no effect; owners beyond this number may report again.
 */
const MAX_REPORTED_OWNERS = 1_000;

interface Change extends StatusChange {
  readonly views: readonly ContainerView[];
  /** The base that runs all modules of the Pod; undefined where one does not run. */
  readonly runsOn?: BaseFacts | undefined;
}

/** Writes what the Pods of a base should show, where it differs from what they do show. */
export class StatusWriter {
  readonly #options: StatusWriterOptions;
  /**
   * What the API server has not taken yet, by UID: commands go on without it, so the next status follows from this
   * one, and no restart goes uncounted. Emptied by the write, or with the Pod.
   */
  readonly #unwritten = new Map<string, VPodStatus>();
  /** On their way to the API server, and nothing follows from them, by UID. Emptied by the answers of one base. */
  readonly #writing = new Map<string, Change>();
  /** Pods whose status says all of a base of these facts that runs all of their modules. */
  readonly #settled = new WeakMap<VPod, BaseFacts>();
  /** Owners of Pods of which ignored fields were reported, by namespace and UID. */
  readonly #reportedOwners = new LruMap<true>(MAX_REPORTED_OWNERS);

  constructor(options: StatusWriterOptions) {
    this.#options = options;
  }

  /**
   * The Pod as it would be if every status had been written. Its conditions are the API server's: others write there
   * too.
   */
  remembered(pod: VPod): VPod {
    const unwritten = this.#unwritten.get(pod.uid);
    if (unwritten === undefined) return pod;
    const { phase, reason, message, containerStatuses } = unwritten;
    return { ...pod, status: { ...pod.status, phase, reason, message, containerStatuses } };
  }

  /**
   * Whether a write that is under way is all that has changed in a Pod, and a new plan would want nothing else. The event
   * may come before the answer to the write. Of a deleted Pod more may follow: the end of its sleep.
   */
  isOwnWrite(before: VPod, pod: VPod): boolean {
    const change = this.#writing.get(pod.uid);
    // A gate may wait for a condition that is just being written.
    if (change === undefined || pod.isDeleting || pod.readinessGates.length > 0) return false;
    const { resourceVersion, generation } = pod;
    // It goes with the first status that shows the Pod as admitted.
    const placement = pod.placement && before.placement;
    const status = asStoredBeside(pod.status, change.next);
    const expected = { ...before, resourceVersion, placement, status };
    if (!isDeepStrictEqual(expected, pod)) return false;
    // Its spec may have changed since the status was computed.
    if (change.runsOn && generation === change.next.observedGeneration) this.#settled.set(pod, change.runsOn);
    return true;
  }

  /**
   * Names of the modules of the Node's Pods whose last write failed, until one succeeds or the Pod is gone; none that
   * belongs to others.
   */
  unwrittenModules(nodeName: string): Set<string> {
    if (this.#unwritten.size === 0) return new Set();
    const pods = this.#options.informer.byIndex('node', nodeName);
    return new Set(pods.flatMap((pod) => ownNamesOf(pod, this.#unwritten.get(pod.uid))));
  }

  forget(pod: VPod): void {
    this.#unwritten.delete(pod.uid);
  }

  /**
   * Oldest Pod first, and a loss before the gain of the same module; side by side where that leaves it open. A Pod that
   * cannot be written keeps no other from it. `departing`: deleted Pods that load balancers still send requests to.
   */
  async write(
    nodeName: string,
    plan: BasePlan,
    facts: BaseFacts,
    departing: readonly VPod[],
  ): Promise<{ writes: number; errors: unknown[] }> {
    const changes = [...this.#changesOf(plan, facts), ...this.#failedKillsIn(plan)];
    changes.push(...departing.map((pod) => ({ pod, next: departingStatusOf(pod), views: [] })));
    changes.push(...this.#unwrittenIn(nodeName, changes));
    if (changes.length === 0) return { writes: 0, errors: [] };
    return this.#writeAll(inWriteOrder(changes), plan);
  }

  /** Unwritten changes of Pods that the plan shows no more: they have ended, or are being deleted. */
  #unwrittenIn(nodeName: string, changes: readonly Change[]): Change[] {
    if (this.#unwritten.size === 0) return [];
    const changed = new Set(changes.map(({ pod }) => pod.uid));
    return this.#options.informer.byIndex('node', nodeName).flatMap((pod) => {
      const unwritten = this.#unwritten.get(pod.uid);
      if (unwritten === undefined || changed.has(pod.uid)) return [];
      return [{ pod: this.remembered(pod), next: restated(unwritten, pod), views: [] }];
    });
  }

  async #writeAll(changes: readonly Change[], plan: BasePlan): Promise<{ writes: number; errors: unknown[] }> {
    const errors: unknown[] = [];
    if (!plan.hasRivals()) {
      for (const change of changes) if (!isTerminal({ status: change.next })) this.#writing.set(change.pod.uid, change);
    }
    const losses = new LossWrites();
    const written = changes.map((change) => {
      const isWritten = this.#writeAfter(losses.before(change), change, errors);
      losses.begin(change, isWritten);
      return isWritten;
    });
    await Promise.all(written);
    for (const { pod } of changes) this.#writing.delete(pod.uid);
    return { writes: changes.length, errors };
  }

  /**
   * Writes a change after another one: of two Pods with one module the new one is not Ready before the old one is not.
   * If the other one was not written, the next sync goes on.
   */
  async #writeAfter(before: Promise<boolean>, change: Change, errors: unknown[]): Promise<boolean> {
    if (!(await before)) return false;
    try {
      await this.#write(change);
      return true;
    } catch (error) {
      errors.push(error);
      return false;
    }
  }

  #changesOf(plan: BasePlan, facts: BaseFacts): Change[] {
    const { clock } = this.#options;
    let times: Pick<PodStatusInput, 'now' | 'nowText'> | undefined;
    const changes: Change[] = [];
    for (const [pod, views] of plan.views) {
      // Most Pods, with each plan of their base: computing their statuses again took an eighth of all new memory.
      const isRunning = facts.unreachable === undefined && views.every(({ view }) => view.kind === 'Running');
      if (isRunning && isSameBase(this.#settled.get(pod), facts)) continue;
      times ??= { now: clock.now(), nowText: secondsTime(clock.wallTime()) };
      const next = computePodStatus({ pod, views, base: facts, ...times });
      const unwritten = this.#unwritten.get(pod.uid);
      if (next !== pod.status) changes.push({ pod, next, views, runsOn: isRunning ? facts : undefined });
      else if (unwritten) changes.push({ pod, next: restated(unwritten, pod), views });
      else if (isRunning) this.#settled.set(pod, facts);
    }
    return changes;
  }

  #failedKillsIn(plan: BasePlan): Change[] {
    const changes: Change[] = [];
    for (const [pod, message] of plan.failedKills) {
      const isReported = pod.status.reason === 'FailedKillPod' && pod.status.message === message;
      if (isReported && !this.#unwritten.has(pod.uid)) continue;
      changes.push({ pod, next: { ...pod.status, reason: 'FailedKillPod', message }, views: [] });
      if (!isReported) this.#options.recorder.event(podSubject(pod), 'Warning', 'FailedKillPod', message);
    }
    return changes;
  }

  async #write(change: Change): Promise<void> {
    const { pod, next } = change;
    const { api, informer, metrics, leadership } = this.#options;
    const stored = this.#stored(pod);
    // It may have waited for another write, while others wrote conditions of theirs.
    const patch = stored ? podStatusPatchOf(stored, restated(next, stored)) : podStatusPatchOf(pod, next);
    try {
      // Empty when the write before was carried out and only its answer was lost.
      if (Object.keys(patch.status).length > 0) {
        informer.upsert(
          await api.patchPodStatus(pod.namespace, pod.name, patch, () => leadership.isHeld(pod.nodeName ?? '')),
        );
        metrics.podStatusWrites.inc({ result: 'ok' });
      }
      this.#unwritten.delete(pod.uid);
      this.#report(change);
    } catch (error) {
      metrics.podStatusWrites.inc({ result: 'error' });
      // Gone, or another Pod by now: the watch shows it.
      if (isNotFound(error) || isInvalidUid(error)) {
        this.#unwritten.delete(pod.uid);
        return;
      }
      if (isNotPermitted(error)) throw error;
      // Of a Pod that has gone meanwhile nobody would ever empty it.
      if (this.#stored(pod)) this.#unwritten.set(pod.uid, next);
      this.#report(change);
      throw error;
    }
  }

  /** The Pod as the API server is known to have it; undefined once it has gone. */
  #stored(pod: VPod): VPod | undefined {
    const stored = this.#options.informer.get(objectKey(pod));
    return stored?.uid === pod.uid ? stored : undefined;
  }

  /** With the first status of the Pod, so that a restart of this process repeats nothing. */
  #reportIgnored(pod: VPod): void {
    const { ignored, status } = pod;
    if (ignored === undefined || status.containerStatuses.length > 0) return;
    // In another namespace anybody may write the UID of a foreign owner.
    const owner = `${pod.namespace}/${ignored.ownerUid}`;
    if (this.#reportedOwners.get(owner)) return;
    this.#reportedOwners.getOrCreate(owner, () => true);
    const message = `No effect on a module: ${ignored.fields}. The Pod is Ready while the base reports that its module serves`;
    this.#options.recorder.event(podSubject(pod), 'Warning', 'FieldsIgnored', message);
  }

  #report({ pod, next, views }: Change): void {
    this.#reportIgnored(pod);
    for (const { type, reason, message } of podEventsOf(pod, next, views)) {
      this.#options.recorder.event(podSubject(pod), type, reason, message);
    }
  }
}

/** Whether two bases that are reachable are the same one. */
function isSameBase(one: BaseFacts | undefined, other: BaseFacts): boolean {
  return one?.identity === other.identity && one.ip === other.ip && one.isRoutable === other.isRoutable;
}

/** What could not be written, once more: others may have written conditions of theirs meanwhile. */
function restated(unwritten: VPodStatus, pod: VPod): VPodStatus {
  return { ...unwritten, conditions: withOwnConditionsOf(unwritten, pod.status) };
}

/** The writes of Pods that lose a module: a Pod that becomes Ready with a module of that name waits for all of them. */
export class LossWrites {
  /** Whether all writes so far succeeded, by the name of the module. */
  readonly #byName = new Map<string, Promise<boolean>>();

  /** False where a Pod that goes before could not be written: then this one must not be written either. */
  async before(change: StatusChange): Promise<boolean> {
    if (this.#byName.size === 0 || !gainsReady(change)) return true;
    const written = await Promise.all(namesOf(change).map((name) => this.#byName.get(name)));
    return !written.includes(false);
  }

  /** `isWritten` must not reject. */
  begin(change: StatusChange, isWritten: Promise<boolean>): void {
    if (!losesReady(change)) return;
    for (const name of namesOf(change)) {
      const before = this.#byName.get(name);
      const all =
        before !== undefined ? Promise.all([before, isWritten]).then((results) => !results.includes(false)) : isWritten;
      this.#byName.set(name, all);
    }
  }
}
