import { moduleSpecsOf } from './module-spec.ts';
import type { VPod, VPodStatus } from './vpod.ts';
import { NAME_TAKEN } from './waiting-reason.ts';

/** A status that is to be written. */
export interface StatusChange {
  readonly pod: VPod;
  readonly next: VPodStatus;
}

/**
 * The order in which the statuses of one base are written (V34): oldest Pod first, but where a Pod becomes Ready
 * with a module that another Pod loses, the loss goes first. `changes` oldest first.
 */
export function inWriteOrder<T extends StatusChange>(changes: readonly T[]): T[] {
  const losses = changes.filter(losesReady);
  const ordered = new Set<T>();
  for (const change of changes) {
    if (gainsReady(change)) for (const loss of losses) if (sharesName(loss, change)) ordered.add(loss);
    ordered.add(change);
  }
  return [...ordered];
}

/** Whether `change` must wait since `failed`, which goes before it, could not be written. */
export function mustFollow(change: StatusChange, failed: StatusChange): boolean {
  return losesReady(failed) && gainsReady(change) && sharesName(failed, change);
}

function losesReady({ pod, next }: StatusChange): boolean {
  return isReady(pod.status) && !isReady(next);
}

function gainsReady({ pod, next }: StatusChange): boolean {
  return !isReady(pod.status) && isReady(next);
}

function isReady({ conditions }: VPodStatus): boolean {
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

function sharesName(a: StatusChange, b: StatusChange): boolean {
  const names = ownNamesOf(a.pod, a.next);
  return ownNamesOf(b.pod, b.next).some((name) => names.includes(name));
}

/** The names of the Pod's modules, without those that belong to another namespace by the status; none without one. */
export function ownNamesOf(pod: VPod, status: VPodStatus | undefined): string[] {
  if (status === undefined) return [];
  const taken = status.containerStatuses.filter(({ state }) => state?.waiting?.reason === NAME_TAKEN);
  const isOwn = (name: string): boolean => !taken.some((container) => container.name === name);
  return moduleSpecsOf(pod)
    .map(({ name }) => name)
    .filter(isOwn);
}
