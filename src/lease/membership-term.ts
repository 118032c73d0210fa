import type { Clock } from '../clock.ts';
import { FENCE_AFTER_MS } from './member.ts';

/** How long our membership is valid, counted from when the last renewal that succeeded was sent. */
export class MembershipTerm {
  readonly #clock: Clock;
  #number = 0;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #renewedWallMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts up each time that it became valid. */
  get number(): number {
    return this.#number;
  }

  /** On our monotonic clock. */
  get renewedAt(): number {
    return this.#renewedAt;
  }

  get endsAt(): number {
    return this.#renewedAt + FENCE_AFTER_MS;
  }

  /** By both clocks: the monotonic one may stand still with a machine that is suspended, the other may be set back. */
  isValid(): boolean {
    const ageMs = Math.max(this.#clock.now() - this.#renewedAt, this.#clock.wallTime().getTime() - this.#renewedWallMs);
    return ageMs < FENCE_AFTER_MS;
  }

  /** A renewal that was sent then has succeeded. Returns whether a new term begins, also when nobody noticed the end. */
  renewed(sentAt: number, sentWallMs: number): boolean {
    const isNew = !this.isValid();
    this.#renewedAt = Math.max(this.#renewedAt, sentAt);
    this.#renewedWallMs = sentWallMs;
    if (isNew) this.#number += 1;
    return isNew;
  }
}
