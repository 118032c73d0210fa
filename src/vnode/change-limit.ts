import { TokenBucket } from '../token-bucket.ts';

/** What a base says of itself is written to its Node and its Pods. */
const CHANGE_INTERVAL_MS = 10_000;
/** Moves beyond that interval: a base that restarts elsewhere is worth a write at once. */
const MOVES = { burst: 3, refillMs: 60_000 };

/** How often what a base says of itself may change. A change that is not admitted is in its next heartbeat again. */
export class ChangeLimit {
  readonly #moves: TokenBucket;
  #changedAt = Number.NEGATIVE_INFINITY;

  constructor(now: number) {
    this.#moves = new TokenBucket(MOVES, now);
  }

  /** `isMove`: the address or the tunnel changes, not only names and versions. */
  admit(isMove: boolean, now: number): boolean {
    const isDue = now - this.#changedAt >= CHANGE_INTERVAL_MS;
    if (!isDue && !(isMove && this.#moves.tryTake(now))) return false;
    this.#changedAt = now;
    return true;
  }
}
