/** A pending call of `Clock.setTimer`. `cancel` may be called again, and after the call has run. */
export interface Timer {
  cancel(): void;
}

/** The only source of time: pure code gets numbers from it, tests replace it. */
export interface Clock {
  /** Monotonic milliseconds from an arbitrary start; every age and every deadline is counted with it. */
  now(): number;
  /** The wall clock, for timestamps that are written into API objects. Never compared with another machine's. */
  wallTime(): Date;
  /** Calls back once after `delayMs` milliseconds, soon when that is past. The timer keeps the process alive. */
  setTimer(callback: () => void, delayMs: number): Timer;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wallTime: () => new Date(),
  setTimer: (callback, delayMs) => {
    const handle = setTimeout(callback, Math.max(0, delayMs));
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Resolves after `delayMs` milliseconds, or at once when `signal` is or gets aborted. Never rejects. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const timer = clock.setTimer(finish, delayMs);
    signal?.addEventListener('abort', finish, { once: true });
  });
}
