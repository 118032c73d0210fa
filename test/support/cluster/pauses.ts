import type { PauseFact } from './facts.ts';

/** On its way through wires and broker a message is handled several times, each in another turn of the event loop. */
const TURNS_MS = 100;
/** A machine that always stands still proves nothing. */
const AT_MOST_MS = 3_000;

/** What came at `at` was sent then at the earliest: on the way it may have waited while the test stood still. */
export function sentAt(at: number, pauses: readonly PauseFact[]): number {
  let earliest = at;
  for (let index = pauses.findLastIndex(({ from }) => from < at); index >= 0; index--) {
    const { from, to } = pauses[index] ?? { from: 0, to: 0 };
    if (to < earliest - TURNS_MS) break;
    earliest = from;
  }
  return Math.max(earliest, at - AT_MOST_MS);
}
