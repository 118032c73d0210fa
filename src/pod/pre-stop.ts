import { statusIn, type VPod } from './vpod.ts';

/** A sleep ends with the grace period of the deletion. */
export function withinGrace(sleepMs: number, { deletionGraceSeconds = 0 }: VPod): number {
  return Math.min(sleepMs, 1000 * deletionGraceSeconds);
}

/**
 * How long the modules of a deleted or replaced Pod serve on: the longest sleep of those that run. `defaultSeconds`: of
 * a container without a sleep of its own.
 */
export function sleepMsOf(pod: VPod, defaultSeconds: number): number {
  const seconds = pod.containers.map(({ name, preStopSleepSeconds }) =>
    isRunning(pod, name) ? (preStopSleepSeconds ?? defaultSeconds) : 0,
  );
  return 1000 * Math.max(0, ...seconds);
}

/** The status of the Pod shows its module as running. */
export function isRunning({ status }: VPod, name: string): boolean {
  return statusIn(status.containerStatuses, name)?.state?.running !== undefined;
}

/** The longest duration that the API server can add to a time. With a longer one it writes a wrong deletion time. */
const MAX_GRACE_SECONDS = 2 ** 63 / 1e9;

/**
 * How much of the sleep is over for a deletion whose start this process did not see, by the wall clock. Where the
 * clocks differ, it is anything from nothing to all, never more.
 */
export function sleptMs({ deletionTime = '', deletionGraceSeconds = 0 }: VPod, wallTime: Date): number {
  const endsAt = Date.parse(deletionTime);
  if (Number.isNaN(endsAt) || deletionGraceSeconds > MAX_GRACE_SECONDS) return 0;
  return Math.max(0, wallTime.getTime() - (endsAt - 1000 * deletionGraceSeconds));
}
