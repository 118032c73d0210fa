import type { BaseSharing, ModulePod, PodModule } from '../../kinds/module-pod.ts';
import { matchesLabels } from '../../kube/placement.ts';
import { REVISION_LABEL } from '../../labels.ts';

/** The next step of a rollout follows from its Pods as they are now: nothing is remembered between two decisions. */
export interface RolloutInput {
  /** How many Pods there should be. */
  readonly replicas: number;
  readonly limits: RolloutLimits;
  /** Its own Pods, in any order; those that are being deleted too, unless they have ended. */
  readonly pods: readonly ModulePod[];
  /** Hash of the newest template. */
  readonly updateRevision: string;
  /** Hash of the template that Pods get above `updatedLimit`. Undefined: there is none, and no such limit. */
  readonly currentRevision: string | undefined;
  /** How many Pods may be of the newest template for now. */
  readonly updatedLimit: number;
  /** The newest template. */
  readonly template: BaseSharing;
  readonly isAvailable: (pod: ModulePod) => boolean;
  /** Whether a new Pod of the newest template could be bound to the Node, leaving aside what runs there. */
  readonly isUsable: (nodeName: string) => boolean;
}

export interface RolloutLimits {
  readonly type: 'RollingUpdate' | 'Recreate' | 'OnDelete' | 'Batch';
  readonly placement: 'SameBase' | 'Any';
  readonly maxSurge: number;
  readonly maxUnavailable: number;
  /** Somebody wrote 0: then nothing is deleted before something else is available, whatever happens. */
  readonly isLossless: boolean;
}

export interface PodCreation {
  readonly revision: string;
  /** The Pod whose place it takes, on the same base. */
  readonly replaces: ModulePod | undefined;
}

export interface PodDeletion {
  readonly pod: ModulePod;
  /**
   * `Surplus`: there are too many. `Replaced`: a Pod of the newest template serves in its place. `Outdated`: it makes
   * room for one. `Stranded`: its base cannot take it any more.
   */
  readonly why: 'Surplus' | 'Replaced' | 'Outdated' | 'Stranded';
}

export interface RolloutPlan {
  readonly deletions: readonly PodDeletion[];
  readonly creations: readonly PodCreation[];
}

/**
 * The next step of a rollout. Deleting what it names leaves at least `replicas - maxUnavailable` Pods available, where
 * that many are; creating what it names makes at most `replicas + maxSurge` Pods, apart from those that are being
 * deleted.
 */
export function planRollout(input: RolloutInput): RolloutPlan {
  const state = stateOf(input);
  const stranded = strandedOf(input, state);
  if (stranded.length > 0) return { deletions: stranded, creations: [] };
  const surplus = surplusOf(input, state);
  if (surplus.length > 0) return { deletions: surplus, creations: [] };
  const deletions = input.limits.type === 'Recreate' ? recreatedOf(state) : replacedOf(input, state);
  return { deletions, creations: creationsOf(input, state, deletions) };
}

interface State {
  /** Pods that are not being deleted. */
  readonly live: readonly ModulePod[];
  readonly updated: readonly ModulePod[];
  readonly old: readonly ModulePod[];
  readonly leaving: readonly ModulePod[];
  /** How many Pods of the newest template there should be now. */
  readonly wantedUpdated: number;
  /** How many old Pods are to be replaced now. */
  readonly outdated: number;
  /** How many Pods there may be. */
  readonly ceiling: number;
  /** Who takes the place of a Pod, by the UID of that Pod. */
  readonly succeeded: ReadonlyMap<string, ModulePod>;
  /** Old Pods that no base can have beside a new one. */
  readonly excluded: ReadonlySet<ModulePod>;
  /** Some of those have to go before the Pods in their places come. */
  readonly makesRoom: boolean;
  /** How many Pods have to be available whatever is deleted. */
  readonly minAvailable: number;
}

function stateOf(input: RolloutInput): State {
  const { replicas, limits, pods, updateRevision, currentRevision, updatedLimit, template } = input;
  const live = pods.filter(({ isDeleting }) => !isDeleting);
  const isUpdated = ({ labels }: ModulePod): boolean => labels[REVISION_LABEL] === updateRevision;
  const updated = live.filter(isUpdated);
  const old = live.filter((pod) => !isUpdated(pod));
  const isManual = limits.type === 'OnDelete';
  const limit = currentRevision === undefined ? replicas : Math.min(updatedLimit, replicas);
  const wantedUpdated = isManual ? Math.max(0, replicas - old.length) : limit;
  const outdated = isManual ? 0 : Math.max(0, old.length - (replicas - wantedUpdated));
  const surge = limits.type === 'Recreate' || outdated === 0 ? 0 : limits.maxSurge;
  const excluded = new Set(old.filter((pod) => cannotShare(pod, template)));
  const makesRoom = outdated > 0 && excluded.size > 0 && !limits.isLossless;
  // Of a percentage that comes to nothing one Pod is left: without it such a template could never be rolled out.
  const maxUnavailable = makesRoom ? Math.max(1, limits.maxUnavailable) : limits.maxUnavailable;
  return {
    live,
    updated,
    old,
    leaving: pods.filter(({ isDeleting }) => isDeleting),
    wantedUpdated,
    outdated,
    ceiling: replicas + surge,
    succeeded: new Map(updated.flatMap((pod) => (pod.replaces === undefined ? [] : [[pod.replaces, pod] as const]))),
    excluded,
    makesRoom,
    minAvailable: replicas - maxUnavailable,
  };
}

/**
 * A Pod that the controller pinned to the Node of the one that it replaces, and that Node does not take it: another Pod
 * may find another one. A Node that the template itself names stays the same, so such a Pod waits.
 */
function strandedOf({ isUsable, template }: RolloutInput, { live }: State): PodDeletion[] {
  return live
    .filter(({ nodeName, pinnedTo, replaces }) => {
      if (nodeName !== undefined || pinnedTo === undefined || replaces === undefined) return false;
      const isTaken = live.some(
        (other) => other.nodeName === pinnedTo && other.uid !== replaces && cannotShare(other, template),
      );
      return isTaken || !isUsable(pinnedTo);
    })
    .map((pod) => ({ pod, why: 'Stranded' as const }));
}

/** Not available ones go first, then old ones, then those that share a base with another one, then the youngest. */
function surplusOf({ replicas, isAvailable }: RolloutInput, { live, old, ceiling }: State): PodDeletion[] {
  // The surge is for new Pods: more old ones than replicas are never needed.
  const candidates = live.length > ceiling ? live : old;
  const count = live.length > ceiling ? live.length - ceiling : old.length - replicas;
  if (count <= 0) return [];
  const onNode = new Map<string, number>();
  for (const { nodeName = '' } of live) onNode.set(nodeName, (onNode.get(nodeName) ?? 0) + 1);
  const isAlone = ({ nodeName = '' }: ModulePod): boolean => (onNode.get(nodeName) ?? 0) < 2;
  const isOld = new Set(old);
  const ranked = candidates.toSorted(
    (a, b) =>
      Number(isAvailable(a)) - Number(isAvailable(b)) ||
      Number(isOld.has(b)) - Number(isOld.has(a)) ||
      Number(isAlone(a)) - Number(isAlone(b)) ||
      byAge(b, a),
  );
  return ranked.slice(0, count).map((pod) => ({ pod, why: 'Surplus' }));
}

function recreatedOf({ old, outdated }: State): PodDeletion[] {
  if (outdated === 0) return [];
  return old.map((pod) => ({ pod, why: 'Outdated' }));
}

/**
 * Old Pods that may go now. One that serves goes when the Pod in its place serves. It makes room before that only
 * where a base cannot have both, where no Pod may be added, or where the scheduler chooses the base.
 */
function replacedOf({ replicas, limits, isAvailable }: RolloutInput, state: State): PodDeletion[] {
  const { live, updated, old, outdated, succeeded, excluded, minAvailable } = state;
  if (outdated === 0) return [];
  // A new Pod that does not serve yet counts as missing, so that failing ones use up the room and the rollout stops.
  const missing = updated.filter((pod) => !isAvailable(pod)).length;
  const room = clamp(live.length - minAvailable - missing, 0, outdated);
  const failing = old
    .filter((pod) => !isAvailable(pod))
    .toSorted(byAge)
    .slice(0, room);
  const isServed = ({ uid }: ModulePod): boolean => {
    const successor = succeeded.get(uid);
    return successor !== undefined && isAvailable(successor);
  };
  const oldUids = new Set(old.map(({ uid }) => uid));
  const others = updated.filter((pod) => isAvailable(pod) && !oldUids.has(pod.replaces ?? ''));
  // New Pods that serve, and for which no old one is left to go, stand for any.
  let unneeded = old.length + others.length - replicas;
  const mayGo = (pod: ModulePod): boolean => {
    if (isServed(pod) || excluded.has(pod)) return true;
    if (succeeded.has(pod.uid)) return false;
    return limits.placement === 'Any' || limits.maxSurge === 0 || unneeded-- > 0;
  };
  const spare = clamp(live.filter(isAvailable).length - minAvailable, 0, room - failing.length);
  const serving = old
    .filter(isAvailable)
    .toSorted((a, b) => Number(isServed(b)) - Number(isServed(a)) || byAge(a, b))
    .filter(mayGo)
    .slice(0, spare);
  return [...failing, ...serving].map((pod) => ({ pod, why: isServed(pod) ? 'Replaced' : 'Outdated' }));
}

function creationsOf(input: RolloutInput, state: State, deletions: readonly PodDeletion[]): PodCreation[] {
  const { replicas, limits, updateRevision, currentRevision } = input;
  const { live, updated, leaving, wantedUpdated, ceiling } = state;
  const remaining = live.length - deletions.length;
  // Nothing of two templates at a time.
  if (limits.type === 'Recreate' && state.outdated > 0) return [];
  if (limits.type === 'Recreate' && leaving.some(({ labels }) => labels[REVISION_LABEL] !== updateRevision)) return [];
  const places = placesOf(input, state, deletions);
  // Where places have to be vacated first, a Pod beyond them would only wait for one.
  const most = state.makesRoom ? Math.max(places.length, replicas - remaining) : Number.POSITIVE_INFINITY;
  const newCount = clamp(Math.min(wantedUpdated - updated.length, most), 0, Math.max(0, ceiling - remaining));
  const oldCount = Math.max(0, replicas - remaining - newCount);
  const creations: PodCreation[] = [];
  for (let index = 0; index < newCount; index++) {
    creations.push({ revision: updateRevision, replaces: places[index] });
  }
  for (let index = 0; index < oldCount; index++) {
    creations.push({ revision: currentRevision ?? updateRevision, replaces: undefined });
  }
  return creations;
}

/**
 * The places that new Pods take: those of old Pods that go now or are going, then of those that stay until the new Pod
 * serves. The rest is the scheduler's.
 */
function placesOf(
  { replicas, limits, updateRevision, template, isUsable, isAvailable }: RolloutInput,
  { live, old, outdated, leaving, succeeded }: State,
  deletions: readonly PodDeletion[],
): ModulePod[] {
  if (limits.placement === 'Any' || limits.type === 'OnDelete' || limits.type === 'Recreate') return [];
  const going = new Set(deletions.map(({ pod }) => pod));
  const taken = new Set(
    live
      .filter((pod) => !going.has(pod) && cannotShare(pod, template))
      .map(({ nodeName, pinnedTo }) => nodeName ?? pinnedTo),
  );
  const isFree = ({ uid, nodeName }: ModulePod): boolean =>
    nodeName !== undefined && !taken.has(nodeName) && !succeeded.has(uid) && isUsable(nodeName);
  const isOldAndLeaving = ({ labels }: ModulePod): boolean => labels[REVISION_LABEL] !== updateRevision;
  const vacated = [...leaving.filter(isOldAndLeaving), ...going].filter(isFree);
  const staying = old.filter((pod) => !going.has(pod) && isFree(pod) && isAvailable(pod)).toSorted(byAge);
  const left = outdated - old.filter((pod) => going.has(pod) || succeeded.has(pod.uid)).length;
  const missing = replicas - (live.length - going.size);
  return [...vacated.slice(0, Math.max(0, missing)), ...staying.slice(0, Math.max(0, left))];
}

/** Whether a base can never have both, even for a moment. */
export function cannotShare(pod: BaseSharing, other: BaseSharing): boolean {
  const isOnlyVersion = pod.isOnlyVersion || other.isOnlyVersion;
  return (
    pod.modules.some((module) => other.modules.some((another) => areApart(module, another, isOnlyVersion))) ||
    pod.exclusions.some((selector) => matchesLabels(selector, other.labels)) ||
    other.exclusions.some((selector) => matchesLabels(selector, pod.labels))
  );
}

function areApart(a: PodModule, b: PodModule, isOnlyVersion: boolean): boolean {
  return a.name === b.name && (a.version === b.version ? a.content !== b.content : isOnlyVersion);
}

/** The oldest first. */
function byAge(a: ModulePod, b: ModulePod): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.uid < b.uid ? -1 : 1;
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(value, most));
}

/**
 * What a strategy comes to for a number of Pods: percentages of surge are rounded up, of missing Pods down. Where both
 * come to nothing one Pod may be missing, as for a Deployment.
 */
export function limitsOf(
  {
    type = 'RollingUpdate',
    rollingUpdate = {},
  }: {
    readonly type?: RolloutLimits['type'];
    readonly rollingUpdate?: {
      readonly maxSurge?: number | string;
      readonly maxUnavailable?: number | string;
      readonly placement?: RolloutLimits['placement'];
    };
  },
  replicas: number,
): RolloutLimits {
  const { maxSurge: surge = '25%', maxUnavailable: missing = '25%', placement = 'SameBase' } = rollingUpdate;
  const maxSurge = countOf(surge, replicas, Math.ceil);
  const rounded = Math.min(replicas, countOf(missing, replicas, Math.floor));
  const maxUnavailable = maxSurge === 0 && rounded === 0 ? Math.min(1, replicas) : rounded;
  return { type, placement, maxSurge, maxUnavailable, isLossless: missing === 0 || missing === '0%' };
}

function countOf(value: number | string, replicas: number, round: (count: number) => number): number {
  return typeof value === 'number' ? value : round((Number.parseInt(value, 10) * replicas) / 100);
}
