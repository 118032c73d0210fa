import type { LeaseFact } from './facts.ts';

/** Somebody held the lease of a base from then on, until somebody wrote another holder. */
export interface Tenure {
  readonly base: string;
  readonly holder: string;
  /** When the version was written, not when it was seen. */
  readonly from: number;
  /** Infinity: until now. */
  readonly to: number;
}

/** Who held which base when, by base, in the order of time. A lease without a holder is a tenure of ''. */
export function tenuresOf(leases: readonly LeaseFact[]): Map<string, Tenure[]> {
  const byBase = new Map<string, Tenure[]>();
  for (const [base, versions] of Map.groupBy(leases, (lease) => lease.base)) byBase.set(base, tenuresOfOne(versions));
  return byBase;
}

function tenuresOfOne(versions: readonly LeaseFact[]): Tenure[] {
  const tenures: Tenure[] = [];
  let before: LeaseFact | undefined;
  for (const version of versions) {
    const holder = version.isGone ? '' : version.holder;
    const last = tenures.at(-1);
    if (last?.holder === holder) {
      before = version;
      continue;
    }
    const from = writtenAt(version, before);
    if (last) tenures[tenures.length - 1] = { ...last, to: from };
    tenures.push({ base: version.base, holder, from, to: Number.POSITIVE_INFINITY });
    before = version;
  }
  return tenures;
}

/** The writer's own word, where it gave one with this very version. */
function writtenAt(version: LeaseFact, before: LeaseFact | undefined): number {
  if (version.isGone) return version.at;
  if (version.acquiredAt > (before?.acquiredAt ?? 0)) return version.acquiredAt;
  return version.renewedAt > (before?.renewedAt ?? 0) ? version.renewedAt : version.at;
}

export function holderAt(tenures: readonly Tenure[] | undefined, at: number): Tenure | undefined {
  return tenures?.findLast(({ from }) => from <= at);
}
