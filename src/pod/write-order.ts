import { moduleSpecsOf } from './module-spec.ts';
import type { VPod, VPodStatus } from './vpod.ts';
import { isAdmissionReason, NAME_TAKEN } from './waiting-reason.ts';

/** A status that is to be written. */
export interface StatusChange {
  readonly pod: VPod;
  readonly next: VPodStatus;
}

/**
 * The order in which the statuses of one base are written: oldest Pod first, but where a Pod becomes Ready with a
 * module that another Pod loses, the loss goes first. `changes` oldest first.
 */
export function inWriteOrder<T extends StatusChange>(changes: readonly T[]): readonly T[] {
  if (changes.length === 1) return changes;
  const losses = changes
    .map((loss, index) => ({ loss, index }))
    .filter(({ loss }) => losesReady(loss))
    .flatMap((entry) => namesOf(entry.loss).map((name) => ({ ...entry, name })));
  const byName = Map.groupBy(losses, ({ name }) => name);
  const ordered = new Set<T>();
  for (const change of changes) {
    const names = gainsReady(change) ? namesOf(change) : [];
    const before = names.flatMap((name) => byName.get(name) ?? []);
    for (const { loss } of before.sort((one, other) => one.index - other.index)) ordered.add(loss);
    // They are in the order now: the next Pod with the name need not look at all of them again.
    for (const name of names) byName.delete(name);
    ordered.add(change);
  }
  return [...ordered];
}

export function losesReady({ pod, next }: StatusChange): boolean {
  return isReady(pod.status) && !isReady(next);
}

export function gainsReady({ pod, next }: StatusChange): boolean {
  return !isReady(pod.status) && isReady(next);
}

function isReady({ conditions }: VPodStatus): boolean {
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

/** The names of the modules that are the Pod's own, by the status that is to be written. */
export function namesOf({ pod, next }: StatusChange): string[] {
  return ownNamesOf(pod, next);
}

/**
 * The names of the Pod's modules, without those that belong to another namespace by the status, and none of a Pod that
 * was not admitted: nothing of it was ever on the base. None without a status.
 */
export function ownNamesOf(pod: VPod, status: VPodStatus | undefined): string[] {
  if (status === undefined) return [];
  const notOwn = new Set<string>();
  for (const { name, state } of status.containerStatuses) {
    const reason = state?.waiting?.reason;
    if (reason === NAME_TAKEN || isAdmissionReason(reason)) notOwn.add(name);
  }
  return moduleSpecsOf(pod)
    .map(({ name }) => name)
    .filter((name) => !notOwn.has(name));
}
