export interface TokenBucketOptions {
  readonly burst: number;
  /** A function where it changes: asked each time. */
  readonly refillMs: number | (() => number);
}

/** Lets `burst` through at once and then one each `refillMs`. Pure: the caller brings the time. */
export class TokenBucket {
  readonly #options: TokenBucketOptions;
  #tokens: number;
  #countedAt: number;

  constructor(options: TokenBucketOptions, now: number) {
    this.#options = options;
    this.#tokens = options.burst;
    this.#countedAt = now;
  }

  /** Takes `count` tokens if there is one; what is missing then is owed, and nothing more is taken until it is paid. */
  tryTake(now: number, count = 1): boolean {
    this.#refill(now);
    if (this.#tokens < 1) return false;
    this.#tokens -= count;
    return true;
  }

  /** Takes a token, perhaps one that is yet to come; returns when it may be used. */
  reserve(now: number): number {
    this.#refill(now);
    this.#tokens--;
    return this.#tokens >= 0 ? now : now + Math.ceil(-this.#tokens * this.#refillMs());
  }

  /** Puts back a token that was taken. */
  refund(): void {
    this.#tokens = Math.min(this.#options.burst, this.#tokens + 1);
  }

  /** How long until there is one. */
  waitMs(now: number): number {
    this.#refill(now);
    return this.#tokens >= 1 ? 0 : Math.ceil((1 - this.#tokens) * this.#refillMs());
  }

  #refill(now: number): void {
    this.#tokens = Math.min(this.#options.burst, this.#tokens + (now - this.#countedAt) / this.#refillMs());
    this.#countedAt = now;
  }

  #refillMs(): number {
    const { refillMs } = this.#options;
    return typeof refillMs === 'number' ? refillMs : refillMs();
  }
}
