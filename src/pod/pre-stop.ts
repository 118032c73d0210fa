import type { SleepUntil } from './removals.ts';
import { isTerminal, type VPod } from './vpod.ts';

/** How long the modules of a Pod serve on after its deletion: the longest sleep of those that run, inside the grace. */
export function preStopSleepMs(pod: VPod): number {
  const isRunning = (name: string): boolean =>
    pod.status.containerStatuses.some((status) => status.name === name && status.state?.running !== undefined);
  const seconds = pod.containers.map(({ name, preStopSleepSeconds }) => (isRunning(name) ? preStopSleepSeconds : 0));
  return 1000 * Math.min(Math.max(0, ...seconds), pod.deletionGraceSeconds ?? 0);
}

/** The longest duration that the API server can add to a time. With a longer one it writes a wrong deletion time. */
const MAX_GRACE_SECONDS = 2 ** 63 / 1e9;

/**
 * How much of the sleep is over for a deletion that we did not see begin, by the wall clock. Ours and the API
 * server's may differ: then it is anything from nothing to all, never more.
 */
export function sleptMs({ deletionTime = '', deletionGraceSeconds = 0 }: VPod, wallTime: Date): number {
  const endsAt = Date.parse(deletionTime);
  if (Number.isNaN(endsAt) || deletionGraceSeconds > MAX_GRACE_SECONDS) return 0;
  return Math.max(0, wallTime.getTime() - (endsAt - 1000 * deletionGraceSeconds));
}

/** Keeps until when the modules of deleted Pods serve (`lifecycle.preStop.sleep`). No timers: the plan says when to look. */
export class PreStopSleeps implements SleepUntil {
  /** Emptied when the Pod is gone. */
  readonly #sleeps = new Map<string, { readonly since: number; readonly until: number }>();

  get(uid: string): number | undefined {
    return this.#sleeps.get(uid)?.until;
  }

  /** The Pod as the watch shows it now; `before` is undefined for one that was deleted before we first saw it. */
  observe(before: VPod | undefined, pod: VPod, { now, wallTime }: { now: number; wallTime: Date }): void {
    if (!pod.isDeleting || isTerminal(pod)) return;
    const known = this.#sleeps.get(pod.uid);
    const since = known?.since ?? (before === undefined ? now - sleptMs(pod, wallTime) : now);
    const until = since + preStopSleepMs(pod);
    // A second deletion may shorten the grace period; nothing makes the sleep longer.
    this.#sleeps.set(pod.uid, { since, until: Math.min(until, known?.until ?? until) });
  }

  forget(pod: VPod): void {
    this.#sleeps.delete(pod.uid);
  }
}
