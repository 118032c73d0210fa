import type { Clock } from '../clock.ts';
import { type CachedLease, LEASE_DURATION_SECONDS, LED_FOR_MS, type TakeReason, takeReasonOf } from './lease.ts';
import type { DeletedLease, Hold } from './lease-hold.ts';
import type { Membership } from './membership.ts';

export interface DeletedLeasesOptions {
  readonly membership: Membership;
  readonly isCluster: boolean;
  readonly clock: Clock;
}

/**
 * Node leases that somebody has deleted, for as long as who held them may lead on without knowing it. Kept whether
 * the VNode is known here or not: a base may be heard of only after its lease has gone.
 */
export class DeletedLeases {
  readonly #options: DeletedLeasesOptions;
  /** Deleted leases by Node. Emptied by `sweep`. */
  readonly #leases = new Map<string, DeletedLease>();

  constructor(options: DeletedLeasesOptions) {
    this.#options = options;
  }

  /** It was deleted now. */
  add(lease: CachedLease): void {
    const { isCluster, clock } = this.#options;
    if (isCluster) this.#leases.set(lease.name, { lease, at: clock.now() });
  }

  get(nodeName: string): DeletedLease | undefined {
    return this.#leases.get(nodeName);
  }

  /** More may be proven of the silence of those who held them. */
  sweep(): void {
    const { membership } = this.#options;
    for (const [nodeName, { lease, at }] of this.#leases) {
      const isGone = membership.stateOf(lease.holder, lease.resourceVersion) === 'Gone';
      const isOver = membership.silentMs(at) >= LEASE_DURATION_SECONDS * 1000;
      if (isGone || isOver) this.#leases.delete(nodeName);
    }
  }
}

export interface HoldTableOptions {
  readonly membership: Membership;
  readonly holder: string;
  readonly isCluster: boolean;
  readonly clock: Clock;
}

/** The leases of all known VNodes, and which of them this replica holds now. */
export class HoldTable extends Map<string, Hold> {
  readonly #options: HoldTableOptions;

  constructor(options: HoldTableOptions) {
    super();
    this.#options = options;
  }

  isHeld(nodeName: string): boolean {
    const hold = this.get(nodeName);
    const { membership, clock, isCluster } = this.#options;
    if (hold?.term === undefined || hold.isDoubted || hold.handOver) return false;
    if (hold.term !== membership.term || !membership.isValid()) return false;
    // A sole replica cannot lose it, so an API server that is down does not stop it.
    if (!isCluster) return true;
    // One that was deleted may be made by a replica that has just come, and never saw it.
    return hold.lease !== undefined && clock.now() - hold.renewedAt < LED_FOR_MS;
  }

  /**
   * Whether this replica leads the VNode in this term, but not at this moment: its lease is read or made again, or the
   * membership is not valid. When that ends well, nobody is called. So whoever left work undone looks again later.
   */
  isInterrupted(nodeName: string): boolean {
    const hold = this.get(nodeName);
    if (hold?.term !== this.#options.membership.term || hold.handOver) return false;
    return !this.isHeld(nodeName);
  }

  /**
   * Whether a write about it comes before one that would gain a lease: this replica leads the VNode, hands it over, or
   * is the last holder of the lease. A replica that was fenced leads nothing until each lease is confirmed. If
   * confirmations came after renewals, an overloaded API server could delay some until their Nodes are taken for dead.
   */
  isOwnOrReleasing(nodeName: string): boolean {
    const hold = this.get(nodeName);
    if (hold === undefined) return false;
    const { term, handOver, lease, deleted } = hold;
    return term !== undefined || handOver !== undefined || (lease ?? deleted)?.holder === this.#options.holder;
  }

  /** Why this replica may write it now; undefined while another replica may lead. */
  reasonToTake({ lease, changedAt, deleted }: Hold): TakeReason | undefined {
    const { membership, holder, isCluster } = this.#options;
    const last = lease ?? deleted;
    const state = last && membership.stateOf(last.holder, last.resourceVersion);
    return takeReasonOf(lease, { holder, deleted, isCluster, state, silentMs: membership.silentMs(changedAt) });
  }

  heldNames(): string[] {
    return [...this.keys()].filter((nodeName) => this.isHeld(nodeName));
  }

  /**
   * Leases by holder, as far as this replica sees. What it is about to take is its own, what it gives away is the
   * other's, and what was deleted is still the last holder's, who makes it again.
   */
  counts(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { lease, deleted, isClaiming, handOver } of this.values()) {
      const last = (lease ?? deleted)?.holder ?? '';
      const holder = handOver?.to ?? (isClaiming ? this.#options.holder : last);
      if (holder !== '') counts.set(holder, (counts.get(holder) ?? 0) + 1);
    }
    return counts;
  }
}
