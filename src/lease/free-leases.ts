import type { Clock, Timer } from '../clock.ts';
import { claimDelayMs } from './claim-order.ts';
import type { HoldTable } from './hold-table.ts';
import type { Hold } from './lease-hold.ts';
import type { Membership } from './membership.ts';

export interface FreeLeasesOptions {
  readonly membership: Membership;
  readonly holder: string;
  /** `WORKLOAD_MAX_LEVEL`. */
  readonly maxLevel: number;
  readonly tunnelOf: (nodeName: string) => string | undefined;
  /** Whether there is anything to lead: the base is heard, or its Node stands. */
  readonly isWanted: (nodeName: string) => boolean;
  readonly holds: Pick<HoldTable, 'counts' | 'get' | 'size'>;
  /** It is this replica's turn to take it. */
  readonly onTurn: (nodeName: string, hold: Hold) => void;
  readonly clock: Clock;
}

/** How often they are looked at, and how long after the first became free: many become free together. */
const ROUND_MS = 100;

/**
 * Leases of Nodes that any replica may take, and when it is this replica's turn. One timer for all, and none when there
 * are none.
 */
export class FreeLeases {
  readonly #options: FreeLeasesOptions;
  /** Since when, by Node. Emptied as they are taken. */
  readonly #since = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(options: FreeLeasesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#since.size;
  }

  add(nodeName: string): void {
    if (!this.#since.has(nodeName)) this.#since.set(nodeName, this.#options.clock.now());
    this.#arm();
  }

  delete(nodeName: string): void {
    this.#since.delete(nodeName);
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #arm(): void {
    this.#timer ??= this.#options.clock.setTimer(() => this.#round(), ROUND_MS);
  }

  #round(): void {
    this.#timer = undefined;
    const { membership, clock, holds, holder: self, maxLevel, tunnelOf, isWanted, onTurn } = this.#options;
    // The next term begins with a look at all of them.
    if (!membership.isCurrent()) return;
    const held = holds.counts();
    const known = holds.size;
    const members = membership.members();
    for (const [nodeName, since] of this.#since) {
      const hold = holds.get(nodeName);
      if (hold === undefined || !isWanted(nodeName)) continue;
      const delayMs = claimDelayMs({ nodeName, tunnel: tunnelOf(nodeName), self, members, held, known, maxLevel });
      if (delayMs === undefined || clock.now() < since + delayMs) continue;
      this.#since.delete(nodeName);
      held.set(self, (held.get(self) ?? 0) + 1);
      onTurn(nodeName, hold);
    }
    if (this.#since.size > 0) this.#arm();
  }
}
