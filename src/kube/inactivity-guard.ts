import type { Clock, Timer } from '../clock.ts';

/** Calls back once when `touch` has not been called for a time. */
export class InactivityGuard {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onSilence: () => void;
  #touchedAt: number;
  #timer: Timer;

  constructor(clock: Clock, limitMs: number, onSilence: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onSilence = onSilence;
    this.#touchedAt = clock.now();
    this.#timer = clock.setTimer(() => this.#check(), limitMs);
  }

  /** Costs a subtraction later and no timer now: a busy watch calls it thousands of times. */
  touch(): void {
    this.#touchedAt = this.#clock.now();
  }

  stop(): void {
    this.#timer.cancel();
  }

  #check(): void {
    const left = this.#touchedAt + this.#limitMs - this.#clock.now();
    if (left <= 0) this.#onSilence();
    else this.#timer = this.#clock.setTimer(() => this.#check(), left);
  }
}
