import type { LeaseFact } from '../../support/cluster/facts.ts';
import { ratioOf } from './shares.ts';

/** Pure: what the versions of the node leases tell, in the order in which they arrived. Times are wall clock, ms. */
export type LeaseHistory = readonly LeaseFact[];

/** The version of each lease that existed at that time, by base. */
export function leasesAt(history: LeaseHistory, at = Number.POSITIVE_INFINITY): Map<string, LeaseFact> {
  const newest = new Map<string, LeaseFact>();
  for (const version of history) {
    if (version.at > at) break;
    if (version.isGone) newest.delete(version.base);
    else newest.set(version.base, version);
  }
  return newest;
}

/** How many leases each of `among` held then, in that order. */
export function countsAt(history: LeaseHistory, among: readonly string[], at?: number): number[] {
  const leases = [...leasesAt(history, at).values()];
  return among.map((id) => leases.filter(({ holder }) => holder === id).length);
}

/** How a lease went over to others. */
export interface Succession {
  readonly base: string;
  /** From then on it named one of the others; undefined: not yet. */
  readonly heldAt: number | undefined;
  /** Then its new holder had written it itself, and led. */
  readonly confirmedAt: number | undefined;
}

export interface SuccessionOptions {
  readonly bases: readonly string[];
  readonly since: number;
  /** Who may hold it. */
  readonly others: readonly string[];
  /** The former holder is dead: whatever names another holder was written by that one. */
  readonly isHolderDead: boolean;
}

export function successionsOf(history: LeaseHistory, options: SuccessionOptions): Succession[] {
  const byBase = Map.groupBy(history, ({ base }) => base);
  return options.bases.map((base) => successionOf(base, byBase.get(base) ?? [], options));
}

function successionOf(base: string, versions: LeaseHistory, options: SuccessionOptions): Succession {
  const { since, others, isHolderDead } = options;
  let before = versions.findLast(({ at }) => at < since);
  let heldAt: number | undefined;
  let confirmedAt: number | undefined;
  for (const version of versions.filter(({ at }) => at >= since)) {
    const { holder, at, isGone } = version;
    const isHeld = !isGone && others.includes(holder);
    heldAt = isHeld ? (heldAt ?? at) : undefined;
    const isRenewal = before?.holder === holder && version.renewedAt > before.renewedAt;
    // A living holder that gives it away writes the new holder's name into it; nobody else writes another name.
    const isOwnClaim = before?.holder !== holder && (isHolderDead || !before?.holder);
    if (!isHeld) confirmedAt = undefined;
    else if (isRenewal || isOwnClaim) confirmedAt ??= at;
    before = version;
  }
  return { base, heldAt, confirmedAt };
}

/** From when on, for good, every lease was held by one of `among` and none had more than `ratio` times another's. */
export function balancedSince(
  history: LeaseHistory,
  { since, among, ratio }: { since: number; among: readonly string[]; ratio: number },
): number | undefined {
  const holders = new Map([...leasesAt(history, since)].map(([base, { holder }]) => [base, holder]));
  const counts = new Map(among.map((id) => [id, [...holders.values()].filter((holder) => holder === id).length]));
  const isSo = (): boolean => {
    const held = [...counts.values()];
    return held.reduce((sum, count) => sum + count, 0) === holders.size && ratioOf(held) <= ratio;
  };
  let balancedAt = isSo() ? since : undefined;
  for (const { base, holder, at, isGone } of history.filter((version) => version.at > since)) {
    const from = holders.get(base);
    if (from === holder && !isGone) continue;
    count(counts, from, -1);
    if (isGone) holders.delete(base);
    else {
      holders.set(base, holder);
      count(counts, holder, 1);
    }
    balancedAt = isSo() ? (balancedAt ?? at) : undefined;
  }
  return balancedAt;
}

/** Of those who are counted only. */
function count(counts: Map<string, number>, id: string | undefined, change: number): void {
  const known = id === undefined ? undefined : counts.get(id);
  if (id !== undefined && known !== undefined) counts.set(id, known + change);
}

/** By the leases' own counters: one that is not seen for a while is not missed. */
export function transitionsSince(history: LeaseHistory, since: number): number {
  const before = leasesAt(history, since);
  return [...leasesAt(history)].reduce((sum, [base, { transitions }]) => {
    return sum + transitions - (before.get(base)?.transitions ?? 0);
  }, 0);
}

/** When so many leases first had a holder at the same time. */
export function heldSince(history: LeaseHistory, leases: number): number | undefined {
  const held = new Set<string>();
  for (const { base, holder, at, isGone } of history) {
    if (holder === '' || isGone) held.delete(base);
    else held.add(base);
    if (held.size >= leases) return at;
  }
  return undefined;
}
