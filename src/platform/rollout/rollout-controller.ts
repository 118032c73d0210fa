import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import { completePod } from '../../kinds/pod-defaults.ts';
import type { CachedNode } from '../../kinds/vnode-object.ts';
import { MODULE_DEPLOYMENTS } from '../../kinds/workload-kinds.ts';
import { subjectOf } from '../../kube/events/event-object.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import { mergePatchOf } from '../../kube/merge-patch.ts';
import type { ResourceClient } from '../../kube/resource.ts';
import { isConflict, isNotFound, isRetriable } from '../../kube/transport/api-error.ts';
import type { Permit } from '../../kube/transport/rest-lane.ts';
import { type Informer, objectKey } from '../../kube/watch/informer-types.ts';
import { ANNOTATION, REVISION_LABEL } from '../../labels.ts';
import type { Logger } from '../../logger.ts';
import { type Result, TerminalError } from '../../reconcile/reconciler.ts';
import { BaseFinder } from './base-finder.ts';
import { EndedPods } from './ended-pods.ts';
import { FirstSeen } from './first-seen.ts';
import {
  type CachedModuleDeployment,
  type ModuleDeploymentObject,
  type ModuleDeploymentStatus,
  replicasOf,
  selectorOf,
} from './module-deployment.ts';
import { PeerScaling } from './peer-scaling.ts';
import type { PodStore } from './pod-store.ts';
import { PodWriter, type Step } from './pod-writer.ts';
import type { Revision } from './revision.ts';
import type { RevisionStore } from './revision-store.ts';
import { rollBack } from './rollback.ts';
import { confirmationEvents, progressEvents, type RolloutEvent, scalingEvents } from './rollout-events.ts';
import {
  countsOf,
  factsOf,
  isRollingOut,
  notePods,
  noteRollout,
  type Rollout,
  type RolloutFacts,
} from './rollout-facts.ts';
import { limitsOf } from './rollout-limits.ts';
import { planRollout, type RolloutPlan } from './rollout-plan.ts';
import { type Failure, failedStatusOf, statusOf } from './rollout-status.ts';
import { templateTypeFaultsOf } from './template-faults.ts';

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

/** What one reconcile works with. */
interface Work extends Rollout {
  readonly collisions: number | undefined;
  readonly seen: FirstSeen;
  readonly report: (event: RolloutEvent) => void;
}

/** There is more to do: the key goes to the end of the queue. */
const AGAIN: Result = { requeueAfterMs: 0 };

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
  readonly #bases: BaseFinder;
  readonly #writer: PodWriter;
  /** Templates without a fault. The garbage collector removes those that no cache holds. */
  readonly #checked = new WeakSet<object>();

  constructor(options: RolloutControllerOptions) {
    this.#options = options;
    const { env } = options;
    this.#ended = new EndedPods(options.clock);
    this.#peers = new PeerScaling(options);
    this.#bases = new BaseFinder(options);
    this.#writer = new PodWriter({ ...options, complete: (template) => completePod(template, env) });
  }

  /** `key`: of the ModuleDeployment. */
  async reconcile(key: string): Promise<Result | undefined> {
    const deployment = this.#options.deployments.get(key);
    const seen = this.#seenOf(key, deployment?.uid);
    if (deployment === undefined || seen === undefined || deployment.isDeleting) return undefined;
    const report = (event: RolloutEvent): void =>
      this.#options.recorder.event(subjectOf(MODULE_DEPLOYMENTS, deployment), ...event);
    try {
      return await this.#reconcile(deployment, seen, report);
    } catch (error) {
      if (!(error instanceof StepFailed)) await this.#writeFailure({ deployment, seen, report }, error);
      throw error instanceof StepFailed ? error.cause : error;
    }
  }

  async #reconcile(
    deployment: CachedModuleDeployment,
    seen: FirstSeen,
    report: (event: RolloutEvent) => void,
  ): Promise<Result | undefined> {
    const { client, permit, pods, revisions } = this.#options;
    const typeFault = this.#typeFaultOf(deployment);
    if (typeFault !== undefined) throw new TerminalError('Rollout.TemplateInvalid', typeFault);
    const followed = await this.#peers.follow(deployment, report);
    if (followed !== undefined) return followed;
    if (deployment.spec.rollbackTo !== undefined) {
      await rollBack(deployment, { client, history: revisions.historyOf(deployment), permit, report });
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
    for (const { name } of await pods.claim(deployment)) report(['Normal', 'Adopted', `took over Pod ${name}`]);
    const current = this.#currentOf(deployment, update);
    return this.#advance({ deployment, update, current, collisions, seen, report, pods: pods.podsOf(deployment) });
  }

  /** Whether something cannot be read of a template that an earlier schema let through. */
  #typeFaultOf({ spec: { template } }: CachedModuleDeployment): string | undefined {
    if (!this.#checked.has(template)) {
      const [fault] = templateTypeFaultsOf(template);
      if (fault !== undefined) return fault;
      this.#checked.add(template);
    }
    return undefined;
  }

  /** Takes one step, and writes the status that it leads to. */
  async #advance(found: Work): Promise<Result | undefined> {
    const { deployment, update, report } = found;
    const { pods } = this.#options;
    const ended = await this.#replaceEnded(found);
    let work = ended.isDone ? this.#look(found) : found;
    let facts = this.#factsOf(work);
    let plan = this.#planOf(work, facts);
    if (plan.deletions.length > 0 && !pods.isChecked(deployment)) {
      await pods.check(deployment);
      work = this.#look(work);
      facts = this.#factsOf(work);
      plan = this.#planOf(work, facts);
    }
    for (const event of [...scalingEvents(deployment, update), ...confirmationEvents(facts.batch)]) report(event);
    const step = ended.failure === undefined ? await this.#carryOut(work, plan) : { ...ended, isPart: false };
    if (plan.deletions.length + plan.creations.length > 0) {
      work = this.#look(work);
      facts = this.#factsOf(work);
    }
    await this.#writeStatus(work, facts, { failure: step.failure, waiting: plan.waiting });
    // Also where the API server refuses the Pods: then nothing else would end the rollout.
    await this.#rollBackFailed(work, facts);
    if (step.failure) throw new StepFailed(step.failure.error);
    await this.#prune(work);
    if (step.isPart) return AGAIN;
    const waitMs = Math.min(ended.waitMs, ...facts.waits, pods.unseenMs(deployment) ?? Number.POSITIVE_INFINITY);
    return Number.isFinite(waitMs) ? { requeueAfterMs: waitMs } : undefined;
  }

  /** With the Pods as they are now. */
  #look(work: Work): Work {
    return { ...work, pods: this.#options.pods.podsOf(work.deployment) };
  }

  #factsOf(work: Work): RolloutFacts {
    const { deployment, update, seen } = work;
    const now = this.#options.clock.wallTime();
    noteRollout(work, { seen, now });
    const template = update.template ?? deployment.spec.template;
    return factsOf(work, { seen, now, hasBaseLeft: (taken) => this.#bases.hasOneLeft(template, taken) });
  }

  /** Deletes Pods that have ended, unless they have to wait: their replacements are in the next plan. */
  async #replaceEnded({ deployment, update, pods, report }: Work) {
    const ended = pods.filter(({ isTerminal }) => isTerminal);
    const waitMs = ended.length === 0 ? Number.POSITIVE_INFINITY : this.#ended.waitMs(deployment.uid, update.hash);
    if (waitMs > 0) return { waitMs, isDone: false };
    this.#ended.replaced(deployment.uid, update.hash);
    const deletions = ended.map((pod) => ({ pod, why: 'Ended' as const }));
    const { failure } = await this.#writer.delete(deployment, deletions, report);
    return { failure, waitMs: Number.POSITIVE_INFINITY, isDone: true };
  }

  #planOf(work: Work, facts: RolloutFacts): RolloutPlan {
    const { deployment, update } = work;
    const { counts, batch, progress, isWaitingForBase, isAvailable, isReturning } = facts;
    const { spec, uid } = deployment;
    const replicas = replicasOf(spec);
    // One Pod goes on trying, so that a rollout that has stopped can go on when it serves.
    const isStopped = progress.reason === 'ProgressDeadlineExceeded';
    const isWaiting = progress.reason === 'Paused' || isWaitingForBase;
    const limit = isWaiting ? counts.updated : Math.max(counts.updatedAvailable + 1, counts.updated);
    const former = isRollingOut(work) ? this.#formerOf(work, isAvailable) : undefined;
    const planned = ({ hash, template = spec.template }: Revision) => this.#bases.planned({ hash, template, uid });
    return planRollout({
      replicas,
      limits: limitsOf(spec.strategy ?? {}, replicas),
      pods: work.pods,
      update: planned(update),
      former: former && planned(former),
      updatedLimit: isStopped || isWaiting ? limit : (batch?.updatedLimit ?? replicas),
      isAvailable,
      isReturning,
    });
  }

  /**
   * The template with which lost Pods come back: that of the last whole rollout, or where no base fits it any more,
   * another one that serves.
   */
  #formerOf(
    { deployment, update, current, pods }: Work,
    isAvailable: RolloutFacts['isAvailable'],
  ): Revision | undefined {
    if (current?.template === undefined || this.#bases.hasOneLeft(current.template, new Set())) return current;
    const serving = Map.groupBy(pods.filter(isAvailable), ({ labels }) => labels[REVISION_LABEL]);
    const count = ({ hash }: Revision): number => serving.get(hash)?.length ?? 0;
    const [other] = this.#options.revisions
      .historyOf(deployment)
      .filter((revision) => revision.hash !== update.hash && count(revision) > 0)
      .filter(({ template }) => template !== undefined && this.#bases.hasOneLeft(template, new Set()))
      .toSorted((a, b) => count(b) - count(a));
    return other ?? current;
  }

  #carryOut({ deployment, update, current, report }: Work, plan: RolloutPlan): Promise<Step> {
    const history = [...this.#options.revisions.historyOf(deployment), ...(current ? [current] : []), update];
    const templates = new Map(history.flatMap(({ hash, template }) => (template ? [[hash, template]] : [])));
    return this.#writer.carryOut(deployment, plan, templates, report);
  }

  async #writeStatus(
    work: Work,
    facts: RolloutFacts,
    { failure, waiting }: { readonly failure: Failure | undefined; readonly waiting: number },
  ): Promise<void> {
    const { deployment, update, current, collisions, report } = work;
    const { spec, generation, status: before } = deployment;
    const wanted = replicasOf(spec);
    const status = statusOf({
      ...facts,
      generation,
      wanted,
      maxUnavailable: limitsOf(spec.strategy ?? {}, wanted).maxUnavailable,
      update,
      current: current?.hash,
      selector: selectorOf(spec),
      before,
      collisions,
      batch: facts.batch?.status,
      isPaused: spec.paused ?? false,
      isRecreated: spec.strategy?.type === 'Recreate',
      failure: failure && { reason: failure.reason, message: failure.message },
      waiting,
      now: this.#options.clock.wallTime(),
    });
    const isWritten = await this.#patchStatus(deployment, status);
    if (isWritten) for (const event of progressEvents(deployment, update, status)) report(event);
  }

  async #patchStatus(deployment: CachedModuleDeployment, status: ModuleDeploymentStatus): Promise<boolean> {
    const { client, deployments, permit } = this.#options;
    const before = deployment.status;
    if (isDeepStrictEqual(status, before)) return false;
    const patch = { status: mergePatchOf(before ?? {}, status) };
    try {
      deployments.upsert(await client.mergePatch(deployment, patch, { subresource: 'status', permit }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return false;
    }
    return true;
  }

  /** Asks for what a person would ask for, so that one path carries it out. */
  async #rollBackFailed({ deployment, update, current, report }: Work, { progress }: RolloutFacts): Promise<void> {
    const { client, deployments, permit } = this.#options;
    const { spec } = deployment;
    const isWhole = current !== undefined && current.hash === deployment.status?.currentRevision;
    const isDue = spec.onFailure === 'Rollback' && progress.reason === 'ProgressDeadlineExceeded';
    if (!isDue || !isWhole || current.hash === update.hash) return;
    const { resourceVersion } = deployments.get(objectKey(deployment)) ?? deployment;
    const rollbackTo = { revision: current.number };
    await client.mergePatch(deployment, { metadata: { resourceVersion }, spec: { rollbackTo } }, { permit });
    report(['Normal', 'RollbackStarted', `revision ${update.number} made no progress: back to ${current.number}`]);
  }

  /** Shows an error that is no accident of the moment, such as a quota or a template that cannot be read. */
  async #writeFailure(
    { deployment, seen, report }: Pick<Work, 'deployment' | 'seen' | 'report'>,
    error: unknown,
  ): Promise<void> {
    if (isRetriable(error) || isConflict(error) || isNotFound(error)) return;
    const { clock, logger, pods: store, revisions } = this.#options;
    const message = messageOf(error);
    report(['Warning', 'ReconcileFailed', message]);
    const { generation, spec, status } = deployment;
    const failure = { reason: 'ReconcileFailed', message } as const;
    const now = clock.wallTime();
    const wanted = replicasOf(spec);
    const { maxUnavailable } = limitsOf(spec.strategy ?? {}, wanted);
    const pods = store.podsOf(deployment);
    notePods(pods, { seen, now });
    const hash = this.#typeFaultOf(deployment) === undefined ? revisions.newestOf(deployment)?.hash : undefined;
    const counts = countsOf({ deployment, pods }, hash, seen);
    const selector = selectorOf(spec);
    try {
      const failed = failedStatusOf(status, { generation, wanted, maxUnavailable, counts, selector, failure, now });
      await this.#patchStatus(deployment, failed);
    } catch (err) {
      logger.debug({ err, deployment: deployment.name }, 'status of a failed reconcile could not be written');
    }
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

  async #prune({ deployment, update, current, pods }: Work): Promise<void> {
    const needed = new Set([update.hash, current?.hash ?? '']);
    for (const { labels } of pods) needed.add(labels[REVISION_LABEL] ?? '');
    await this.#options.revisions.prune(deployment, needed);
  }

  async #removeConfirmation(deployment: CachedModuleDeployment): Promise<boolean> {
    const { client, permit } = this.#options;
    if (deployment.confirmBatch === undefined) return false;
    const metadata = { resourceVersion: deployment.resourceVersion, annotations: { [ANNOTATION.confirmBatch]: null } };
    await client.mergePatch(deployment, { metadata }, { permit });
    return true;
  }

  /** Forgets what belonged to another incarnation. */
  #seenOf(key: string, uid: string | undefined): FirstSeen | undefined {
    const { clock, pods, revisions } = this.#options;
    const known = this.#seen.get(key);
    if (known !== undefined && known.uid === uid) return known.firstSeen;
    if (known !== undefined) {
      for (const part of [pods, revisions, this.#peers, this.#ended, this.#writer]) part.forget(known.uid);
      this.#seen.delete(key);
    }
    if (uid === undefined) return undefined;
    const firstSeen = new FirstSeen(clock);
    this.#seen.set(key, { uid, firstSeen });
    return firstSeen;
  }
}

/** A step whose failure is in the status already. */
class StepFailed extends Error {
  constructor(cause: unknown) {
    super('a step failed', { cause });
  }
}
