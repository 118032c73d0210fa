import type { ModuleRecord } from '../module/module-record.ts';
import { type ModuleId, type ModuleKey, type ModuleSpec, moduleKeyOf } from '../tunnel/module.ts';
import { isTerminal, type VPod } from './vpod.ts';

/** A module that is to be removed although no Pod is there to wait for it. */
export interface PendingRemoval extends RemovedModule {
  /**
   * Namespace of the Pod that had it, which keeps the module's name until the module is gone; undefined: no Pod had it.
   */
  readonly namespace?: string;
}

/** A module that is to be removed, and the install strategy of the Pod that had it, where it is known. */
export type RemovedModule = ModuleId & Pick<ModuleSpec, 'strategy'>;

/** The modules of a Pod that count for a base. */
export type SpecsOf = (pod: VPod) => readonly ModuleSpec[];

export interface Removal {
  readonly id: RemovedModule;
  /** undefined: of a Pod that is gone, or of none. */
  readonly pod: VPod | undefined;
}

/** The Pods of a base, by whether their modules stay or are removed; each list oldest first. */
export interface PodsByFate {
  readonly living: readonly VPod[];
  /** Deleted, but their modules serve until their `preStop.sleep` is over. */
  readonly sleeping: readonly VPod[];
  /** Deleted or ended: their modules are to go. */
  readonly leaving: readonly VPod[];
}

export function isLiving(pod: VPod): boolean {
  return !pod.isDeleting && !isTerminal(pod);
}

export function podsByFate(ordered: readonly VPod[], sleepUntil: SleepUntil, now: number): PodsByFate {
  const living: VPod[] = [];
  const sleeping: VPod[] = [];
  const leaving: VPod[] = [];
  for (const pod of ordered) {
    if (isLiving(pod)) living.push(pod);
    else if (!isTerminal(pod) && now < (sleepUntil.get(pod.uid) ?? 0)) sleeping.push(pod);
    else leaving.push(pod);
  }
  return { living, sleeping, leaving };
}

/** Monotonic time until which the modules of a Pod that is deleted or replaced stay, by its UID. */
export interface SleepUntil {
  get(uid: string): number | undefined;
}

export function removalsOf(
  leaving: readonly VPod[],
  pendingRemovals: ReadonlyMap<ModuleKey, PendingRemoval>,
  specsOf: SpecsOf,
): Map<ModuleKey, Removal> {
  const removals = new Map<ModuleKey, Removal>();
  for (const [key, id] of pendingRemovals) removals.set(key, { id, pod: undefined });
  for (const pod of leaving) for (const spec of specsOf(pod)) removals.set(moduleKeyOf(spec), { id: spec, pod });
  return removals;
}

/** Deleting Pods whose uninstall failed, with the base's words. */
export function failedKillsOf(
  deleting: readonly VPod[],
  leftRecord: (key: ModuleKey) => ModuleRecord | undefined,
  specsOf: SpecsOf,
): Map<VPod, string> {
  const failed = new Map<VPod, string>();
  for (const pod of deleting) {
    for (const spec of specsOf(pod)) {
      const failure = leftRecord(moduleKeyOf(spec))?.failure;
      if (failure?.reason === 'KillContainerError') failed.set(pod, `module ${moduleKeyOf(spec)}: ${failure.message}`);
    }
  }
  return failed;
}
