import type { ModulePod } from '../../kinds/module-pod.ts';
import { REVISION_LABEL } from '../../labels.ts';
import { type BatchState, batchState } from './batches.ts';
import type { FirstSeen } from './first-seen.ts';
import {
  type CachedModuleDeployment,
  DEFAULT_DEADLINE_SECONDS,
  type ModuleDeploymentSpec,
  replicasOf,
} from './module-deployment.ts';
import type { Revision } from './revision.ts';
import { baseOf } from './rollout-state.ts';
import { conditionOf, isReadyPod, type PodCounts, type Progress, progressOf } from './rollout-status.ts';

/** A Pod that has run and is not Ready is not replaced before: its base may be starting again. */
const RETURN_MS = 60_000;

/** A ModuleDeployment, its Pods, and the templates that these may have. */
export interface Rollout {
  readonly deployment: CachedModuleDeployment;
  readonly update: Revision;
  /** The template that Pods have until it is the turn of the newest one. */
  readonly current: Revision | undefined;
  readonly pods: readonly ModulePod[];
}

export interface FactsContext {
  readonly seen: FirstSeen;
  /** Whether some base that has no Pod of the newest template fits it. `taken`: names of those that have one. */
  readonly hasBaseLeft: (taken: ReadonlySet<string | undefined>) => boolean;
  readonly now: Date;
}

/** What one look at a ModuleDeployment and its Pods has found. */
export interface RolloutFacts {
  readonly counts: PodCounts;
  readonly batch: BatchState | undefined;
  readonly progress: Progress;
  readonly isWaitingForBase: boolean;
  readonly isWaitingForDelete: boolean;
  /** What one Pod of the newest template waits for, in words. */
  readonly trouble: string | undefined;
  readonly deadlineSeconds: number;
  readonly sinceProgressMs: number;
  readonly isAvailable: (pod: ModulePod) => boolean;
  /** It has run, and is likely to come back by itself. */
  readonly isReturning: (pod: ModulePod) => boolean;
  /** After how many ms something that is waited for has come, with nothing else happening. */
  readonly waits: readonly number[];
}

const PROGRESS_MARK = 'progress';
const BATCH_MARK = 'batch';

/** Notes what is seen for the first time, and forgets what is not there any more. */
export function noteRollout(
  { deployment, update, pods }: Rollout,
  { seen, now }: Pick<FactsContext, 'seen' | 'now'>,
): void {
  const { status } = deployment;
  const batch = status?.updateRevision === update.hash ? status.batch : undefined;
  seen.note(PROGRESS_MARK, `${update.hash} ${conditionOf(status, 'Progressing')?.lastUpdateTime}`);
  seen.note(BATCH_MARK, `${update.hash} ${batch?.completed} ${batch?.completedTime}`);
  notePods(pods, { seen, now });
  seen.retain(new Set([PROGRESS_MARK, BATCH_MARK, ...pods.map(({ uid }) => uid)]));
}

/** Notes since when each Pod is Ready, or not Ready. */
export function notePods(pods: readonly ModulePod[], { seen, now }: Pick<FactsContext, 'seen' | 'now'>): void {
  for (const { uid, isReady, readyChangedAt } of pods) {
    const forMs = readyChangedAt === undefined ? 0 : now.getTime() - readyChangedAt;
    seen.note(uid, `${isReady} ${readyChangedAt}`, forMs);
  }
}

export function factsOf(rollout: Rollout, context: FactsContext): RolloutFacts {
  const { deployment, update } = rollout;
  const { spec, status: before } = deployment;
  const { seen } = context;
  const wanted = replicasOf(spec);
  const availableInMs = (pod: ModulePod): number => availabilityMs(pod, spec, seen);
  const returnsInMs = (pod: ModulePod): number =>
    isReadyPod(pod) || !pod.hasRun || pod.isTerminal ? 0 : Math.max(0, RETURN_MS - seen.ageMs(pod.uid));
  const isAvailable = (pod: ModulePod): boolean => availableInMs(pod) === 0;
  const live = rollout.pods.filter(({ isDeleting }) => !isDeleting);
  const updated = live.filter(({ labels }) => labels[REVISION_LABEL] === update.hash);
  const counts = countPods(live, updated, isAvailable);
  const batch = batchOf(rollout, counts, context);
  const deadlineSeconds = spec.progressDeadlineSeconds ?? DEFAULT_DEADLINE_SECONDS;
  const sinceProgressMs = seen.ageMs(PROGRESS_MARK);
  const isWaitingForBase = waitsForBase(updated, { wanted, isAvailable, hasBaseLeft: context.hasBaseLeft });
  const isReplacedByHand = spec.strategy?.type === 'OnDelete' && counts.replicas > counts.updated;
  const isWaitingForDelete =
    isReplacedByHand && counts.replicas >= wanted && counts.updatedAvailable === counts.updated;
  const trouble = troubleOf(updated.filter((pod) => !isAvailable(pod)));
  const progress = progressOf({
    wanted,
    counts,
    update,
    before,
    batch: batch?.status,
    isPaused: spec.paused ?? false,
    isRecreated: spec.strategy?.type === 'Recreate',
    isWaitingForBase,
    isWaitingForDelete,
    trouble,
    deadlineSeconds,
    sinceProgressMs,
  });
  const isUnderWay = progress.status === 'True' && progress.reason !== 'RolloutComplete';
  return {
    counts,
    batch,
    progress,
    isWaitingForBase,
    isWaitingForDelete,
    trouble,
    deadlineSeconds,
    sinceProgressMs,
    isAvailable,
    isReturning: (pod) => isReadyPod(pod) || returnsInMs(pod) > 0,
    waits: [
      ...live.map(availableInMs),
      ...(isRollingOut(rollout) ? updated.map(returnsInMs) : []),
      isUnderWay ? deadlineSeconds * 1000 - sinceProgressMs : 0,
      batch?.waitMs ?? 0,
    ].filter((ms) => ms > 0 && Number.isFinite(ms)),
  };
}

/** Numbers of the Pods of a ModuleDeployment. `hash`: of the newest template; undefined: none has a Pod of it. */
export function countsOf(
  { deployment, pods }: Pick<Rollout, 'deployment' | 'pods'>,
  hash: string | undefined,
  seen: FirstSeen,
): PodCounts {
  const live = pods.filter(({ isDeleting }) => !isDeleting);
  const updated = live.filter(({ labels }) => hash !== undefined && labels[REVISION_LABEL] === hash);
  return countPods(live, updated, (pod) => availabilityMs(pod, deployment.spec, seen) === 0);
}

function countPods(
  live: readonly ModulePod[],
  updated: readonly ModulePod[],
  isAvailable: RolloutFacts['isAvailable'],
): PodCounts {
  return {
    replicas: live.length,
    updated: updated.length,
    ready: live.filter(isReadyPod).length,
    available: live.filter(isAvailable).length,
    updatedReady: updated.filter(isReadyPod).length,
    updatedAvailable: updated.filter(isAvailable).length,
  };
}

/** In how many ms the Pod is available if it stays Ready; infinite while it is not Ready. */
function availabilityMs(pod: ModulePod, { minReadySeconds = 0 }: ModuleDeploymentSpec, seen: FirstSeen): number {
  if (!isReadyPod(pod)) return Number.POSITIVE_INFINITY;
  return minReadySeconds === 0 ? 0 : Math.max(0, minReadySeconds * 1000 - seen.ageMs(pod.uid));
}

/** Whether there is an earlier template that is not replaced everywhere. */
export function isRollingOut({ update, current }: Pick<Rollout, 'update' | 'current'>): boolean {
  return current !== undefined && current.hash !== update.hash;
}

/** Whether a rollout in batches is under way. */
function isInBatches(rollout: Rollout): boolean {
  return rollout.deployment.spec.strategy?.type === 'Batch' && isRollingOut(rollout);
}

function batchOf(rollout: Rollout, counts: PodCounts, { seen, now }: FactsContext): BatchState | undefined {
  const { deployment, update } = rollout;
  const { spec, status } = deployment;
  if (!isInBatches(rollout)) return undefined;
  return batchState({
    options: spec.strategy?.batch ?? {},
    replicas: replicasOf(spec),
    updatedAvailable: counts.updatedAvailable,
    old: counts.replicas - counts.updated,
    confirmBatch: deployment.confirmBatch,
    before: status?.updateRevision === update.hash ? status.batch : undefined,
    completedForMs: seen.ageMs(BATCH_MARK),
    now,
  });
}

/** A new Pod that a base has, or could have, is in work: then the deadline counts. */
function waitsForBase(
  updated: readonly ModulePod[],
  {
    wanted,
    isAvailable,
    hasBaseLeft,
  }: Pick<FactsContext, 'hasBaseLeft'> & Pick<RolloutFacts, 'isAvailable'> & { readonly wanted: number },
): boolean {
  const isInWork = updated.some((pod) => !isAvailable(pod) && pod.nodeName !== undefined);
  if (isInWork || updated.filter(isAvailable).length >= wanted) return false;
  // One that is pinned and not bound yet holds no base.
  return !hasBaseLeft(new Set(updated.filter(({ nodeName }) => nodeName !== undefined).map(baseOf)));
}

/** The first by name: the others most often wait for the same. */
function troubleOf(pods: readonly ModulePod[]): string | undefined {
  const [first] = pods.filter(({ waiting }) => waiting !== undefined).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (first === undefined) return undefined;
  const where = first.nodeName === undefined ? '' : ` on ${first.nodeName}`;
  return `Pod ${first.name}${where}: ${first.waiting}`;
}
