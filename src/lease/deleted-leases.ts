import type { Clock } from '../clock.ts';
import { type CachedLease, LEASE_DURATION_SECONDS } from './lease.ts';
import type { Membership } from './membership.ts';

/** The last version of a lease, and when it was seen to be deleted, on our clock. */
export interface DeletedLease {
  readonly lease: CachedLease;
  readonly at: number;
}

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
  /** By Node. Emptied by `sweep`. */
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
