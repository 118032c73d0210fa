import type { NodeLine } from './watch-line.ts';

export interface NodesSeen {
  /** Wall clock, ms: when the last of them was ready for the first time. */
  readonly lastReadyAt: number;
  /** Those that were ready and then were not, or were deleted. */
  readonly lost: readonly string[];
}

/** When each Node was ready, and whether it stayed so. */
export class NodeBook {
  /** By name, wall clock in ms: ready for the first time. Kept for the whole run: it is the result. */
  readonly #readyAt = new Map<string, number>();
  /** By name, wall clock in ms: not ready any more. Kept, as above. */
  readonly #lostAt = new Map<string, number>();
  #lastReadyAt = 0;

  get ready(): number {
    return this.#readyAt.size;
  }

  take({ name, isUsable, isGone }: NodeLine, at: number): void {
    const wasReady = this.#readyAt.has(name);
    if (!isGone && isUsable) {
      if (wasReady) return;
      this.#readyAt.set(name, at);
      this.#lastReadyAt = at;
    } else if (wasReady && !this.#lostAt.has(name)) {
      this.#lostAt.set(name, at);
    }
  }

  /** Wall clock, ms: when it was lost for the first time. */
  lostAt(name: string): number | undefined {
    return this.#lostAt.get(name);
  }

  seen(): NodesSeen {
    return { lastReadyAt: this.#lastReadyAt, lost: [...this.#lostAt.keys()] };
  }
}
