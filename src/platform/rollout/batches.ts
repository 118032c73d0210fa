import type { ModuleDeploymentSpec, ModuleDeploymentStatus } from './module-deployment.ts';

type BatchOptions = NonNullable<NonNullable<ModuleDeploymentSpec['strategy']>['batch']>;
export type BatchStatus = NonNullable<ModuleDeploymentStatus['batch']>;

/** How many Pods are of the newest template at the end of each batch. */
export function batchSizes({ count = 1, useBeta = false }: BatchOptions, replicas: number): number[] {
  const beta = useBeta ? 1 : 0;
  const rest = Math.max(0, replicas - beta);
  const others = Math.min(Math.max(1, count - beta), Math.max(1, rest));
  const sizes = Array.from({ length: others }, (_, index) => beta + Math.ceil((rest * (index + 1)) / others));
  return beta === 1 && rest > 0 ? [1, ...sizes] : sizes;
}

export interface BatchInput {
  readonly options: BatchOptions;
  readonly replicas: number;
  /** Available Pods of the newest template. */
  readonly updatedAvailable: number;
  /** Pods of older templates. */
  readonly old: number;
  /** The annotation that confirms batches. */
  readonly confirmBatch: string | undefined;
  /** Status of this rollout, as it was written last. */
  readonly before: BatchStatus | undefined;
  /** Ms since this process has first seen `before.completedTime`. */
  readonly completedForMs: number;
  readonly now: Date;
}

export interface BatchState {
  readonly status: BatchStatus;
  /** How many Pods may be of the newest template. */
  readonly updatedLimit: number;
  /** The annotation is not the number of a batch, and confirms none. */
  readonly isConfirmIgnored: boolean;
  /** The next batch begins in this time. */
  readonly waitMs?: number;
}

/**
 * Which batch is in work. A batch is complete when its Pods serve and the Pods in whose place they are have gone. The
 * next one begins when somebody confirms it, or when the interval is over.
 */
export function batchState(input: BatchInput): BatchState {
  const { options, replicas, updatedAvailable, old, confirmBatch, before, completedForMs, now } = input;
  const { needConfirm = false, intervalSeconds = 0 } = options;
  const sizes = batchSizes(options, replicas);
  const total = sizes.length;
  const completed = sizes.filter((size) => updatedAvailable >= size && old <= replicas - size).length;
  const confirmed = confirmedBatch(confirmBatch, total);
  const isFirstTime = completed > 0 && before?.completed !== completed;
  const completedTime = isFirstTime ? now.toISOString() : before?.completedTime;
  const restMs = isFirstTime ? intervalSeconds * 1000 : intervalSeconds * 1000 - completedForMs;
  const isBetween = completed > 0 && completed < total;
  const waitingConfirm = isBetween && needConfirm && (confirmed ?? 0) < completed;
  const isResting = isBetween && !needConfirm && restMs > 0;
  const current = Math.min(total, waitingConfirm || isResting ? completed : completed + 1);
  return {
    status: { current, total, completed, waitingConfirm, ...(completedTime !== undefined && { completedTime }) },
    updatedLimit: sizes[current - 1] ?? replicas,
    isConfirmIgnored: confirmed === undefined,
    ...(isResting && { waitMs: restMs }),
  };
}

/** The annotation confirms all batches up to its number. 0: there is none; undefined: it is not the number of a batch. */
function confirmedBatch(text: string | undefined, total: number): number | undefined {
  if (text === undefined) return 0;
  const number = /^\d{1,6}$/.test(text) ? Number(text) : undefined;
  return number !== undefined && number <= total ? number : undefined;
}
