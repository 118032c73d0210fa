import os from 'node:os';

/** A pending call of `Clock.setTimer`. `cancel` may be called again, and after the call has run. */
export interface Timer {
  cancel(): void;
}

/** The only source of time: pure code gets numbers from it, tests replace it. */
export interface Clock {
  /**
   * Monotonic milliseconds from an arbitrary start; every age and every deadline is counted with it. It may stand still
   * while the machine is suspended.
   */
  now(): number;
  /** The wall clock, for timestamps that are written into API objects. Never compared with another machine's. */
  wallTime(): Date;
  /**
   * Monotonic milliseconds that also count while the machine is suspended, in steps of 10 ms. Reads a file, which takes
   * 80 times as long as the other two: not for hot paths. NaN if it cannot be read.
   */
  bootTime(): number;
  /**
   * Calls back once after `delayMs` milliseconds, soon when that is past. The timer keeps the process alive. A delay
   * may have any length. Infinity never ends, and neither does NaN: at once would repeat a wrong calculation without
   * pause.
   */
  setTimer(callback: () => void, delayMs: number): Timer;
}

/** Node calls back at once for a longer delay. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => performance.now(),
  wallTime: () => new Date(),
  bootTime: () => {
    try {
      return os.uptime() * 1000;
    } catch {
      return Number.NaN;
    }
  },
  setTimer: (callback, delayMs) => (delayMs <= MAX_TIMEOUT_MS ? timeout(callback, delayMs) : chain(callback, delayMs)),
};

function timeout(callback: () => void, delayMs: number): Timer {
  const handle = setTimeout(callback, Math.max(0, delayMs));
  return { cancel: () => clearTimeout(handle) };
}

/** Timer for a delay that one timeout cannot hold: each timeout that ends sets the next, until the rest fits. */
function chain(callback: () => void, delayMs: number): Timer {
  const dueAt = performance.now() + delayMs;
  let link: Timer;
  const next = (): void => {
    const leftMs = dueAt - performance.now();
    link = leftMs <= MAX_TIMEOUT_MS ? timeout(callback, leftMs) : timeout(next, MAX_TIMEOUT_MS);
  };
  next();
  return { cancel: () => link.cancel() };
}

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
