import { isBefore } from '../module/record-transitions.ts';

/** Heartbeats over HTTP come at this interval (docs/install.md, "Bases over HTTP"). */
const HTTP_HEARTBEAT_MS = 12_000;
const BEAT_TOLERANCE_MS = 2_000;

/** What a health answer says of the process's age. */
export interface RunTime {
  readonly seconds: number;
  /** Local monotonic clock when the answer came. */
  readonly heardAt: number;
}

/** Seconds that a run time may seem to go back by without a restart: it is rounded, and answers can cross. */
const RUN_TIME_TOLERANCE_SECONDS = 1;

/**
 * Whether a later run time is another process's. A smaller one is; where it is known when its question went out
 * (HTTP), so is a larger one of a process that cannot have been there at the time of the earlier answer.
 */
export function isOtherProcess(before: RunTime, seconds: number, askedAt: number | undefined): boolean {
  if (seconds < before.seconds - RUN_TIME_TOLERANCE_SECONDS) return true;
  if (askedAt === undefined) return false;
  const latestStart = before.heardAt - 1000 * before.seconds;
  const earliestStart = askedAt - 1000 * seconds;
  return earliestStart > latestStart + 1000 * RUN_TIME_TOLERANCE_SECONDS;
}

/**
 * Whether a process asked for its baseline before the first message that was heard of it, by its own clock: it is
 * the known one. A broker with much to deliver sends heartbeats (QoS 0) ahead of it.
 */
export function isOfKnownProcess(askedForAt: number | undefined, firstSaidAt: number | undefined): boolean {
  return askedForAt !== undefined && (askedForAt === firstSaidAt || isBefore(askedForAt, firstSaidAt));
}

/**
 * Whether a heartbeat over HTTP comes at an odd moment. A restarted process sends its first one at once,
 * and over HTTP nothing else shows it: the base is asked.
 */
export function isOffBeat(lastBeatAt: number, now: number): boolean {
  return Math.abs(now - lastBeatAt - HTTP_HEARTBEAT_MS) > BEAT_TOLERANCE_MS;
}
