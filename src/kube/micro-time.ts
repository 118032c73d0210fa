/** metav1.MicroTime: exactly six fractional digits; the API server refuses a Lease with fewer. */
export function microTime(date: Date): string {
  return `${date.toISOString().slice(0, -1)}000Z`;
}

/** metav1.Time: whole seconds, cut and not rounded, as the API server stores it. */
export function secondsTime(date: Date): string {
  return `${date.toISOString().slice(0, -5)}Z`;
}
