import type { ModulePod } from '../../kinds/module-pod.ts';
import { REVISION_LABEL } from '../../labels.ts';
import { baseOf, byAge, type RolloutInput, type RolloutState } from './rollout-state.ts';
import { cannotShare, type PlannedTemplate } from './rollout-template.ts';

/** The base of a new Pod. `uid`: of the Pod that it replaces there; empty: none. */
export type Place = Pick<ModulePod, 'uid' | 'nodeName'>;

export interface Places {
  /** Places of new Pods that replace others. */
  readonly successions: readonly Place[];
  /**
   * The place of a Pod that replaces none. While there are Pods of other templates, that is a base where none of them
   * serves: a base has one active version of a module; or the place of an old one that is to be replaced. Undefined: the
   * scheduler chooses. `none`: it has to wait.
   */
  readonly nextOf: (template: PlannedTemplate) => Place | undefined | 'none';
}

/** `going`: Pods that are deleted now. */
export function placesOf(input: RolloutInput, state: RolloutState, going: ReadonlySet<ModulePod>): Places {
  const { live, freeOf, sharedOf, idleOf } = state;
  const { type, placement } = input.limits;
  const isKept = type === 'RollingUpdate' || type === 'Batch';
  const found = isKept ? successionsOf(input, state, going) : [];
  const successions = placement === 'Any' ? [] : found;
  const others = placement === 'Any' ? [...found] : [];
  const given = new Set(successions.map(({ nodeName }) => nodeName));
  return {
    successions,
    nextOf: (template) => {
      const isMixed = live.some((pod) => !going.has(pod) && pod.labels[REVISION_LABEL] !== template.hash);
      if (!isMixed) return undefined;
      const isFree = (name: string): boolean => !given.has(name);
      const harmless = template === input.former ? sharedOf : idleOf;
      const nodeName = freeOf(template).find(isFree) ?? harmless(template).find(isFree);
      if (nodeName === undefined) return (template === input.update && others.shift()) || 'none';
      given.add(nodeName);
      return { uid: '', nodeName };
    },
  };
}

/** Places of old Pods that go now or are going, then of those that stay until the new Pod serves. */
function successionsOf(
  { replicas, update, isAvailable }: RolloutInput,
  { live, old, outdated, leaving, succeeded, isUpdated }: RolloutState,
  going: ReadonlySet<ModulePod>,
): Place[] {
  const taken = new Set(live.filter((pod) => !going.has(pod) && cannotShare(pod, update.sharing)).map(baseOf));
  const isFree = ({ uid, nodeName }: ModulePod): boolean =>
    nodeName !== undefined && !taken.has(nodeName) && !succeeded.has(uid) && update.isUsable(nodeName);
  const vacated = [...leaving.filter((pod) => !isUpdated(pod)), ...going].filter(isFree);
  const staying = old.filter((pod) => !going.has(pod) && isFree(pod) && isAvailable(pod)).toSorted(byAge);
  const left = outdated - old.filter((pod) => going.has(pod) || succeeded.has(pod.uid)).length;
  const missing = replicas - (live.length - going.size);
  return [...vacated.slice(0, Math.max(0, missing)), ...staying.slice(0, Math.max(0, left))];
}
