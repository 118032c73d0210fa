import type { Clock, Timer } from '../../src/clock.ts';

/** The waits of one simulated process; they all end when it does. */
export class ProcessTimers {
  readonly #clock: Clock;
  /** Emptied as waits end. */
  readonly #waits = new Set<{ timer: Timer; resolve: (isAlive: boolean) => void }>();
  #isTerminated = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isTerminated(): boolean {
    return this.#isTerminated;
  }

  /** Resolves with true after `delayMs`, with false when the process ended before. */
  wait(delayMs: number): Promise<boolean> {
    if (this.#isTerminated) return Promise.resolve(false);
    if (delayMs <= 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const finish = (): void => {
        this.#waits.delete(entry);
        resolve(true);
      };
      const entry = { timer: this.#clock.setTimer(finish, delayMs), resolve };
      this.#waits.add(entry);
    });
  }

  terminate(): void {
    this.#isTerminated = true;
    for (const { timer, resolve } of this.#waits) {
      timer.cancel();
      resolve(false);
    }
    this.#waits.clear();
  }
}
