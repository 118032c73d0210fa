import type { Member } from './member.ts';

/** What is known of a replica that holds a lease. `Unknown`: its membership lease was never seen. */
export type HolderState = 'Alive' | 'Gone' | 'Unknown';

/** Whether this replica may lead at all, and who else there is. */
export interface Membership {
  /**
   * Asked at the last moment before each act: false from when others may take over, also after a time of standstill.
   */
  isValid(): boolean;
  /** Counts the times that it became valid. Leases confirmed in an earlier term have to be confirmed again. */
  readonly term: number;
  /** It is valid, and the view of the leases is not older than the term. */
  isCurrent(): boolean;
  /** Live replicas, this one among them, by id; those that leave too. */
  members(): readonly Member[];
  /** State of the holder of a lease, when that version of it was written. */
  stateOf(holder: string, resourceVersion: string): HolderState;
  /**
   * Lower bound of the time, in ms, in which nothing was written to a lease that was seen to change at `changedAt`
   * (local clock).
   */
  silentMs(changedAt: number): number;
}

/** What may have changed: leases have to be looked at again. */
export interface MembershipListener {
  /**
   * A renewal of this replica was seen in the watch: more is proven of the silence of others, and in a new term the
   * view is fresh, so that held leases can be confirmed.
   */
  onProven(): void;
  /** Nothing may be led until the next term. */
  onFenced(): void;
}

/** The only replica there is: nobody can take anything from it. */
export class SoleMembership implements Membership {
  readonly term = 1;
  readonly #self: Member;

  constructor(clientId: string) {
    this.#self = { id: clientId, nonce: '', address: undefined, tunnels: [], isLeaving: false };
  }

  isValid(): boolean {
    return true;
  }

  isCurrent(): boolean {
    return true;
  }

  members(): readonly Member[] {
    return [this.#self];
  }

  /** Earlier writers of a lease are gone. */
  stateOf(holder: string): HolderState {
    return holder === this.#self.id ? 'Alive' : 'Gone';
  }

  silentMs(): number {
    return Number.POSITIVE_INFINITY;
  }
}
