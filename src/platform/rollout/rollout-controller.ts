import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import { type ModulePod, sharingOf } from '../../kinds/module-pod.ts';
import { completePod } from '../../kinds/pod-defaults.ts';
import { type CachedNode, isReadyNode } from '../../kinds/vnode-object.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import { mergePatchOf } from '../../kube/merge-patch.ts';
import { fitsNode, placementOf } from '../../kube/placement.ts';
import type { ResourceClient } from '../../kube/resource.ts';
import { isNotFound } from '../../kube/transport/api-error.ts';
import type { Permit } from '../../kube/transport/rest-lane.ts';
import { type Informer, objectKey } from '../../kube/watch/informer-types.ts';
import { ANNOTATION, REVISION_LABEL } from '../../labels.ts';
import type { Logger } from '../../logger.ts';
import type { Result } from '../../reconcile/reconciler.ts';
import { type BatchState, batchState, confirmedBatch } from './batches.ts';
import { EndedPods } from './ended-pods.ts';
import { FirstSeen } from './first-seen.ts';
import {
  type CachedModuleDeployment,
  type ModuleDeploymentObject,
  replicasOf,
  selectorOf,
  subjectOf,
} from './module-deployment.ts';
import { PeerScaling } from './peer-scaling.ts';
import type { PodStore } from './pod-store.ts';
import type { Revision } from './revision.ts';
import type { RevisionStore } from './revision-store.ts';
import { rollBack } from './rollback.ts';
import {
  confirmationEvents,
  type Deletion,
  deletionEvent,
  progressEvents,
  type RolloutEvent,
  scalingEvents,
} from './rollout-events.ts';
import { limitsOf, type PodCreation, planRollout, type RolloutPlan } from './rollout-plan.ts';
import { conditionOf, isReadyPod, type PodCounts, statusOf } from './rollout-status.ts';

export interface RolloutControllerOptions {
  readonly deployments: Pick<Informer<CachedModuleDeployment>, 'get' | 'upsert'>;
  readonly nodes: Pick<Informer<CachedNode>, 'get' | 'list'>;
  readonly client: ResourceClient<ModuleDeploymentObject>;
  readonly pods: PodStore;
  readonly revisions: RevisionStore;
  /** Asked at the last moment before each write. */
  readonly permit: Permit;
  /** ENV of Pods whose template does not name one. */
  readonly env: string;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
}

const DEFAULT_DEADLINE_SECONDS = 600;
/** Pods are created in groups of 1, 2, 4, …: a template that the API server refuses costs one call. */
const MAX_AT_ONCE = 64;

/** A ModuleDeployment with what one reconcile has found out about it. */
interface Rollout {
  readonly deployment: CachedModuleDeployment;
  readonly update: Revision;
  readonly current: Revision | undefined;
  readonly collisions: number | undefined;
  readonly seen: FirstSeen;
}

interface Failure {
  readonly reason: 'FailedCreate' | 'FailedDelete';
  readonly message: string;
  readonly error: unknown;
}

/**
 * Keeps the Pods of ModuleDeployments. Each reconcile decides one step from what there is (`planRollout`), takes it,
 * and writes the status; the events of Pods bring the next one. Killed at any point, another process goes on.
 */
export class RolloutController {
  readonly #options: RolloutControllerOptions;
  /**
   * First sightings by the key of the ModuleDeployment, with the UID that they are about. Emptied as ModuleDeployments
   * go.
   */
  readonly #seen = new Map<string, { readonly uid: string; readonly firstSeen: FirstSeen }>();
  readonly #ended: EndedPods;
  readonly #peers: PeerScaling;

  constructor(options: RolloutControllerOptions) {
    this.#options = options;
    this.#ended = new EndedPods(options.clock);
    this.#peers = new PeerScaling(options);
  }

  /** `key`: of the ModuleDeployment. */
  async reconcile(key: string): Promise<Result | undefined> {
    const deployment = this.#options.deployments.get(key);
    const seen = this.#seenOf(key, deployment?.uid);
    if (deployment === undefined || seen === undefined || deployment.isDeleting) return undefined;
    const { pods, revisions } = this.#options;
    const report = (event: RolloutEvent): void => this.#event(deployment, ...event);
    const followed = await this.#peers.follow(deployment, report);
    if (followed !== undefined) return followed;
    if (deployment.spec.rollbackTo !== undefined) {
      const { client, permit } = this.#options;
      const history = revisions.historyOf(deployment);
      await rollBack(deployment, { client, history, permit, report });
      return undefined;
    }
    let update = revisions.newestOf(deployment);
    let collisions = deployment.status?.collisionCount;
    if (update === undefined) {
      // A confirmation is of the rollout that it was given for.
      if (await this.#removeConfirmation(deployment)) return undefined;
      const recorded = await revisions.record(deployment);
      update = recorded.revision;
      if (recorded.collisions > 0) ({ collisions } = recorded);
    }
    await pods.settle(deployment);
    for (const { name } of await pods.claim(deployment))
      this.#event(deployment, 'Normal', 'Adopted', `took over Pod ${name}`);
    const rollout = { deployment, update, current: this.#currentOf(deployment, update), collisions, seen };
    return this.#advance(rollout);
  }

  /** Takes one step, and writes the status that it leads to. */
  async #advance(rollout: Rollout): Promise<Result | undefined> {
    const { deployment, seen } = rollout;
    const { pods } = this.#options;
    const ended = await this.#replaceEnded(rollout);
    let plan = this.#planOf(rollout);
    if (plan.deletions.length > 0 && !pods.isChecked(deployment)) {
      await pods.check(deployment);
      plan = this.#planOf(rollout);
    }
    const confirmation = isInBatches(rollout) ? confirmationEvents(deployment) : [];
    for (const event of [...scalingEvents(deployment, rollout.update), ...confirmation])
      this.#event(deployment, ...event);
    const failure = ended.failure ?? (await this.#carryOut(rollout, plan));
    const waits = await this.#writeStatus(rollout, failure);
    seen.retain(new Set([...PROGRESS_MARKS, ...pods.podsOf(deployment).map(({ uid }) => uid)]));
    if (failure) throw failure.error;
    await this.#prune(rollout);
    const waitMs = Math.min(ended.waitMs, ...waits, pods.unseenMs(deployment) ?? Number.POSITIVE_INFINITY);
    return Number.isFinite(waitMs) ? { requeueAfterMs: waitMs } : undefined;
  }

  /** Deletes Pods that have ended, unless they have to wait: their replacements are in the next plan. */
  async #replaceEnded({ deployment, update }: Rollout): Promise<{ failure?: Failure | undefined; waitMs: number }> {
    const ended = this.#options.pods.podsOf(deployment).filter(({ isTerminal }) => isTerminal);
    if (ended.length === 0) return { waitMs: Number.POSITIVE_INFINITY };
    const waitMs = this.#ended.waitMs(deployment.uid, update.hash);
    if (waitMs > 0) return { waitMs };
    this.#ended.replaced(deployment.uid, update.hash);
    const deletions = ended.map((pod) => ({ pod, why: 'Ended' as const }));
    return { failure: await this.#delete(deployment, deletions), waitMs: Number.POSITIVE_INFINITY };
  }

  #planOf(rollout: Rollout): RolloutPlan {
    const { deployment, update, current } = rollout;
    const { spec } = deployment;
    const { status, batch } = this.#statusOf(rollout, undefined);
    const progress = conditionOf(status, 'Progressing');
    const replicas = replicasOf(deployment.spec);
    // Nothing more is replaced while it is paused, or after a rollout has failed.
    const isFrozen = progress?.reason === 'Paused' || progress?.reason === 'ProgressDeadlineExceeded';
    const limit = isFrozen ? status.updatedReplicas : (batch?.updatedLimit ?? replicas);
    const { nodes } = this.#options;
    const template = completePod(spec.template, this.#options.env);
    const placement = placementOf(template.spec);
    return planRollout({
      replicas,
      limits: limitsOf(spec.strategy ?? {}, replicas),
      pods: this.#options.pods.podsOf(deployment),
      updateRevision: update.hash,
      currentRevision: current?.hash,
      updatedLimit: limit,
      template: sharingOf(template.metadata, template.spec),
      isAvailable: (pod) => this.#availableInMs(rollout, pod) === 0,
      isUsable: (name) => {
        const node = nodes.get(name);
        return node !== undefined && !node.isDeleting && isReadyNode(node) && fitsNode(placement, node);
      },
    });
  }

  /** Deletes, then creates. Stops at the first failure and returns it. */
  async #carryOut({ deployment, update, current }: Rollout, plan: RolloutPlan): Promise<Failure | undefined> {
    const { pods, env } = this.#options;
    const failure = await this.#delete(deployment, plan.deletions);
    if (failure) return failure;
    const templates = new Map([current, update].flatMap((one) => (one?.template ? [[one.hash, one.template]] : [])));
    const names = pods.namesOf(
      deployment,
      plan.creations.map(({ revision }) => revision),
    );
    const create = async ({ revision: hash, replaces }: PodCreation, name: string): Promise<void> => {
      const template = templates.get(hash) ?? deployment.spec.template;
      await pods.create(deployment, { name, hash, template: completePod(template, env), replaces });
      this.#event(deployment, 'Normal', 'SuccessfulCreate', `created Pod ${name}`);
    };
    let done = 0;
    for (let size = 1; done < plan.creations.length; size = Math.min(2 * size, MAX_AT_ONCE)) {
      const group = plan.creations.slice(done, done + size);
      const results = await Promise.allSettled(group.map((one, index) => create(one, names[done + index] ?? '')));
      const failed = results.find((result) => result.status === 'rejected');
      if (failed) return this.#failed(deployment, ['Warning', 'FailedCreate'], 'a Pod', failed.reason);
      done += group.length;
    }
    return undefined;
  }

  async #delete(deployment: CachedModuleDeployment, deletions: readonly Deletion[]): Promise<Failure | undefined> {
    const { pods, logger } = this.#options;
    for (const { pod, why } of deletions) {
      try {
        await pods.delete(deployment, pod);
      } catch (error) {
        return this.#failed(deployment, ['Warning', 'FailedDelete'], `Pod ${pod.name}`, error);
      }
      logger.debug({ deployment: objectKey(deployment), pod: pod.name, why }, 'pod deleted');
      this.#event(deployment, ...deletionEvent(pod, why));
    }
    return undefined;
  }

  #failed(
    deployment: CachedModuleDeployment,
    [type, reason]: readonly ['Warning', Failure['reason']],
    what: string,
    error: unknown,
  ): Failure {
    const message = `${what}: ${messageOf(error)}`;
    this.#event(deployment, type, reason, message);
    return { reason, message, error };
  }

  /** Returns after how many ms the next look is due. */
  async #writeStatus(rollout: Rollout, failure: Failure | undefined): Promise<number[]> {
    const { deployment } = rollout;
    const { client, deployments, permit } = this.#options;
    const { status, waits } = this.#statusOf(rollout, failure);
    const before = deployment.status;
    if (isDeepStrictEqual(status, before)) return waits;
    const patch = { status: mergePatchOf(before ?? {}, status) };
    try {
      deployments.upsert(await client.mergePatch(deployment, patch, { subresource: 'status', permit }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return [];
    }
    for (const event of progressEvents(deployment, rollout.update, status)) this.#event(deployment, ...event);
    return waits;
  }

  #statusOf(rollout: Rollout, failure: Failure | undefined) {
    const { deployment, update, current, collisions, seen } = rollout;
    const { spec, generation, status: before } = deployment;
    const { clock } = this.#options;
    const wanted = replicasOf(deployment.spec);
    const { counts, old, availableInMs } = this.#countsOf(rollout);
    const batch = this.#batchOf(rollout, counts, old);
    const deadlineSeconds = spec.progressDeadlineSeconds ?? DEFAULT_DEADLINE_SECONDS;
    const last = conditionOf(before, 'Progressing');
    const sinceProgressMs = seen.ageMs(PROGRESS_MARK, `${update.hash} ${last?.lastUpdateTime}`);
    const status = statusOf({
      generation,
      wanted,
      maxUnavailable: limitsOf(spec.strategy ?? {}, wanted).maxUnavailable,
      counts,
      update,
      current: current?.hash,
      selector: selectorOf(spec),
      before,
      collisions,
      batch: batch?.status,
      isPaused: spec.paused ?? false,
      deadlineSeconds,
      sinceProgressMs,
      failure: failure && { reason: failure.reason, message: failure.message },
      now: clock.wallTime(),
    });
    const waits = [...availableInMs];
    const progress = conditionOf(status, 'Progressing');
    const isUnderWay = progress?.status === 'True' && progress.reason !== 'RolloutComplete';
    const leftMs = deadlineSeconds * 1000 - sinceProgressMs;
    if (isUnderWay && leftMs > 0) waits.push(leftMs);
    if (batch?.waitMs !== undefined) waits.push(batch.waitMs);
    return { status, batch, waits };
  }

  #batchOf(rollout: Rollout, counts: PodCounts, old: number): BatchState | undefined {
    const { deployment, update, seen } = rollout;
    const { spec, status } = deployment;
    if (!isInBatches(rollout)) return undefined;
    const before = status?.updateRevision === update.hash ? status.batch : undefined;
    return batchState({
      options: spec.strategy?.batch ?? {},
      replicas: replicasOf(deployment.spec),
      updatedAvailable: counts.updatedAvailable,
      old,
      confirmed: confirmedBatch(deployment.confirmBatch) ?? 0,
      before,
      completedForMs: seen.ageMs(BATCH_MARK, `${update.hash} ${before?.completed} ${before?.completedTime}`),
      now: this.#options.clock.wallTime(),
    });
  }

  #countsOf(rollout: Rollout): { counts: PodCounts; old: number; availableInMs: number[] } {
    const { deployment, update } = rollout;
    const live = this.#options.pods.podsOf(deployment).filter(({ isDeleting }) => !isDeleting);
    const waits = new Map(live.map((pod) => [pod, this.#availableInMs(rollout, pod)]));
    const isUpdated = ({ labels }: ModulePod): boolean => labels[REVISION_LABEL] === update.hash;
    const isAvailable = (pod: ModulePod): boolean => waits.get(pod) === 0;
    const updated = live.filter(isUpdated);
    return {
      counts: {
        replicas: live.length,
        updated: updated.length,
        ready: live.filter(isReadyPod).length,
        available: live.filter(isAvailable).length,
        updatedAvailable: updated.filter(isAvailable).length,
      },
      old: live.length - updated.length,
      availableInMs: [...waits.values()].filter((ms) => ms > 0 && Number.isFinite(ms)),
    };
  }

  /** 0: it is available. Infinity: it is not ready. */
  #availableInMs({ deployment, seen }: Rollout, pod: ModulePod): number {
    if (!isReadyPod(pod)) return Number.POSITIVE_INFINITY;
    const wantedMs = (deployment.spec.minReadySeconds ?? 0) * 1000;
    return wantedMs === 0 ? 0 : Math.max(0, wantedMs - seen.ageMs(pod.uid, String(pod.readyChangedAt)));
  }

  /** The template that Pods have until it is the turn of the newest one. */
  #currentOf(deployment: CachedModuleDeployment, update: Revision): Revision | undefined {
    const { pods, revisions } = this.#options;
    const history = revisions.historyOf(deployment);
    const written = history.find(({ hash }) => hash === deployment.status?.currentRevision);
    if (written) return written;
    const hashes = pods.podsOf(deployment).map(({ labels }) => labels[REVISION_LABEL]);
    return history.findLast(({ hash }) => hash !== update.hash && hashes.includes(hash));
  }

  async #prune({ deployment, update, current }: Rollout): Promise<void> {
    const { pods, revisions } = this.#options;
    const needed = new Set([update.hash, current?.hash ?? '']);
    for (const { labels } of pods.podsOf(deployment)) needed.add(labels[REVISION_LABEL] ?? '');
    await revisions.prune(deployment, needed);
  }

  async #removeConfirmation(deployment: CachedModuleDeployment): Promise<boolean> {
    const { client, permit } = this.#options;
    if (deployment.confirmBatch === undefined) return false;
    const metadata = { resourceVersion: deployment.resourceVersion, annotations: { [ANNOTATION.confirmBatch]: null } };
    await client.mergePatch(deployment, { metadata }, { permit });
    return true;
  }

  #event(deployment: CachedModuleDeployment, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#options.recorder.event(subjectOf(deployment), type, reason, message);
  }

  /** Forgets what belonged to another incarnation. */
  #seenOf(key: string, uid: string | undefined): FirstSeen | undefined {
    const { clock, pods, revisions } = this.#options;
    const known = this.#seen.get(key);
    if (known !== undefined && known.uid === uid) return known.firstSeen;
    if (known !== undefined) {
      pods.forget(known.uid);
      revisions.forget(known.uid);
      this.#peers.forget(known.uid);
      this.#ended.forget(known.uid);
      this.#seen.delete(key);
    }
    if (uid === undefined) return undefined;
    const firstSeen = new FirstSeen(clock);
    this.#seen.set(key, { uid, firstSeen });
    return firstSeen;
  }
}

/** Whether a rollout in batches is under way. */
function isInBatches({ deployment, update, current }: Rollout): boolean {
  return deployment.spec.strategy?.type === 'Batch' && current !== undefined && current.hash !== update.hash;
}

const PROGRESS_MARK = 'progress';
const BATCH_MARK = 'batch';
const PROGRESS_MARKS = [PROGRESS_MARK, BATCH_MARK];
