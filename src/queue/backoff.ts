export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** Delays of a kubelet's container back-off: 10 s, doubled to 5 min. */
export const CONTAINER_BACKOFF: BackoffOptions = { baseMs: 10_000, maxMs: 300_000 };

/** client-go's item backoff: `baseMs` after the first failure, doubled after each further one, at most `maxMs`. */
export function backoffMs(failures: number, options: BackoffOptions): number {
  if (failures <= 0) return 0;
  return Math.min(options.maxMs, options.baseMs * 2 ** (failures - 1));
}
