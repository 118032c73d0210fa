import type { ModulePod } from '../../kinds/module-pod.ts';
import { REVISION_LABEL } from '../../labels.ts';
import { type Place, placesOf } from './rollout-places.ts';
import { baseOf, byAge, clamp, type RolloutInput, type RolloutState, stateOf } from './rollout-state.ts';
import { cannotShare, type PlannedTemplate } from './rollout-template.ts';

export interface PodCreation {
  readonly revision: string;
  /** The base where it has to run, and the Pod whose place it takes. Undefined: the scheduler chooses. */
  readonly place: Place | undefined;
}

export interface PodDeletion {
  readonly pod: ModulePod;
  /**
   * `Surplus`: there are too many. `Replaced`: a Pod of the newest template serves in its place. `Outdated`: it makes
   * room for one. `Stranded`: its base cannot take it any more. `Displaced`: another version is active on its base.
   * `GivesWay`: it has never run, and a copy that is promised needs its place.
   */
  readonly why: 'Surplus' | 'Replaced' | 'Outdated' | 'Stranded' | 'Displaced' | 'GivesWay';
}

export interface RolloutPlan {
  readonly deletions: readonly PodDeletion[];
  readonly creations: readonly PodCreation[];
  /** Pods that are missing, and wait for a base that has no other version. */
  readonly waiting: number;
}

/**
 * The next step of a rollout follows from its Pods as they are now: nothing is remembered between two decisions.
 * Deleting what it names leaves at least `replicas - maxUnavailable` Pods available, where that many are; creating what
 * it names makes at most `replicas + maxSurge` Pods, apart from those that are being deleted.
 *
 * Each template has its own number of Pods. The newest one gets no more that do not serve than surge and missing Pods
 * together, so that a version that never serves stops there. Lost Pods of the former template come back with it.
 */
export function planRollout(input: RolloutInput): RolloutPlan {
  const state = stateOf(input);
  for (const deletions of [
    strandedOf(input, state),
    abandonedOf(input, state),
    surplusOf(input, state),
    displacedOf(input, state),
    givingWayOf(input, state),
  ]) {
    if (deletions.length > 0) return { deletions, creations: [], waiting: 0 };
  }
  const deletions = input.limits.type === 'Recreate' ? recreatedOf(state) : replacedOf(input, state);
  return { deletions, ...creationsOf(input, state, deletions) };
}

/**
 * A Pod that the controller pinned to a Node, and that Node does not take it: another Pod may find another one. A Node
 * that the template itself names stays the same, so such a Pod waits.
 */
function strandedOf({ update, former }: RolloutInput, { live, isUpdated }: RolloutState): PodDeletion[] {
  return live
    .filter((pod) => {
      const { nodeName, pinnedTo, replaces } = pod;
      if (nodeName !== undefined || pinnedTo === undefined || replaces === undefined) return false;
      const template = isUpdated(pod) ? update : former;
      const isTaken = live.some(
        (other) => other !== pod && other.nodeName === pinnedTo && other.uid !== replaces && cannotShare(other, pod),
      );
      return isTaken || template?.isUsable(pinnedTo) === false;
    })
    .map((pod) => ({ pod, why: 'Stranded' as const }));
}

/** Pods of templates in between that have never run: they serve nobody, and hold the places of those that could. */
function abandonedOf({ limits, former, isAvailable }: RolloutInput, { old }: RolloutState): PodDeletion[] {
  if (former === undefined || limits.type === 'OnDelete') return [];
  return old
    .filter((pod) => pod.labels[REVISION_LABEL] !== former.hash && !pod.hasRun && !isAvailable(pod))
    .map((pod) => ({ pod, why: 'Outdated' }));
}

/**
 * Not available ones go first, of these such that have not run or do not come back, then old ones, then those that share
 * a base with another one, then the youngest.
 */
function surplusOf({ replicas, isAvailable, isReturning }: RolloutInput, state: RolloutState): PodDeletion[] {
  const { live, old, ceiling, partnerOf } = state;
  // The surge is for new Pods: more old ones than replicas are never needed.
  const candidates = live.length > ceiling ? live : old;
  const count = live.length > ceiling ? live.length - ceiling : old.length - replicas;
  if (count <= 0) return [];
  const onNode = Map.groupBy(live, ({ nodeName = '' }) => nodeName);
  const isAlone = ({ nodeName = '' }: ModulePod): boolean => (onNode.get(nodeName)?.length ?? 0) < 2;
  const isOld = new Set(old);
  // What has displaced another version serves, or will in a moment.
  const serves = (pod: ModulePod): boolean => isAvailable(pod) || partnerOf(pod)?.isDeactivated === true;
  const ranked = candidates.toSorted(
    (a, b) =>
      Number(serves(a)) - Number(serves(b)) ||
      Number(isReturning(a)) - Number(isReturning(b)) ||
      Number(isOld.has(b)) - Number(isOld.has(a)) ||
      Number(isAlone(a)) - Number(isAlone(b)) ||
      byAge(b, a),
  );
  return ranked.slice(0, count).map((pod) => ({ pod, why: 'Surplus' }));
}

/**
 * A Pod whose base has made another version active, where neither takes the place of the other, serves on a base of its
 * own.
 */
function displacedOf({ update, former, isAvailable }: RolloutInput, state: RolloutState): PodDeletion[] {
  const { live, outdated, partnerOf, isUpdated, freeOf } = state;
  const displaced = live.filter((pod) => {
    const partner = pod.isDeactivated ? partnerOf(pod) : undefined;
    if (partner === undefined || !isAvailable(partner)) return false;
    const isRelated = partner.replaces === pod.uid || pod.replaces === partner.uid;
    // An old one goes in its turn, and a new one serves when the old one has gone.
    return !isRelated && outdated === 0;
  });
  return displaced
    .filter((pod) => {
      const template = isUpdated(pod) ? update : former;
      return template !== undefined && freeOf(template).length > 0;
    })
    .map((pod) => ({ pod, why: 'Displaced' }));
}

/**
 * New Pods that have never run, and of which there are more than may be tried at a time, or which hold the only base
 * that a promised copy could have.
 */
function givingWayOf(input: RolloutInput, state: RolloutState): PodDeletion[] {
  const { former } = input;
  const { live, old, updated, wantedOld, mostUpdated, ceiling, untried, freeOf, sharedOf } = state;
  const missing = wantedOld - old.length;
  if (former === undefined || missing <= 0) return [];
  const untriedByAge = updated.filter((pod) => untried.has(pod)).toSorted((a, b) => byAge(b, a));
  const beyond = clamp(updated.length - mostUpdated, 0, missing - (ceiling - live.length));
  if (beyond > 0) return untriedByAge.slice(0, beyond).map((pod) => ({ pod, why: 'GivesWay' }));
  const places = freeOf(former).length + sharedOf(former).length;
  // Copies that come need no place that is free already.
  const short = missing - places;
  if (short <= 0) return [];
  const holding = untriedByAge.filter((pod) => {
    const base = baseOf(pod);
    const isAlone = live.every((other) => baseOf(other) !== base || untried.has(other));
    return base !== undefined && former.isUsable(base) && isAlone;
  });
  return holding.slice(0, short).map((pod) => ({ pod, why: 'GivesWay' }));
}

/**
 * Old Pods that do not serve where a Pod in their place does, or one of the newest template. They have been replaced,
 * also where no further ones are to be.
 */
function supersededOf({ limits, isAvailable }: RolloutInput, { old, partnerOf, isUpdated }: RolloutState): ModulePod[] {
  if (limits.type === 'OnDelete') return [];
  return old.filter((pod) => {
    const partner = isAvailable(pod) ? undefined : partnerOf(pod);
    return partner !== undefined && isAvailable(partner) && (isUpdated(partner) || partner.replaces === pod.uid);
  });
}

function recreatedOf({ old, outdated }: RolloutState): PodDeletion[] {
  if (outdated === 0) return [];
  return old.map((pod) => ({ pod, why: 'Outdated' }));
}

/**
 * Old Pods that may go now. One that serves goes when the Pod in its place serves. It makes room before that only
 * where a base cannot have both, where no Pod may be added, or where the scheduler chooses the base.
 */
function replacedOf(input: RolloutInput, state: RolloutState): PodDeletion[] {
  const { replicas, limits, update, isAvailable } = input;
  const { live, updated, old, outdated, succeeded, excluded, minAvailable, partnerOf, leaving, isUpdated } = state;
  const superseded = supersededOf(input, state);
  // The base makes the newest template's version active again when these go: see docs/modules.md.
  const returning = (pod: ModulePod): boolean => {
    const partner = partnerOf(pod);
    return partner !== undefined && isUpdated(partner) && partner.isDeactivated && byAge(partner, pod) < 0;
  };
  const isReturning = leaving.filter((pod) => !isUpdated(pod) && returning(pod)).length;
  const backward = old
    .filter((pod) => isAvailable(pod) && returning(pod))
    .toSorted(byAge)
    .slice(0, Math.max(0, Math.min(Math.max(1, replicas - minAvailable) - isReturning, outdated - superseded.length)));
  const first = new Set([...superseded, ...backward]);
  // A new Pod that does not serve yet counts as missing, so that failing ones use up the room and the rollout stops.
  const missing = updated.filter((pod) => !isAvailable(pod)).length;
  const room = clamp(live.length - superseded.length - minAvailable - missing, 0, Math.max(0, outdated - first.size));
  // Where no base is left for its replacement, an old Pod makes room for nobody.
  let basesLeft: number | undefined;
  const hasPlace = ({ nodeName = '' }: ModulePod): boolean => {
    if (update.isUsable(nodeName)) return true;
    basesLeft ??= basesLeftOf(input, state);
    return basesLeft-- > 0;
  };
  const failing = old
    .filter((pod) => !isAvailable(pod) && !first.has(pod) && hasPlace(pod))
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
    .filter((pod) => isAvailable(pod) && !first.has(pod))
    .toSorted((a, b) => Number(isServed(b)) - Number(isServed(a)) || byAge(a, b))
    .filter((pod) => mayGo(pod) && (isServed(pod) || hasPlace(pod)))
    .slice(0, spare);
  return [...first, ...failing, ...serving].map((pod) => ({ pod, why: isServed(pod) ? 'Replaced' : 'Outdated' }));
}

/** How many Pods may go whose base no new Pod can have: as many as need no replacement, or as find another base. */
function basesLeftOf({ replicas, update }: RolloutInput, { live, updated }: RolloutState): number {
  const taken = new Set(updated.map(baseOf));
  const unbound = updated.filter((pod) => baseOf(pod) === undefined).length;
  const left = update.bases().filter((name) => !taken.has(name)).length - unbound;
  return Math.max(0, left) + Math.max(0, live.length - replicas);
}

function creationsOf(
  input: RolloutInput,
  state: RolloutState,
  deletions: readonly PodDeletion[],
): Pick<RolloutPlan, 'creations' | 'waiting'> {
  const { replicas, limits, update, former } = input;
  const { live, old, updated, leaving, isUpdated, wantedOld, mostUpdated, ceiling } = state;
  const none = { creations: [], waiting: 0 };
  // Nothing of two templates at a time.
  if (limits.type === 'Recreate' && (state.outdated > 0 || leaving.some((pod) => !isUpdated(pod)))) return none;
  const going = new Set(deletions.map(({ pod }) => pod));
  const remaining = live.length - going.size;
  const remainingOld = old.filter((pod) => !going.has(pod)).length;
  const room = Math.max(0, ceiling - remaining);
  const places = placesOf(input, state, going);
  const oldCount = former === undefined ? 0 : clamp(wantedOld - remainingOld, 0, room);
  // Where places have to be vacated first, a Pod beyond them would only wait for one.
  const most = state.makesRoom ? Math.max(places.successions.length, replicas - remaining) : Number.POSITIVE_INFINITY;
  const newCount = clamp(Math.min(mostUpdated - updated.length, most), 0, room - oldCount);
  // Only what fills up to `replicas` must not displace another Pod: a surge of `Any` takes the place of an old one.
  const isAny = limits.placement === 'Any' && limits.type !== 'OnDelete';
  const filling = isAny ? Math.max(0, replicas - remaining - oldCount) : newCount;
  // A version that is known to serve comes first.
  const restored = placed(former ?? update, oldCount, () => places.nextOf(former ?? update));
  const added = placed(update, newCount, (index) => {
    return places.successions[index] ?? (index < filling ? places.nextOf(update) : undefined);
  });
  return {
    creations: [...restored, ...added],
    waiting: oldCount + newCount - restored.length - added.length,
  };
}

/** Creates Pods of a template until no place is left. */
function placed(
  { hash }: PlannedTemplate,
  count: number,
  placeOf: (index: number) => Place | undefined | 'none',
): PodCreation[] {
  const creations: PodCreation[] = [];
  for (let index = 0; index < count; index++) {
    const place = placeOf(index);
    if (place === 'none') break;
    creations.push({ revision: hash, place });
  }
  return creations;
}
