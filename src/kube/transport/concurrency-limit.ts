import type { Clock } from '../../clock.ts';

export interface ConcurrencyLimitOptions {
  /** Limit of concurrent requests. */
  readonly max: number;
  readonly clock: Clock;
  /** Called with each new limit. */
  readonly onChange: (limit: number) => void;
}

/** At least 2, so that a request always ends and the limit is looked at again. */
const MIN = 2;
const LOOK_EACH_MS = 250;
/** Requests that were sent before a cut go on, so its effect is not seen at once. */
const LOOK_AFTER_CUT_MS = 1_000;
const LATE_MS = 2_000;
const IN_TIME_MS = 1_000;
/** It is calm while less than this part of the limit is in use. */
const CALM_PART = 1 / 8;

/** When to do what nobody waits for. */
export interface Traffic {
  readonly isCalm: boolean;
  /** Called each time that it has become calm. */
  onCalm(listener: () => void): void;
}

/**
 * Requests that make way for others: while those are late, half as many at a time with each look, and one more with
 * each look when they are in time again (additive increase, multiplicative decrease, as TCP). No timer: the ends of
 * requests are the times to look.
 */
export class ConcurrencyLimit implements Traffic {
  readonly #options: ConcurrencyLimitOptions;
  #limit: number;
  #running = 0;
  #lookAt = Number.NEGATIVE_INFINITY;
  /** In order of arrival. Emptied as requests end. */
  readonly #waiting = new Set<() => void>();
  readonly #onCalm: (() => void)[] = [];
  #latenessMs: () => number = () => 0;

  constructor(options: ConcurrencyLimitOptions) {
    this.#options = options;
    this.#limit = options.max;
    options.onChange(options.max);
  }

  get isCalm(): boolean {
    return this.#running < this.#limit * CALM_PART;
  }

  onCalm(listener: () => void): void {
    this.#onCalm.push(listener);
  }

  /**
   * `latenessMs`: how late more urgent requests are, ms. While they are late, fewer requests run here. Default: never.
   */
  giveWayTo(latenessMs: () => number): void {
    this.#latenessMs = latenessMs;
  }

  /** Resolves or rejects as `work` does, which is begun when it is its turn. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#limit) await new Promise<void>((resolve) => this.#waiting.add(resolve));
    else this.#running += 1;
    try {
      return await work();
    } finally {
      const wasCalm = this.isCalm;
      this.#running -= 1;
      this.#look();
      this.#startWaiting();
      if (!wasCalm && this.isCalm) for (const listener of this.#onCalm) listener();
    }
  }

  #startWaiting(): void {
    for (const start of this.#waiting) {
      if (this.#running >= this.#limit) return;
      this.#waiting.delete(start);
      this.#running += 1;
      start();
    }
  }

  #look(): void {
    const { clock, max, onChange } = this.#options;
    const now = clock.now();
    if (now < this.#lookAt) return;
    const limit = nextLimit(this.#limit, max, this.#latenessMs());
    this.#lookAt = now + (limit < this.#limit ? LOOK_AFTER_CUT_MS : LOOK_EACH_MS);
    if (limit === this.#limit) return;
    this.#limit = limit;
    onChange(limit);
  }
}

function nextLimit(limit: number, max: number, lateMs: number): number {
  if (lateMs > LATE_MS) return Math.max(MIN, Math.floor(limit / 2));
  return lateMs < IN_TIME_MS ? Math.min(max, limit + 1) : limit;
}
