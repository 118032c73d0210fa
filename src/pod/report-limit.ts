import { TokenBucket } from '../token-bucket.ts';

/** What happens to a base in its ordinary life passes; a base that repeats itself gets one line every 10 s. */
const RATE = { burst: 30, refillMs: 10_000 };

/** Fields of a log line. `suppressed`: lines about the base that were left out since the one before. */
export interface Admitted {
  readonly suppressed?: number;
}

/**
 * Bounds the log lines and Events that one base can cause without a command of the controller. The caller brings the
 * time.
 */
export class ReportLimit {
  readonly #bucket: TokenBucket;
  #suppressed = 0;

  constructor(now: number) {
    this.#bucket = new TokenBucket(RATE, now);
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
