import { eligibleFor, scoreOf } from './claim-order.ts';
import type { Member } from './member.ts';

export interface LeadLease {
  readonly nodeName: string;
  readonly tunnel: string | undefined;
}

export interface HandOver {
  readonly nodeName: string;
  /** CLIENT_ID of the next holder; '' where there is none: whoever comes takes it. */
  readonly to: string;
}

/** How far the largest and the smallest share may be apart, as a part of a fair share; one more is always allowed. */
const TOLERATED_SHARE = 0.05;

/** Which replicas get the leases that one gives up: those with the fewest, and the same in every run. */
export function spread(leases: readonly LeadLease[], others: readonly Member[], held: Counts): HandOver[] {
  const counts = new Map(others.map(({ id }) => [id, held.get(id) ?? 0]));
  return leases.map(({ nodeName, tunnel }) => {
    const [to] = eligibleFor(tunnel, others)
      .map(({ id }) => ({ id, count: counts.get(id) ?? 0, score: scoreOf(id, nodeName) }))
      .sort((a, b) => a.count - b.count || b.score - a.score);
    if (to === undefined) return { nodeName, to: '' };
    counts.set(to.id, to.count + 1);
    return { nodeName, to: to.id };
  });
}

/** Leases held, by member; absent = 0. */
export type Counts = ReadonlyMap<string, number>;

export interface SharesInput {
  readonly self: string;
  /** Those who take part. */
  readonly members: readonly Member[];
  readonly held: Counts;
  /** Whether a rebalancing is running already: then it goes on to the exact share. */
  readonly isGiving: boolean;
}

/**
 * The replicas that `self` should give leases to, one entry for each lease, so that all have their share with the
 * fewest moves. All replicas that see the same counts give to different ones what these lack, so that nobody gets too
 * many.
 */
export function excessOf({ self, members, held, isGiving }: SharesInput): string[] {
  const counts = members.map(({ id }) => ({ id, count: held.get(id) ?? 0 }));
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const share = Math.floor(total / members.length);
  // The rest of the division stays with the replicas that have the most.
  const byCount = [...counts].sort((a, b) => b.count - a.count || (a.id < b.id ? -1 : 1));
  const shares = byCount.map(({ id, count }, index) => ({
    id,
    excess: count - share - (index < total % members.length ? 1 : 0),
  }));
  const difference = (byCount[0]?.count ?? 0) - (byCount.at(-1)?.count ?? 0);
  if (!isGiving && difference <= Math.max(1, Math.floor(share * TOLERATED_SHARE))) return [];
  const givers = shares.flatMap(({ id, excess }) => Array<string>(Math.max(0, excess)).fill(id));
  const takers = shares.flatMap(({ id, excess }) => Array<string>(Math.max(0, -excess)).fill(id));
  return takers.filter((_id, index) => givers[index] === self);
}
