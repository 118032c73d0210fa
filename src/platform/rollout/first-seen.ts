import type { Clock } from '../../clock.ts';

interface Seen {
  readonly mark: string;
  readonly at: number;
}

/**
 * How long something has been as it is, by the clock of this process: times in objects come from other machines. What
 * this process sees for the first time may have been so for longer.
 */
export class FirstSeen {
  readonly #clock: Clock;
  /** Kept until `retain` leaves a key out. */
  readonly #seen = new Map<string, Seen>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `key` has this mark now. `forMs`: how long it says that it has had it, where nothing was seen of `key` before. */
  note(key: string, mark: string, forMs = 0): void {
    const seen = this.#seen.get(key);
    if (seen?.mark === mark) return;
    this.#seen.set(key, { mark, at: this.#clock.now() - (seen === undefined ? Math.max(0, forMs) : 0) });
  }

  /** Ms since `key` has had its mark; 0 where nothing was noted. */
  ageMs(key: string): number {
    const seen = this.#seen.get(key);
    return seen === undefined ? 0 : this.#clock.now() - seen.at;
  }

  retain(keys: ReadonlySet<string>): void {
    for (const key of this.#seen.keys()) if (!keys.has(key)) this.#seen.delete(key);
  }
}
