import { setTimeout as delay } from 'node:timers/promises';

export interface PollOptions {
  /** Completes the sentence "timed out after 30 s waiting for …". */
  what: string;
  timeoutMs: number;
  /** Default 25 ms. */
  intervalMs?: number;
}

/**
 * The only waiting loop of this folder: calls `check` until it gives something other than undefined.
 * An error thrown by `check` ends the wait at once, so a check must turn "not yet" into undefined.
 */
export async function poll<T>(check: () => Promise<T | undefined>, options: PollOptions): Promise<T> {
  const deadline = performance.now() + options.timeoutMs;
  for (;;) {
    const found = await check();
    if (found !== undefined) return found;
    if (performance.now() > deadline) {
      throw new Error(`timed out after ${options.timeoutMs / 1000} s waiting for ${options.what}`);
    }
    await delay(options.intervalMs ?? 25);
  }
}
