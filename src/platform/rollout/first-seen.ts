import type { Clock } from '../../clock.ts';

interface Seen {
  readonly mark: string;
  readonly at: number;
}

/**
 * How long something has been as it is, by the clock of this process: times in objects come from other machines. After
 * a restart it counts from the start.
 */
export class FirstSeen {
  readonly #clock: Clock;
  /** Kept until `retain` leaves a key out. */
  readonly #seen = new Map<string, Seen>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ms since `key` has had this mark. */
  ageMs(key: string, mark: string): number {
    const now = this.#clock.now();
    const seen = this.#seen.get(key);
    if (seen?.mark === mark) return now - seen.at;
    this.#seen.set(key, { mark, at: now });
    return 0;
  }

  retain(keys: ReadonlySet<string>): void {
    for (const key of this.#seen.keys()) if (!keys.has(key)) this.#seen.delete(key);
  }
}
