import type { LeaseLine } from './watch-line.ts';

export interface LeaseAges {
  /** Seconds, over all leases and all looks. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly looks: number;
}

const SLOT_MS = 100;

/** How old the leases of the Nodes are, as their watch tells. All processes have the clock of one machine. */
export class LeaseBook {
  /** By name, wall clock in ms: the newest `renewTime`. Emptied as leases go. */
  readonly #renewedAt = new Map<string, number>();
  /** Ages that were seen, in slots of 100 ms. */
  readonly #ages: number[] = [];
  #looks = 0;

  take({ name, isGone, renewedAt }: LeaseLine): void {
    if (isGone) this.#renewedAt.delete(name);
    else if (renewedAt !== undefined) this.#renewedAt.set(name, renewedAt);
  }

  /** How many were renewed at this time or later. */
  renewedSince(since: number): number {
    let count = 0;
    for (const at of this.#renewedAt.values()) if (at >= since) count += 1;
    return count;
  }

  /** To be called each second. */
  look(now: number): void {
    this.#looks += 1;
    for (const at of this.#renewedAt.values()) {
      const slot = Math.max(0, Math.floor((now - at) / SLOT_MS));
      this.#ages[slot] = (this.#ages[slot] ?? 0) + 1;
    }
  }

  /** Since the last call, and forgets them. */
  takeAges(): LeaseAges {
    const ages = { p50: this.#quantile(0.5), p99: this.#quantile(0.99), max: this.#quantile(1), looks: this.#looks };
    this.#ages.length = 0;
    this.#looks = 0;
    return ages;
  }

  /** Seconds: the end of the slot in which it lies; NaN where nothing was seen. */
  #quantile(part: number): number {
    const total = this.#ages.reduce((sum, count) => sum + (count ?? 0), 0);
    let left = Math.ceil(total * part);
    for (const [slot, count] of this.#ages.entries()) {
      left -= count ?? 0;
      if (left <= 0) return ((slot + 1) * SLOT_MS) / 1000;
    }
    return Number.NaN;
  }
}
