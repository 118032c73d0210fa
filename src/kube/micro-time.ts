/** metav1.MicroTime: exactly six fractional digits; the API server refuses a Lease with fewer. */
export function microTime(date: Date): string {
  return `${date.toISOString().slice(0, -1)}000Z`;
}

const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
/** A later year has five digits, which metav1.MicroTime cannot have. */
const LAST_YEAR = '9998';

/**
 * The renewTime that follows `previous` in one Lease: the wall clock, or 1 µs after `previous` where the clock is not
 * past it. kube-controller-manager counts a renewal only if renewTime has increased, and the holder before may have
 * had a faster clock. A `previous` that is no metav1.MicroTime is ignored.
 */
export function renewTimeAfter(previous: string, wallTime: Date): string {
  const now = microTime(wallTime);
  if (!MICRO_TIME.test(previous) || previous > LAST_YEAR || now > previous) return now;
  const milliseconds = Date.parse(`${previous.slice(0, 23)}Z`);
  const microseconds = Number(previous.slice(23, 26)) + 1;
  const text = new Date(milliseconds + Math.floor(microseconds / 1000)).toISOString().slice(0, -1);
  return `${text}${String(microseconds % 1000).padStart(3, '0')}Z`;
}

/** metav1.Time: whole seconds, cut and not rounded, as the API server stores it. */
export function secondsTime(date: Date): string {
  return `${date.toISOString().slice(0, -5)}Z`;
}
