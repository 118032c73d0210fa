import type { Clock, Timer } from '../../src/clock.ts';

interface Entry {
  readonly due: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Time that stands still until a test moves it. */
export class FakeClock implements Clock {
  #now = 0;
  #order = 0;
  readonly #start: number;
  readonly #entries = new Set<Entry>();

  constructor(wallStart = '2026-01-01T00:00:00.000Z') {
    this.#start = Date.parse(wallStart);
  }

  now(): number {
    return this.#now;
  }

  wallTime(): Date {
    return new Date(this.#start + this.#now);
  }

  bootTime(): number {
    return this.#now;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const entry = { due: this.#now + Math.max(0, delayMs), order: this.#order++, callback };
    this.#entries.add(entry);
    return { cancel: () => void this.#entries.delete(entry) };
  }

  /** How many timers wait. */
  get pending(): number {
    return this.#entries.size;
  }

  /** Milliseconds until the next timer, or undefined when none waits. */
  get nextIn(): number | undefined {
    const next = this.#next();
    return next && next.due - this.#now;
  }

  /** Moves time as for a process that is stopped: what came due runs with the next `advance`, late. */
  stopFor(ms: number): void {
    this.#now += ms;
  }

  /** Moves time and runs what comes due, in order of time and then of setting; also timers set on the way. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let next = this.#next(); next && next.due <= end; next = this.#next()) {
      this.#entries.delete(next);
      this.#now = Math.max(this.#now, next.due);
      next.callback();
    }
    this.#now = end;
  }

  /** The same, with the promises that each timer wakes settled before the next one runs. */
  async advanceAsync(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (let next = this.#next(); next && next.due <= end; next = this.#next()) {
      this.#entries.delete(next);
      this.#now = Math.max(this.#now, next.due);
      next.callback();
      await settle();
    }
    this.#now = end;
  }

  #next(): Entry | undefined {
    let first: Entry | undefined;
    for (const entry of this.#entries) {
      if (!first || entry.due < first.due || (entry.due === first.due && entry.order < first.order)) first = entry;
    }
    return first;
  }
}

/** Lets every promise that can go on without input or time do so. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
