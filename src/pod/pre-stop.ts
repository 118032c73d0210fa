import { statusIn, type VPod } from './vpod.ts';

/**
 * How long the modules of a deleted Pod serve on: the longest sleep of those that run, inside the grace.
 * `defaultSeconds`: of a container without a sleep of its own.
 */
export function preStopSleepMs(pod: VPod, defaultSeconds: number): number {
  return Math.min(sleepMsOf(pod, defaultSeconds), 1000 * (pod.deletionGraceSeconds ?? 0));
}

/** The same without a grace, for a Pod that another one replaces. */
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
