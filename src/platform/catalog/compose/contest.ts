/** Number of restorations within `CONTEST_MS` that make a contest. */
const MAX_RESTORED = 3;
const CONTEST_MS = 60_000;
/** A contest is over when nobody has changed anything for this long. */
const QUIET_MS = 60_000;
const FIRST_PAUSE_MS = 60_000;
const MAX_PAUSE_MS = 15 * 60_000;

/**
 * Changes of one object by somebody else that do not end. While they go on, the object is changed back less and less
 * often. Times are those of the clock, ms.
 */
export class Contest {
  /** Restorations that may become a contest. */
  #restoredAt: readonly number[] = [];
  /** 0: there is no contest. */
  #pauseMs = 0;
  #pausedUntil = 0;
  /** The object was changed back since the last pause. */
  #isTried = false;
  /** Since when the object is as it was composed. Undefined: it is not. */
  #quietSince: number | undefined;

  /** Length of the present pause, ms; 0: there is no contest. */
  get pauseMs(): number {
    return this.#pauseMs;
  }

  /** Somebody else has changed the object. Returns how long it stays so, ms; 0: it is to be changed back. */
  found(now: number): number {
    if (this.#quietSince !== undefined) this.quiet(now);
    this.#quietSince = undefined;
    if (this.#pauseMs === 0) {
      this.#restoredAt = this.#restoredAt.filter((at) => now - at < CONTEST_MS);
      return this.#restoredAt.length < MAX_RESTORED ? 0 : this.#pause(FIRST_PAUSE_MS, now);
    }
    if (now < this.#pausedUntil) return this.#pausedUntil - now;
    return this.#isTried ? this.#pause(Math.min(2 * this.#pauseMs, MAX_PAUSE_MS), now) : 0;
  }

  restored(now: number): void {
    if (this.#pauseMs === 0) this.#restoredAt = [...this.#restoredAt, now];
    this.#isTried = true;
    this.#quietSince = now;
  }

  /** The object is as it was composed. Returns how long the contest lasts all the same, ms; 0: there is none. */
  quiet(now: number): number {
    this.#quietSince ??= now;
    if (this.#pauseMs === 0) return 0;
    const remainingMs = this.#quietSince + QUIET_MS - now;
    if (remainingMs > 0) return remainingMs;
    this.#pauseMs = 0;
    this.#restoredAt = [];
    return 0;
  }

  #pause(ms: number, now: number): number {
    this.#pauseMs = ms;
    this.#pausedUntil = now + ms;
    this.#isTried = false;
    return ms;
  }
}
