/** Leases held by the one with the most over the one with the fewest; Infinity when somebody has none. */
export function ratioOf(counts: readonly number[]): number {
  return Math.max(...counts) / Math.min(...counts);
}

/** How many leases must change hands at least for everybody to have the fair share. One who comes has 0. */
export function fewestMoves(counts: readonly number[]): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const share = Math.floor(total / counts.length);
  // What is left of the division costs no move where it is already.
  const byCount = counts.toSorted((a, b) => b - a);
  return byCount.reduce((moves, count, index) => {
    return moves + Math.max(0, count - share - (index < total % counts.length ? 1 : 0));
  }, 0);
}

/** As near as rebalancing brings them: one apart, or 5 % of the share. */
export function isBalanced(counts: readonly number[]): boolean {
  const share = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return Math.max(...counts) - Math.min(...counts) <= Math.max(1, Math.floor(share * 0.05));
}
