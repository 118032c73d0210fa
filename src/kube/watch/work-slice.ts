import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';

const SLICE_MS = 5;

/** Breaks up long work, so that timers and other sockets get their turn. */
export class WorkSlice {
  readonly #clock: Clock;
  #startedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  isOver(): boolean {
    return this.#clock.now() - this.#startedAt >= SLICE_MS;
  }

  async yield(): Promise<void> {
    await setImmediate();
    this.#startedAt = this.#clock.now();
  }
}
