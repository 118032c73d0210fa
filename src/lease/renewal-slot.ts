import { phaseOf } from '../queue/phase.ts';
import { RENEW_INTERVAL_MS } from './lease.ts';

/** A timer may be early by some milliseconds. */
const EARLY_MS = 100;
/** What came late gets back to its own moment by so much each time: with a tenth or two more of renewals, not twice. */
const CATCH_UP_MS = 2_000;
const SOONEST_MS = 2_000;

/**
 * Each lease is renewed at its own moment of the interval, for ever: what a burst, or an API server that was slow, has
 * brought together parts again. Times are of our monotonic clock, ms; at most the interval.
 */
export function nextRenewalInMs(nodeName: string, now: number): number {
  return RENEW_INTERVAL_MS - Math.min(sinceOwnMoment(nodeName, now), CATCH_UP_MS);
}

/** The same for one that we have only now come to lead: at its own moment, if that is not too soon. */
export function firstRenewalInMs(nodeName: string, now: number): number {
  return Math.max(RENEW_INTERVAL_MS - sinceOwnMoment(nodeName, now), SOONEST_MS);
}

/** From -EARLY_MS on, up to the interval less that. */
function sinceOwnMoment(nodeName: string, now: number): number {
  const since = now - phaseOf(nodeName) * RENEW_INTERVAL_MS + EARLY_MS;
  return (((since % RENEW_INTERVAL_MS) + RENEW_INTERVAL_MS) % RENEW_INTERVAL_MS) - EARLY_MS;
}
