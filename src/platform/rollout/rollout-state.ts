import type { ModulePod } from '../../kinds/module-pod.ts';
import { REVISION_LABEL } from '../../labels.ts';
import type { RolloutLimits } from './rollout-limits.ts';
import { cannotShare, type PlannedTemplate } from './rollout-template.ts';

/** Facts that decide the next step of a rollout. */
export interface RolloutInput {
  /** How many Pods there should be. */
  readonly replicas: number;
  readonly limits: RolloutLimits;
  /** Its own Pods, in any order; those that are being deleted too, unless they have ended. */
  readonly pods: readonly ModulePod[];
  /** The newest template. */
  readonly update: PlannedTemplate;
  /**
   * The template that is known to serve: Pods above `updatedLimit`, and those that were lost, have it. Undefined: there
   * is none, and no such limit.
   */
  readonly former: PlannedTemplate | undefined;
  /** How many Pods may be of the newest template for now. */
  readonly updatedLimit: number;
  readonly isAvailable: (pod: ModulePod) => boolean;
  /** Whether a Pod that is not available has run, and is likely to come back by itself. */
  readonly isReturning: (pod: ModulePod) => boolean;
}

/** What follows from the input, calculated once for all decisions. */
export interface RolloutState {
  /** Pods that are not being deleted. */
  readonly live: readonly ModulePod[];
  readonly updated: readonly ModulePod[];
  readonly old: readonly ModulePod[];
  readonly leaving: readonly ModulePod[];
  readonly isUpdated: (pod: ModulePod) => boolean;
  /** How many Pods of the newest template there may be now. */
  readonly mostUpdated: number;
  /** How many Pods of other templates there have to be now. */
  readonly wantedOld: number;
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
  /** New Pods that have never run. */
  readonly untried: ReadonlySet<ModulePod>;
  /** The Pod of another template on the same base. */
  readonly partnerOf: (pod: ModulePod) => ModulePod | undefined;
  /** Usable bases without a Pod. */
  readonly freeOf: (template: PlannedTemplate) => readonly string[];
  /** Usable bases with nothing but new Pods that have never run, and that may stay beside one of this template. */
  readonly sharedOf: (template: PlannedTemplate) => readonly string[];
  /** Usable bases with nothing but old Pods that do not serve, and that may stay beside one of this template. */
  readonly idleOf: (template: PlannedTemplate) => readonly string[];
}

export function stateOf(input: RolloutInput): RolloutState {
  const { replicas, limits, pods, update, former, updatedLimit, isAvailable, isReturning } = input;
  const live = pods.filter(({ isDeleting }) => !isDeleting);
  const isUpdated = ({ labels }: ModulePod): boolean => labels[REVISION_LABEL] === update.hash;
  const updated = live.filter(isUpdated);
  const old = live.filter((pod) => !isUpdated(pod));
  const isManual = limits.type === 'OnDelete';
  // Without a former template, a lost Pod can come back with the newest one alone, in a pause too.
  const limit = Math.max(Math.min(updatedLimit, replicas), former === undefined ? replicas - old.length : 0);
  const wantedUpdated = isManual ? Math.max(0, replicas - old.length) : limit;
  const outdated = isManual ? 0 : Math.max(0, old.length - Math.max(0, reachableOf(input, live) - wantedUpdated));
  const excluded = new Set(old.filter((pod) => cannotShare(pod, update.sharing)));
  const makesRoom = !limits.isLossless && (isApart(input) || (outdated > 0 && excluded.size > 0));
  // Of a percentage that comes to nothing one Pod is left: without it such a template could never be rolled out.
  const maxUnavailable = makesRoom ? Math.max(1, limits.maxUnavailable) : limits.maxUnavailable;
  const minAvailable = replicas - maxUnavailable;
  const untried = new Set(updated.filter((pod) => !isAvailable(pod) && !pod.hasRun));
  const standing = updated.filter((pod) => isAvailable(pod) || isReturning(pod)).length;
  const isGradual = former !== undefined && (limits.type === 'RollingUpdate' || limits.type === 'Batch');
  // As many as a rollout may try at a time, beside those that serve.
  const tried = updated.filter(isAvailable).length + limits.maxSurge + maxUnavailable;
  const mostUpdated = isGradual ? Math.min(wantedUpdated, tried) : wantedUpdated;
  const atLeast = Math.max(replicas - Math.max(mostUpdated, standing), isGradual ? minAvailable - standing : 0);
  const wantedOld = isManual || former === undefined ? 0 : Math.max(0, atLeast);
  const maxSurge = limits.type === 'Recreate' ? 0 : limits.maxSurge;
  const surge =
    outdated > 0 ? maxSurge : clamp(wantedOld + Math.min(updated.length, mostUpdated) - replicas, 0, maxSurge);
  return {
    live,
    updated,
    old,
    leaving: pods.filter(({ isDeleting }) => isDeleting),
    isUpdated,
    mostUpdated,
    wantedOld,
    outdated,
    ceiling: replicas + surge,
    succeeded: new Map(updated.flatMap((pod) => (pod.replaces ? [[pod.replaces, pod] as const] : []))),
    excluded,
    makesRoom,
    minAvailable,
    untried,
    ...neighboursOf(live, { untried, isIdle: (pod) => !isUpdated(pod) && !isAvailable(pod) }),
  };
}

/**
 * Whether no base can have the former template beside the newest one. That is true to the end of the rollout: what has
 * made room for a new Pod must not come back before that one serves.
 */
function isApart({ former, update }: RolloutInput): boolean {
  return former !== undefined && cannotShare(former.sharing, update.sharing);
}

/** How many Pods find a base: those above that number keep no place for old ones. */
function reachableOf({ replicas, update }: RolloutInput, live: readonly ModulePod[]): number {
  if (live.length >= replicas) return replicas;
  return Math.min(replicas, new Set([...update.bases(), ...live.map(baseOf)]).size);
}

function neighboursOf(
  live: readonly ModulePod[],
  { untried, isIdle }: Pick<RolloutState, 'untried'> & { readonly isIdle: (pod: ModulePod) => boolean },
): Pick<RolloutState, 'partnerOf' | 'freeOf' | 'sharedOf' | 'idleOf'> {
  const byBase = Map.groupBy(live, baseOf);
  const basesWith = (template: PlannedTemplate, fits: (pod: ModulePod) => boolean): string[] =>
    template
      .bases()
      .filter((name) => byBase.get(name)?.every((pod) => fits(pod) && !cannotShare(pod, template.sharing)) === true);
  return {
    partnerOf: (pod) => {
      if (pod.nodeName === undefined) return undefined;
      const others = (byBase.get(pod.nodeName) ?? []).filter(
        ({ labels }) => labels[REVISION_LABEL] !== pod.labels[REVISION_LABEL],
      );
      return others.find(({ isReady }) => isReady) ?? others[0];
    },
    freeOf: (template) => template.bases().filter((name) => !byBase.has(name)),
    sharedOf: (template) => basesWith(template, (pod) => untried.has(pod)),
    idleOf: (template) => basesWith(template, isIdle),
  };
}

/** The base where a Pod runs, or has to run. */
export function baseOf({ nodeName, pinnedTo }: ModulePod): string | undefined {
  return nodeName ?? pinnedTo;
}

/** The oldest first. */
export function byAge(a: ModulePod, b: ModulePod): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.uid < b.uid ? -1 : 1;
}

export function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(value, most));
}
