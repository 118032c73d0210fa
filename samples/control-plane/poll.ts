import { setTimeout as delay } from 'node:timers/promises';

export interface PollOptions {
  /** Completes the sentence "timed out after 30 s waiting for …". */
  what: string;
  timeoutMs: number;
  /** Default 25 ms. */
  intervalMs?: number;
  /** The rest after a check, as a multiple of the time that the check took, up to a second. Default 0: `intervalMs`. */
  restFactor?: number;
}

const LONGEST_REST_MS = 1_000;

/**
 * The only waiting loop of this folder: calls `check` until it gives something other than undefined.
 * An error thrown by `check` ends the wait at once, so a check must turn "not yet" into undefined.
 */
export async function poll<T>(check: () => Promise<T | undefined>, options: PollOptions): Promise<T> {
  const deadline = performance.now() + options.timeoutMs;
  for (;;) {
    const startedAt = performance.now();
    const found = await check();
    if (found !== undefined) return found;
    const now = performance.now();
    if (now > deadline) {
      throw new Error(`timed out after ${options.timeoutMs / 1000} s waiting for ${options.what}`);
    }
    await delay(restMs({ ...options, tookMs: now - startedAt, leftMs: deadline - now }));
  }
}

/** How long to wait before the next check. The last check is at the deadline, however long the rest would be. */
export function restMs({
  tookMs,
  leftMs,
  intervalMs = 25,
  restFactor = 0,
}: Pick<PollOptions, 'intervalMs' | 'restFactor'> & { tookMs: number; leftMs: number }): number {
  return Math.max(intervalMs, Math.min(restFactor * tookMs, LONGEST_REST_MS, leftMs));
}
