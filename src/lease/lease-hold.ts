import { compareResourceVersions } from '../kube/resource-version.ts';
import type { CachedLease, TakeReason } from './lease.ts';

/** Why a lease is given away. */
export type HandOverReason = 'Leaving' | 'TunnelDown' | 'Rebalancing';

/** Why a VNode is not led any more. */
export type LossReason = HandOverReason | 'Taken' | 'Conflict' | 'Fenced' | 'Foreign';

/** What is known of the lease of one VNode, and what this replica intends with it. */
export interface Hold {
  /** The newest version of it, from the watch or from an answer; undefined when it has to be created. */
  lease: CachedLease | undefined;
  /** Its last version, when it was deleted: who held it makes it again. */
  deleted: CachedLease | undefined;
  /** The latest renewTime that was seen, also of a Lease that was deleted since; '' = none. The next one follows it. */
  renewTime: string;
  /** When it was last seen to change, on the local clock. */
  changedAt: number;
  /** The term of this replica's membership in which it was confirmed as held; undefined = not held. */
  term: number | undefined;
  /** Another replica may have written it: nothing is led until it has been read. */
  isDoubted: boolean;
  /** When the last renewal that succeeded was sent, and when the next one is due, on the local clock. */
  renewedAt: number;
  renewAt: number;
  /** It is this replica's turn to take it. */
  isClaiming: boolean;
  /** Another replica has made this one the holder. */
  isGiven: boolean;
  /** To be given away. */
  handOver: PendingHandOver | undefined;
  /** Time until which another ENV has the name, as far as is known; on the local clock. */
  foreignUntil: number;
}

export interface PendingHandOver {
  /** CLIENT_ID; '' = nobody. */
  readonly to: string;
  readonly reason: HandOverReason;
  /** Called once, when it is written, or there is nothing to write any more. */
  readonly done: () => void;
}

export function newHold(now: number, deleted?: DeletedLease): Hold {
  return {
    lease: undefined,
    deleted: deleted?.lease,
    renewTime: deleted?.lease.renewTime ?? '',
    changedAt: deleted?.at ?? now,
    term: undefined,
    isDoubted: false,
    renewedAt: Number.NEGATIVE_INFINITY,
    renewAt: Number.NEGATIVE_INFINITY,
    isClaiming: false,
    isGiven: false,
    handOver: undefined,
    foreignUntil: Number.NEGATIVE_INFINITY,
  };
}

/** Takes a version of the lease; returns false for one that is older than what is known, or of one that is deleted. */
export function observe(
  hold: Hold,
  lease: CachedLease,
  me: { readonly holder: string; readonly now: number },
): boolean {
  const { lease: known } = hold;
  if (lease.uid === hold.deleted?.uid) return false;
  if (known?.uid === lease.uid) {
    const order = compareResourceVersions(lease.resourceVersion, known.resourceVersion);
    if (order < 0) return false;
    // Of one version, heard as an answer and from the watch, the first one stays: the other is garbage at once.
    if (order === 0) return true;
  }
  const isNewlyOurs = lease.holder === me.holder && known !== undefined && known.holder !== lease.holder;
  if (isNewlyOurs) hold.isGiven = !hold.isClaiming;
  hold.changedAt = me.now;
  hold.lease = lease;
  if (lease.renewTime > hold.renewTime) hold.renewTime = lease.renewTime;
  return true;
}

/** The reason under which a gain is reported. */
export function gainOf(hold: Hold, reason: TakeReason): TakeReason {
  return reason === 'Own' && hold.isGiven ? 'HandedOver' : reason;
}

/** The last version of a lease, and when it was seen to be deleted, on the local clock. */
export interface DeletedLease {
  readonly lease: CachedLease;
  readonly at: number;
}
