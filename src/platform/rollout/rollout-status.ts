import type { ModulePod } from '../../kinds/module-pod.ts';
import { secondsTime } from '../../kube/micro-time.ts';
import type { ConditionStatus } from '../../kube/objects.ts';
import { ANNOTATION } from '../../labels.ts';
import type { BatchStatus } from './batches.ts';
import type { ModuleDeploymentCondition, ModuleDeploymentStatus } from './module-deployment.ts';
import type { Revision } from './revision.ts';

/** Numbers of Pods, those that are being deleted not counted. */
export interface PodCounts {
  readonly replicas: number;
  readonly updated: number;
  readonly ready: number;
  readonly available: number;
  readonly updatedReady: number;
  readonly updatedAvailable: number;
}

/** A Pod that has ended may still have the condition. */
export function isReadyPod({ isReady, isTerminal }: ModulePod): boolean {
  return isReady && !isTerminal;
}

/** Facts that decide whether a rollout makes progress. */
export interface ProgressInput {
  readonly wanted: number;
  readonly counts: PodCounts;
  readonly update: Pick<Revision, 'hash' | 'number'>;
  readonly before: ModuleDeploymentStatus | undefined;
  readonly batch: BatchStatus | undefined;
  readonly isPaused: boolean;
  /** All old Pods go before the first new one comes. */
  readonly isRecreated: boolean;
  /** No base can take a further Pod of the newest template. */
  readonly isWaitingForBase: boolean;
  /** The strategy is `OnDelete`, and Pods of older templates are left. */
  readonly isWaitingForDelete: boolean;
  /** What one Pod of the newest template waits for, in words. */
  readonly trouble: string | undefined;
  readonly deadlineSeconds: number;
  /** Ms since this process has first seen the last progress in `before`. */
  readonly sinceProgressMs: number;
}

/** Why something could not be done. */
export interface Failure {
  readonly reason: 'FailedCreate' | 'FailedDelete' | 'ReconcileFailed';
  readonly message: string;
}

export interface StatusInput extends ProgressInput {
  readonly generation: number;
  readonly maxUnavailable: number;
  /** The last template that was rolled out whole. */
  readonly current: string | undefined;
  readonly selector: string;
  readonly collisions: number | undefined;
  readonly failure: Failure | undefined;
  /** Pods that are missing, and wait for a base that has no other version. */
  readonly waiting: number;
  readonly now: Date;
}

export type ProgressReason =
  | 'NewRevisionCreated'
  | 'PodsReplaced'
  | 'RolloutComplete'
  | 'Paused'
  | 'WaitingConfirm'
  | 'WaitingForBase'
  | 'WaitingForDelete'
  | 'ProgressDeadlineExceeded'
  | 'ReconcileFailed';

/** The condition `Progressing` as it is now. */
export interface Progress extends Stated {
  readonly reason: ProgressReason;
}

/** The status, with conditions as of a Deployment: their times change only with what they say. */
export function statusOf(input: StatusInput): ModuleDeploymentStatus {
  const { generation, wanted, counts, update, selector, before, collisions, batch, now } = input;
  const isComplete = isCompleteNow(input);
  const current = isComplete ? update.hash : input.current;
  const progress = progressOf(input);
  const stated = [
    availableOf(input),
    progressingOf(input, progress),
    input.failure && stateFailure(input.failure),
    ...readinessOf(input, progress),
  ];
  return {
    observedGeneration: generation,
    ...numbersOf(counts, wanted),
    ...(current !== undefined && { currentRevision: current }),
    updateRevision: update.hash,
    revision: update.number,
    ...(collisions !== undefined && { collisionCount: collisions }),
    selector,
    ...(batch && !isComplete && { batch }),
    conditions: stated.flatMap((condition) => (condition === undefined ? [] : [withTimes(condition, before, now)])),
  };
}

function numbersOf(counts: PodCounts, wanted: number) {
  return {
    replicas: counts.replicas,
    updatedReplicas: counts.updated,
    readyReplicas: counts.ready,
    availableReplicas: counts.available,
    unavailableReplicas: Math.max(0, Math.max(wanted, counts.replicas) - counts.available),
    updatedReadyReplicas: counts.updatedReady,
    updatedAvailableReplicas: counts.updatedAvailable,
  };
}

export interface FailedStatusInput
  extends Pick<StatusInput, 'generation' | 'wanted' | 'maxUnavailable' | 'counts' | 'selector' | 'now'> {
  readonly failure: Failure;
}

/** The status of a ModuleDeployment that cannot be worked on: its Pods, and why it stands still. */
export function failedStatusOf(
  before: ModuleDeploymentStatus | undefined,
  input: FailedStatusInput,
): ModuleDeploymentStatus {
  const { generation, wanted, counts, selector, failure, now } = input;
  // A condition about an earlier generation is not true of this one.
  const isNew = before?.observedGeneration !== generation;
  const progress = { type: 'Progressing', status: 'False' as const, ...failure };
  const stated = [availableOf(input), ...(isNew ? [progress] : []), stateFailure(failure), ...standstillOf(failure)];
  const changed = new Set(['Reconciling', ...stated.map(({ type }) => type)]);
  const kept = (before?.conditions ?? []).filter(({ type }) => !changed.has(type));
  return {
    ...before,
    ...numbersOf(counts, wanted),
    selector,
    observedGeneration: generation,
    conditions: [...kept, ...stated.map((condition) => withTimes(condition, before, now))],
  };
}

/** Whether the newest template is everywhere. */
function isCompleteNow({ wanted, counts }: Pick<ProgressInput, 'wanted' | 'counts'>): boolean {
  return counts.updated === wanted && counts.replicas === wanted && counts.updatedAvailable >= wanted;
}

interface Stated extends Pick<ModuleDeploymentCondition, 'type' | 'status' | 'reason' | 'message'> {
  /** Its time is new though it says the same. */
  readonly isRenewed?: boolean;
}

function availableOf({
  wanted,
  maxUnavailable,
  counts,
}: Pick<StatusInput, 'wanted' | 'maxUnavailable' | 'counts'>): Stated {
  const isAvailable = counts.available >= wanted - maxUnavailable;
  const message = `${counts.available} of ${wanted} Pods are available`;
  return isAvailable
    ? { type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable', message }
    : { type: 'Available', status: 'False', reason: 'MinimumReplicasUnavailable', message };
}

/** How far a rollout is, and whether it may go on. */
export function progressOf(input: ProgressInput): Progress {
  const { wanted, counts, update, before, batch } = input;
  const last = conditionOf(before, 'Progressing');
  const isNew = before?.updateRevision !== update.hash || last === undefined;
  const state = `${counts.updatedAvailable} of ${wanted} Pods are of revision ${update.number} and available`;
  const done = withTrouble(state, input);
  const say = (status: ConditionStatus, reason: ProgressReason, message = done, isRenewed = false): Progress => ({
    type: 'Progressing',
    status,
    reason,
    message,
    isRenewed,
  });
  if (isCompleteNow(input)) return say('True', 'RolloutComplete', `revision ${update.number} is rolled out`);
  // After that a Pod that is lost is replaced: no rollout.
  const wasComplete = !isNew && last.reason === 'RolloutComplete' && counts.updated === counts.replicas;
  if (wasComplete) return say('True', 'RolloutComplete', `revision ${update.number} is rolled out`);
  const waiting = waitingOf(input, done);
  if (waiting) return say('Unknown', ...waiting);
  if (isNew) return say('True', 'NewRevisionCreated', done, true);
  if (hasProgressed(input, last.reason)) return say('True', 'PodsReplaced', done, true);
  const exceeded = `no progress for ${input.deadlineSeconds} s; ${done}`;
  if (last.reason === 'ProgressDeadlineExceeded') return say('False', 'ProgressDeadlineExceeded', exceeded);
  // The time of a pause does not count.
  if (STANDING_STILL.has(last.reason)) return say('True', 'PodsReplaced', done, true);
  if (isResting(batch) || input.sinceProgressMs < input.deadlineSeconds * 1000) {
    return say('True', last.reason === 'NewRevisionCreated' ? 'NewRevisionCreated' : 'PodsReplaced');
  }
  return say('False', 'ProgressDeadlineExceeded', exceeded);
}

function withTrouble(text: string, { trouble }: Pick<ProgressInput, 'trouble'>): string {
  return trouble === undefined ? text : `${text}; ${trouble}`;
}

/** Why nothing has to happen until somebody else does something. */
function waitingOf(input: ProgressInput, done: string): readonly [ProgressReason, string] | undefined {
  const { batch, isPaused, isWaitingForBase, isWaitingForDelete } = input;
  if (isPaused) return ['Paused', `${done}; spec.paused is true`];
  if (batch?.waitingConfirm) {
    const how = `to go on: annotate ${ANNOTATION.confirmBatch}=${batch.completed}`;
    return ['WaitingConfirm', `batch ${batch.completed} of ${batch.total} is complete; ${how}`];
  }
  if (isWaitingForBase) {
    const what = 'no further base fits its nodeSelector, affinity and tolerations';
    return ['WaitingForBase', `${done}; ${what}`];
  }
  if (isWaitingForDelete) return ['WaitingForDelete', `${done}; delete a Pod of an older template to replace it`];
  return undefined;
}

const STANDING_STILL: ReadonlySet<string> = new Set<ProgressReason>([
  'Paused',
  'WaitingConfirm',
  'WaitingForBase',
  'WaitingForDelete',
  'ReconcileFailed',
]);

function progressingOf({ waiting }: StatusInput, progress: Progress): Stated {
  if (waiting === 0 || progress.reason === 'WaitingForBase') return progress;
  const pods = waiting === 1 ? '1 Pod waits' : `${waiting} Pods wait`;
  return { ...progress, message: `${progress.message}; ${pods} for a base without another version` };
}

/**
 * `Ready`, and what kstatus reads: `Reconciling` while something is to come, `Stalled` when it waits for somebody. Both
 * are there only while they are true.
 */
function readinessOf(input: StatusInput, progress: Progress): Stated[] {
  const { wanted, counts, failure } = input;
  if (failure?.reason === 'ReconcileFailed') return standstillOf(failure);
  if (progress.status === 'False') return standstillOf(progress);
  if (isCompleteNow(input) && failure === undefined) {
    return [{ type: 'Ready', status: 'True', reason: progress.reason, message: progress.message }];
  }
  const isLacking = progress.reason === 'RolloutComplete' && failure === undefined;
  const available = `${counts.available} of ${wanted} Pods are available`;
  const lack = { reason: 'PodsNotAvailable', message: withTrouble(available, input) };
  const { reason, message } = failure ?? (isLacking ? lack : progress);
  return [
    { type: 'Ready', status: 'False', reason, message },
    { type: 'Reconciling', status: 'True', reason, message },
  ];
}

function standstillOf({ reason, message }: { readonly reason: string; readonly message: string }): Stated[] {
  return [
    { type: 'Ready', status: 'False', reason, message },
    { type: 'Stalled', status: 'True', reason, message },
  ];
}

/** Between two batches nothing has to happen. */
function isResting(batch: BatchStatus | undefined): boolean {
  return batch !== undefined && batch.completed > 0 && batch.current === batch.completed;
}

/**
 * Only what improves the newest template is progress; a Pod of the former one that goes is none, unless all of them
 * have to go first.
 */
function hasProgressed({ counts, before, batch, isRecreated }: ProgressInput, lastReason: string): boolean {
  if (before === undefined) return true;
  const { replicas, updatedReplicas, batch: batchBefore } = before;
  // An earlier version of the controller did not write them.
  const { updatedReadyReplicas = counts.updatedReady, updatedAvailableReplicas = counts.updatedAvailable } = before;
  const isStopped = lastReason === 'ProgressDeadlineExceeded';
  const isMakingRoom = isRecreated && counts.replicas - counts.updated < replicas - updatedReplicas;
  return (
    (!isStopped && (counts.updated > updatedReplicas || isMakingRoom)) ||
    counts.updatedReady > updatedReadyReplicas ||
    counts.updatedAvailable > updatedAvailableReplicas ||
    (batch?.completed ?? 0) > (batchBefore?.completed ?? 0) ||
    // The time between two batches does not count.
    (batch?.current ?? 0) > (batchBefore?.current ?? 0)
  );
}

function stateFailure({ reason, message }: Failure): Stated {
  return { type: 'ReplicaFailure', status: 'True', reason, message };
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
