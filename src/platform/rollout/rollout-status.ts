import type { ModulePod } from '../../kinds/module-pod.ts';
import { secondsTime } from '../../kube/micro-time.ts';
import type { ConditionStatus } from '../../kube/objects.ts';
import type { BatchStatus } from './batches.ts';
import type { ModuleDeploymentCondition, ModuleDeploymentStatus } from './module-deployment.ts';
import type { Revision } from './revision.ts';

/** Numbers of Pods, those that are being deleted not counted. */
export interface PodCounts {
  readonly replicas: number;
  readonly updated: number;
  readonly ready: number;
  readonly available: number;
  readonly updatedAvailable: number;
}

/** A Pod that has ended may still have the condition. */
export function isReadyPod({ isReady, isTerminal }: ModulePod): boolean {
  return isReady && !isTerminal;
}

export interface StatusInput {
  readonly generation: number;
  readonly wanted: number;
  readonly maxUnavailable: number;
  readonly counts: PodCounts;
  readonly update: Pick<Revision, 'hash' | 'number'>;
  /** The last template that was rolled out whole. */
  readonly current: string | undefined;
  readonly selector: string;
  readonly before: ModuleDeploymentStatus | undefined;
  readonly collisions: number | undefined;
  readonly batch: BatchStatus | undefined;
  readonly isPaused: boolean;
  readonly deadlineSeconds: number;
  /** Ms since this process has first seen the last progress in `before`. */
  readonly sinceProgressMs: number;
  /** Why Pods could not be created or deleted. */
  readonly failure: { readonly reason: string; readonly message: string } | undefined;
  readonly now: Date;
}

export type ProgressReason =
  | 'NewRevisionCreated'
  | 'PodsReplaced'
  | 'RolloutComplete'
  | 'Paused'
  | 'WaitingConfirm'
  | 'ProgressDeadlineExceeded';

/** The status, with conditions as of a Deployment: their times change only with what they say. */
export function statusOf(input: StatusInput): ModuleDeploymentStatus {
  const { generation, wanted, counts, update, selector, before, collisions, batch } = input;
  const isComplete = isCompleteNow(input);
  const current = isComplete ? update.hash : input.current;
  return {
    observedGeneration: generation,
    replicas: counts.replicas,
    updatedReplicas: counts.updated,
    readyReplicas: counts.ready,
    availableReplicas: counts.available,
    unavailableReplicas: Math.max(0, Math.max(wanted, counts.replicas) - counts.available),
    ...(current !== undefined && { currentRevision: current }),
    updateRevision: update.hash,
    revision: update.number,
    ...(collisions !== undefined && { collisionCount: collisions }),
    selector,
    ...(batch && !isComplete && { batch }),
    conditions: [availableOf(input), progressingOf(input), failureOf(input)].flatMap((condition) =>
      condition === undefined ? [] : [withTimes(condition, before, input.now)],
    ),
  };
}

/** Whether the newest template is everywhere. */
function isCompleteNow({ wanted, counts }: StatusInput): boolean {
  return counts.updated === wanted && counts.replicas === wanted && counts.updatedAvailable >= wanted;
}

type Stated = Pick<ModuleDeploymentCondition, 'type' | 'status' | 'reason' | 'message'> & {
  /** Its time is new though it says the same. */
  readonly isRenewed?: boolean;
};

function availableOf({ wanted, maxUnavailable, counts }: StatusInput): Stated {
  const isAvailable = counts.available >= wanted - maxUnavailable;
  const message = `${counts.available} of ${wanted} Pods are available`;
  return isAvailable
    ? { type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable', message }
    : { type: 'Available', status: 'False', reason: 'MinimumReplicasUnavailable', message };
}

function progressingOf(input: StatusInput): Stated {
  const { wanted, counts, update, before, batch, isPaused } = input;
  const last = conditionOf(before, 'Progressing');
  const isNew = before?.updateRevision !== update.hash || last === undefined;
  const done = `${counts.updatedAvailable} of ${wanted} Pods are of revision ${update.number} and available`;
  const say = (status: ConditionStatus, reason: ProgressReason, message = done, isRenewed = false): Stated => ({
    type: 'Progressing',
    status,
    reason,
    message,
    isRenewed,
  });
  if (isCompleteNow(input)) return say('True', 'RolloutComplete', `revision ${update.number} is rolled out`);
  // After that a Pod that is lost is replaced: no rollout.
  const wasComplete = !isNew && last.reason === 'RolloutComplete' && counts.updated === counts.replicas;
  if (wasComplete) return say('True', 'RolloutComplete', last.message);
  if (isPaused) return say('Unknown', 'Paused', `${done}; spec.paused is true`);
  if (batch?.waitingConfirm) {
    return say('Unknown', 'WaitingConfirm', `batch ${batch.completed} of ${batch.total} is complete: confirm it`);
  }
  if (isNew) return say('True', 'NewRevisionCreated', done, true);
  if (hasProgressed(counts, before, batch)) return say('True', 'PodsReplaced', done, true);
  if (last.reason === 'ProgressDeadlineExceeded') return say('False', 'ProgressDeadlineExceeded', last.message);
  // The time of a pause does not count.
  if (last.reason === 'Paused' || last.reason === 'WaitingConfirm') return say('True', 'PodsReplaced', done, true);
  if (isResting(batch) || input.sinceProgressMs < input.deadlineSeconds * 1000) {
    return say('True', last.reason === 'NewRevisionCreated' ? 'NewRevisionCreated' : 'PodsReplaced');
  }
  return say('False', 'ProgressDeadlineExceeded', `no progress for ${input.deadlineSeconds} s; ${done}`);
}

/** Between two batches nothing has to happen. */
function isResting(batch: BatchStatus | undefined): boolean {
  return batch !== undefined && batch.completed > 0 && batch.current === batch.completed;
}

function hasProgressed(
  { replicas, updated, ready, available }: PodCounts,
  before: ModuleDeploymentStatus | undefined,
  batch: BatchStatus | undefined,
): boolean {
  if (before === undefined) return true;
  const oldBefore = before.replicas - before.updatedReplicas;
  return (
    updated > before.updatedReplicas ||
    replicas - updated < oldBefore ||
    ready > before.readyReplicas ||
    available > before.availableReplicas ||
    (batch?.completed ?? 0) > (before.batch?.completed ?? 0) ||
    // The time between two batches does not count.
    (batch?.current ?? 0) > (before.batch?.current ?? 0)
  );
}

function failureOf({ failure }: StatusInput): Stated | undefined {
  return failure && { type: 'ReplicaFailure', status: 'True', ...failure };
}

function withTimes(
  { isRenewed = false, ...stated }: Stated,
  before: ModuleDeploymentStatus | undefined,
  now: Date,
): ModuleDeploymentCondition {
  const last = conditionOf(before, stated.type);
  const time = secondsTime(now);
  const isSame = last?.status === stated.status && last.reason === stated.reason && !isRenewed;
  return {
    ...stated,
    lastUpdateTime: isSame ? last.lastUpdateTime : time,
    lastTransitionTime: last?.status === stated.status ? last.lastTransitionTime : time,
  };
}

export function conditionOf(
  status: ModuleDeploymentStatus | undefined,
  type: string,
): ModuleDeploymentCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}
