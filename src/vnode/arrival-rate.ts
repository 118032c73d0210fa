/** Whether new identities come slowly. Unlike a token bucket it counts also those that come too fast. */
export class ArrivalRate {
  readonly #perMinute: number;
  /** Arrivals less what the rate allows for the time since; at most one more than a minute's. */
  #level = 0;
  #countedAt: number;

  constructor(perMinute: number, now: number) {
    this.#perMinute = perMinute;
    this.#countedAt = now;
  }

  /** Counts an arrival, and says whether the rate is not exceeded with it. */
  isLow(now: number): boolean {
    const allowed = ((now - this.#countedAt) / 60_000) * this.#perMinute;
    this.#countedAt = now;
    this.#level = Math.min(this.#perMinute + 1, Math.max(0, this.#level - allowed) + 1);
    return this.#level <= this.#perMinute;
  }
}
