import type { PauseFact } from './facts.ts';

const TICK_MS = 5;
const PAUSE_MS = 50;

/** Notes when this process did one thing only, or was given no processor. */
export class LoopWatch {
  readonly pauses: PauseFact[] = [];
  readonly #timer: NodeJS.Timeout;
  #tickedAt = Date.now();

  constructor() {
    this.#timer = setInterval(() => {
      const now = Date.now();
      if (now - this.#tickedAt > PAUSE_MS) this.pauses.push({ from: this.#tickedAt, to: now });
      this.#tickedAt = now;
    }, TICK_MS);
    this.#timer.unref();
  }

  /** How long of the time since then, in ms. */
  pausedMs(since: number): number {
    return this.pauses.reduce((sum, { from, to }) => sum + Math.max(0, to - Math.max(from, since)), 0);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
