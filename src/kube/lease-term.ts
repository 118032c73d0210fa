import type { Clock } from '../clock.ts';

/** Readings of all clocks of this machine, taken together; ms. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
  readonly bootMs: number;
}

/** Boot time is read first: a process that is stopped between two readings then looks older, never younger. */
export function momentOf(clock: Clock): Moment {
  const bootMs = clock.bootTime();
  const monotonicMs = clock.now();
  return { bootMs, monotonicMs, wallMs: clock.wallTime().getTime() };
}

/** The clocks agree while they differ by no more than this. The wall clock has whole milliseconds, and NTP slews it. */
const CLOCKS_AGREE_MS = 100;
/** Resolution of `bootTime`: the difference of two readings may be too small by this much. */
const BOOT_TIME_STEP_MS = 10;

/**
 * How long what a Lease gives to this process is valid, counted from when its last successful renewal was sent.
 *
 * The monotonic clock stands still while the machine is suspended, the wall clock can be set, and boot time is too
 * expensive for a check before every request. So boot time is read only when the first two disagree: it says how much
 * of the disagreement is a suspend. A step of the wall clock does not end a term, a suspend does.
 */
export class LeaseTerm {
  readonly #clock: Clock;
  readonly #validMs: number;
  #number = 0;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #renewedBootMs = Number.NEGATIVE_INFINITY;
  /** Wall clock minus monotonic clock, when boot time was last known to explain the difference. */
  #wallOffsetMs = 0;
  /** Upper bound of the time since the renewal in which the monotonic clock stood still. */
  #suspendedMs = 0;

  /** `validMs`: how long a renewal is good for. */
  constructor(clock: Clock, validMs: number) {
    this.#clock = clock;
    this.#validMs = validMs;
  }

  /** Counts up each time that it became valid. */
  get number(): number {
    return this.#number;
  }

  /** On the monotonic clock. */
  get renewedAt(): number {
    return this.#renewedAt;
  }

  get endsAt(): number {
    return this.#renewedAt + this.#validMs;
  }

  isValid(): boolean {
    return this.#ageMs() < this.#validMs;
  }

  /** The renewal that was sent at that moment has succeeded. Returns whether a new term begins, noticed end or not. */
  renewed(sent: Moment): boolean {
    const isNew = !this.isValid();
    if (sent.monotonicMs >= this.#renewedAt) {
      this.#renewedAt = sent.monotonicMs;
      this.#renewedBootMs = sent.bootMs;
      this.#wallOffsetMs = sent.wallMs - sent.monotonicMs;
      this.#suspendedMs = 0;
    }
    if (isNew) this.#number += 1;
    return isNew;
  }

  /** Never too small, except for a suspend whose length the wall clock was set back by at the same time. */
  #ageMs(): number {
    const now = this.#clock.now();
    const awakeMs = now - this.#renewedAt;
    if (awakeMs >= this.#validMs) return awakeMs;
    const wallOffsetMs = this.#clock.wallTime().getTime() - now;
    const shiftMs = wallOffsetMs - this.#wallOffsetMs;
    if (Math.abs(shiftMs) <= CLOCKS_AGREE_MS) return awakeMs + this.#suspendedMs + Math.max(0, shiftMs);
    this.#suspendedMs = this.#suspendedSince(awakeMs);
    this.#wallOffsetMs = wallOffsetMs;
    return awakeMs + this.#suspendedMs;
  }

  /** Infinite where boot time cannot be read, or counts less than the monotonic clock: then nothing is proven. */
  #suspendedSince(awakeMs: number): number {
    const suspendedMs = this.#clock.bootTime() - this.#renewedBootMs + BOOT_TIME_STEP_MS - awakeMs;
    return suspendedMs > -CLOCKS_AGREE_MS ? Math.max(0, suspendedMs) : Number.POSITIVE_INFINITY;
  }
}
