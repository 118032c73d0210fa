import type { ModulePod } from '../../kinds/module-pod.ts';
import type { EventType } from '../../kube/events/event-correlator.ts';
import { ANNOTATION } from '../../labels.ts';
import type { EventDefinition } from '../../reconcile/controller-definition.ts';
import type { BatchState } from './batches.ts';
import type { CachedModuleDeployment, ModuleDeploymentStatus } from './module-deployment.ts';
import type { Revision } from './revision.ts';
import type { PodDeletion } from './rollout-plan.ts';
import { conditionOf } from './rollout-status.ts';

const ABOUT = 'ModuleDeployment';

/** Events that the controller of ModuleDeployments records. */
export const ROLLOUT_EVENTS: readonly EventDefinition[] = [
  {
    about: ABOUT,
    type: 'Normal',
    reasons: ['NewRevision'],
    meaning: 'The template has changed, or an earlier one was restored; the message has its number and hash.',
  },
  {
    about: ABOUT,
    type: 'Normal',
    reasons: ['RolloutStarted', 'RolloutComplete'],
    meaning: 'A rollout of a new template has started; it is complete.',
  },
  {
    about: ABOUT,
    type: 'Normal',
    reasons: ['SuccessfulCreate', 'SuccessfulDelete'],
    meaning: 'A Pod was created or deleted; the message says why it was deleted.',
  },
  {
    about: ABOUT,
    type: 'Normal',
    reasons: ['PodReplaced'],
    meaning: 'A Pod was deleted because its replacement on the same base serves.',
  },
  {
    about: ABOUT,
    type: 'Normal',
    reasons: ['BatchCompleted', 'WaitingConfirm'],
    meaning: 'All Pods of a batch serve; the message names the command that continues the rollout.',
  },
  {
    about: ABOUT,
    type: 'Normal',
    reasons: ['WaitingForBase'],
    meaning: 'No other base fits the newest template. The rollout continues when one does.',
  },
  {
    about: ABOUT,
    type: 'Normal',
    reasons: ['WaitingForDelete'],
    meaning: 'The strategy is `OnDelete`: a Pod of an older template is replaced when you delete it.',
  },
  {
    about: ABOUT,
    type: 'Normal',
    reasons: ['ScaledUp', 'ScaledDown', 'PeerScaled'],
    meaning: '`replicas` has changed; `PeerScaled`: with the number of bases.',
  },
  {
    about: ABOUT,
    type: 'Normal',
    reasons: ['RollbackStarted', 'RollbackDone'],
    meaning:
      'A rollout made no progress, and `onFailure` is `Rollback`; the template of an earlier revision is restored.',
  },
  {
    about: ABOUT,
    type: 'Normal',
    reasons: ['Adopted'],
    meaning: 'A Pod without a controller matches the selector, and now belongs to the ModuleDeployment.',
  },
  {
    about: ABOUT,
    type: 'Warning',
    reasons: ['ProgressDeadlineExceeded'],
    meaning:
      'The rollout made no progress for `progressDeadlineSeconds` and has stopped. Pods of the former template stay.',
  },
  {
    about: ABOUT,
    type: 'Warning',
    reasons: ['FailedCreate', 'FailedDelete'],
    meaning: 'The API server refused to create or delete a Pod; the controller retries.',
  },
  {
    about: ABOUT,
    type: 'Warning',
    reasons: ['ReconcileFailed'],
    meaning:
      'Something other than a Pod stands in the way, such as a quota; the message has the answer of the API server.',
  },
  {
    about: ABOUT,
    type: 'Warning',
    reasons: ['RollbackRevisionNotFound'],
    meaning: '`rollbackTo` names a revision that is not in the history. Nothing was changed.',
  },
  {
    about: ABOUT,
    type: 'Warning',
    reasons: ['RollbackRefused'],
    meaning:
      'The API server refused the template of the earlier revision; the message says why. The template was not changed.',
  },
  {
    about: ABOUT,
    type: 'Warning',
    reasons: ['ConfirmIgnored'],
    meaning: 'The annotation that confirms batches is not the number of one. It confirms none.',
  },
];

/** Type, reason and message. */
export type RolloutEvent = readonly [EventType, string, string];

export interface Deletion {
  readonly pod: ModulePod;
  /** `Ended`: it is Failed or Succeeded. */
  readonly why: PodDeletion['why'] | 'Ended';
}

const WHY = {
  Surplus: 'there are more Pods than replicas',
  Outdated: 'it is not of the wanted version',
  Stranded: 'its base accepts no Pods',
  Displaced: 'its base has another version active',
  GivesWay: 'it has never run, and a Pod that is known to serve needs its place',
  Ended: 'it has ended',
} as const;

export function deletionEvent({ name, nodeName }: ModulePod, why: Deletion['why']): RolloutEvent {
  if (why === 'Replaced') return ['Normal', 'PodReplaced', `Pod ${name} on ${nodeName}`];
  return ['Normal', 'SuccessfulDelete', `deleted Pod ${name}: ${WHY[why]}`];
}

/** Once for each change of `replicas`: the status that is written next has seen it. */
export function scalingEvents(
  { spec, status, generation }: CachedModuleDeployment,
  update: Pick<Revision, 'hash'>,
): RolloutEvent[] {
  if (status === undefined || (status.observedGeneration ?? 0) >= generation) return [];
  const wanted = spec.replicas ?? 1;
  if (status.updateRevision !== update.hash || status.replicas === wanted) return [];
  const message = `from ${status.replicas} to ${wanted} Pods`;
  return wanted > status.replicas ? [['Normal', 'ScaledUp', message]] : [['Normal', 'ScaledDown', message]];
}

/** Events about the confirmation of batches. `batch` is there while a rollout in batches is under way. */
export function confirmationEvents(batch: BatchState | undefined): RolloutEvent[] {
  if (!batch?.isConfirmIgnored) return [];
  const range = `1 to ${batch.status.total}`;
  return [
    ['Warning', 'ConfirmIgnored', `annotation ${ANNOTATION.confirmBatch} must be the number of a batch, ${range}`],
  ];
}

/** Events for the changes between two statuses. */
export function progressEvents(
  { name, status: former }: CachedModuleDeployment,
  update: Pick<Revision, 'hash' | 'number'>,
  status: ModuleDeploymentStatus,
): RolloutEvent[] {
  const isSameRollout = former?.updateRevision === update.hash;
  const completed = completedBatchOf(status, isSameRollout ? former : undefined);
  const events: RolloutEvent[] =
    completed === undefined ? [] : [['Normal', 'BatchCompleted', `batch ${completed.number} of ${completed.total}`]];
  const now = conditionOf(status, 'Progressing');
  if (now === undefined || (isSameRollout && now.reason === conditionOf(former, 'Progressing')?.reason)) return events;
  if (now.reason === 'NewRevisionCreated' && former !== undefined) {
    events.push(['Normal', 'RolloutStarted', `revision ${update.number}`]);
  }
  if (now.reason === 'WaitingConfirm') {
    const how = `kubectl annotate --overwrite md ${name} ${ANNOTATION.confirmBatch}=${status.batch?.completed}`;
    events.push(['Normal', 'WaitingConfirm', `batch ${status.batch?.completed} is complete; to go on: ${how}`]);
  }
  if (now.reason === 'WaitingForBase') events.push(['Normal', 'WaitingForBase', now.message]);
  if (now.reason === 'WaitingForDelete') events.push(['Normal', 'WaitingForDelete', now.message]);
  if (now.reason === 'RolloutComplete') events.push(['Normal', 'RolloutComplete', now.message]);
  if (now.reason === 'ProgressDeadlineExceeded') events.push(['Warning', 'ProgressDeadlineExceeded', now.message]);
  return events;
}

/** The batch that the change of the status has completed. `former`: the status of the same rollout before. */
function completedBatchOf(
  status: ModuleDeploymentStatus,
  former: ModuleDeploymentStatus | undefined,
): { readonly number: number; readonly total: number } | undefined {
  const { batch } = status;
  const before = former?.batch?.completed ?? 0;
  if (batch !== undefined)
    return batch.completed > before ? { number: batch.completed, total: batch.total } : undefined;
  // A status has no batch any more when the last one is complete.
  const isWhole = conditionOf(status, 'Progressing')?.reason === 'RolloutComplete';
  const total = former?.batch?.total;
  return isWhole && total !== undefined ? { number: total, total } : undefined;
}
