import { statusIn, type VPod } from './vpod.ts';

/** How long the modules of a Pod serve on after its deletion: the longest sleep of those that run, inside the grace. */
export function preStopSleepMs(pod: VPod): number {
  const isRunning = (name: string): boolean =>
    statusIn(pod.status.containerStatuses, name)?.state?.running !== undefined;
  const seconds = pod.containers.map(({ name, preStopSleepSeconds }) => (isRunning(name) ? preStopSleepSeconds : 0));
  return 1000 * Math.min(Math.max(0, ...seconds), pod.deletionGraceSeconds ?? 0);
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
