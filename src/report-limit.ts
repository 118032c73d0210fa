import { TokenBucket, type TokenBucketOptions } from './token-bucket.ts';

/** What happens to a base in its ordinary life passes; a base that repeats itself gets one line every 10 s. */
const OF_A_BASE = { burst: 30, refillMs: 10_000 };

/** Fields of a log line. `suppressed`: lines under the same limit that were left out since the one before. */
export interface Admitted {
  readonly suppressed?: number;
}

/**
 * Bounds the log lines and Events that others can cause: by default those that one base causes without a command of the
 * controller. The caller brings the time.
 */
export class ReportLimit {
  readonly #bucket: TokenBucket;
  #suppressed = 0;

  constructor(now: number, rate: TokenBucketOptions = OF_A_BASE) {
    this.#bucket = new TokenBucket(rate, now);
  }

  /** The fields that the line gets besides its own; undefined when it is left out. */
  admit(now: number): Admitted | undefined {
    if (!this.#bucket.tryTake(now)) {
      this.#suppressed++;
      return undefined;
    }
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    return suppressed === 0 ? {} : { suppressed };
  }
}
