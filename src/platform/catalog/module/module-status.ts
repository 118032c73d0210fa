import { shortened } from '../../../shortened.ts';
import type { CatalogPod } from '../catalog-pod.ts';
import type { ComposedRelease } from '../compose/compose.ts';
import type { PodCounts } from '../compose/composed-object.ts';
import { historyWith } from './module-history.ts';
import { MAX_PROBLEMS, type ModuleCondition, type ModuleProblem, type ModuleStatus } from './module-status-schema.ts';

/** What has come of a Module, in one word, and in words for people. */
export interface Outcome {
  readonly reason:
    | 'Composed'
    | 'NoRelease'
    | 'ReleaseMissing'
    | 'ConfigMissing'
    | 'NotComposable'
    | 'NameTaken'
    | 'NotPermitted'
    | 'Refused'
    | 'Unavailable'
    | 'Unwatched'
    | 'Deleting';
  readonly message: string;
}

export interface ModuleStatusInput {
  readonly generation: number;
  readonly before: ModuleStatus | undefined;
  /** Selector of its Pods, for the scale subresource. */
  readonly selector: string;
  readonly outcome: Outcome;
  /** Undefined: there is no workload. */
  readonly counts: PodCounts | undefined;
  /** Whether the workload is that of `release` now. A release that could not be written does not come into force. */
  readonly isComposed: boolean;
  /** The release in force. Undefined: none. */
  readonly release: (ComposedRelease & { readonly version?: string | undefined }) | undefined;
  readonly problems: readonly ModuleProblem[];
  /** Id of a release that nobody has published. */
  readonly missing: string | undefined;
  /** Its configuration. Undefined: it asks for none. */
  readonly configFound?: ConfigFound | undefined;
  /** What somebody else changes again and again. Undefined: nothing. */
  readonly contested: string | undefined;
  /** Which labels and annotations a webhook drops or changes. Undefined: none. */
  readonly altered: string | undefined;
  /** RFC 3339. */
  readonly now: string;
}

/** The condition of the same name. */
export interface ConfigFound {
  readonly status: 'True' | 'False';
  readonly reason: 'Found' | 'Waiting' | 'Missing';
  readonly message: string;
}

/** The status of a Module; conditions that have not changed keep their times. */
export function moduleStatusOf(input: ModuleStatusInput): ModuleStatus {
  const { generation, before, selector, counts, release, now } = input;
  const { replicas = 0, ready = 0, updated = 0 } = counts ?? {};
  const inForce = release && {
    id: release.id,
    image: release.image,
    ...(release.version !== undefined && { version: release.version }),
    ...(release.sha256 !== undefined && { sha256: release.sha256 }),
    ...(release.baseVersions !== undefined && { baseVersions: [...release.baseVersions] }),
    ...(release.configs !== undefined && { configs: [...release.configs] }),
    time: isSameJar(before?.release, release) ? before.release.time : now,
  };
  return {
    observedGeneration: generation,
    replicas,
    readyReplicas: ready,
    updatedReplicas: updated,
    selector,
    ...(inForce && { release: inForce }),
    ...historyOf(input),
    ...(input.problems.length > 0 && { problems: [...input.problems] }),
    conditions: conditionsOf(input).map((condition) => timed(condition, before, now)),
  };
}

function isSameJar(a: ModuleStatus['release'], b: ComposedRelease): a is NonNullable<ModuleStatus['release']> {
  return a?.id === b.id && a.image === b.image;
}

function historyOf({ isComposed, before, release, now }: ModuleStatusInput): Pick<ModuleStatus, 'history'> {
  const history = before?.history ?? [];
  const next = isComposed && release ? historyWith(history, release, now) : history;
  return next.length === 0 ? {} : { history: [...next] };
}

type Untimed = Omit<ModuleCondition, 'lastTransitionTime'>;

function conditionsOf(input: ModuleStatusInput): Untimed[] {
  const { missing, configFound, contested, altered, outcome } = input;
  return [
    readyOf(input),
    {
      type: 'ReleaseFound',
      ...(missing !== undefined
        ? { status: 'False', reason: 'NotPublished', message: notPublished(missing) }
        : outcome.reason === 'NoRelease'
          ? { status: 'Unknown', reason: 'NoRelease', message: 'the Module asks for none' }
          : { status: 'True', reason: 'Found', message: '' }),
    },
    ...(configFound === undefined ? [] : [{ type: 'ConfigFound' as const, ...configFound }]),
    ...(contested === undefined
      ? []
      : [{ type: 'Contested' as const, status: 'True' as const, reason: 'ChangedByOthers', message: contested }]),
    ...(altered === undefined
      ? []
      : [{ type: 'Altered' as const, status: 'True' as const, reason: 'ChangedByWebhook', message: altered }]),
  ];
}

function notPublished(id: string): string {
  return `nobody has published release ${id}`;
}

function readyOf({ outcome, counts, missing, contested, release }: ModuleStatusInput): Untimed {
  if (outcome.reason !== 'Composed') return { type: 'Ready', status: 'False', ...outcome };
  if (missing !== undefined && missing !== release?.id) {
    const message = `${notPublished(missing)}; release ${release?.id} runs on`;
    return { type: 'Ready', status: 'False', reason: 'ReleaseMissing', message };
  }
  if (contested !== undefined) return { type: 'Ready', status: 'False', reason: 'Contested', message: contested };
  if (counts === undefined || !counts.isObserved) {
    return { type: 'Ready', status: 'False', reason: 'Progressing', message: 'the workload is being created' };
  }
  const { desired, replicas, ready, updated, isStalled, message } = counts;
  const isDone = replicas === desired && ready >= desired && updated >= desired;
  const warning = outcome.message === '' ? '' : `; ${outcome.message}`;
  if (isDone)
    return { type: 'Ready', status: 'True', reason: 'Released', message: `${ready} of ${desired} are Ready${warning}` };
  const rest = `${message === undefined ? '' : `: ${message}`}${warning}`;
  return {
    type: 'Ready',
    status: 'False',
    reason: isStalled ? 'Stalled' : 'Progressing',
    message: `${ready} of ${desired} are Ready, ${updated} are of the newest release${rest}`,
  };
}

function timed(condition: Untimed, before: ModuleStatus | undefined, now: string): ModuleCondition {
  const known = before?.conditions.find(({ type }) => type === condition.type);
  return { ...condition, lastTransitionTime: known?.status === condition.status ? known.lastTransitionTime : now };
}

const MAX_PROBLEM_LENGTH = 256;

/** Pods that do not serve, those with something to say first, then by their names. */
export function problemsOf(pods: readonly Pick<CatalogPod, 'name' | 'node' | 'id' | 'problem'>[]): ModuleProblem[] {
  return pods
    .flatMap(({ name: pod, node, id, problem }): ModuleProblem[] => {
      if (problem === undefined) return [];
      const { reason: state, message } = problem;
      return [
        {
          pod,
          ...(node !== undefined && { node }),
          ...(id !== undefined && { release: id }),
          state,
          ...(message !== undefined && { message: shortened(message, MAX_PROBLEM_LENGTH) }),
        },
      ];
    })
    .sort((a, b) => Number(a.message === undefined) - Number(b.message === undefined) || (a.pod < b.pod ? -1 : 1))
    .slice(0, MAX_PROBLEMS);
}
