import type { Clock } from '../../src/clock.ts';

/** Over HTTP the link is proven by whatever a base says; who wants to know waits for it. */
export class LinkProbe {
  readonly #clock: Clock;
  /** Emptied by the next word of a base, by the timeout and by `giveUp`. */
  readonly #waiting = new Set<(isHeard: boolean) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a base is heard within `timeoutMs` from now. Any number may run at once. */
  run(timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (isHeard: boolean): void => {
        timer.cancel();
        this.#waiting.delete(finish);
        resolve(isHeard);
      };
      const timer = this.#clock.setTimer(() => finish(false), timeoutMs);
      this.#waiting.add(finish);
    });
  }

  heard(): void {
    this.#finishAll(true);
  }

  /** The tunnel stops: nobody can be heard. */
  giveUp(): void {
    this.#finishAll(false);
  }

  #finishAll(isHeard: boolean): void {
    for (const finish of [...this.#waiting]) finish(isHeard);
  }
}
