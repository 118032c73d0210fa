export interface RolloutLimits {
  readonly type: 'RollingUpdate' | 'Recreate' | 'OnDelete' | 'Batch';
  readonly placement: 'SameBase' | 'Any';
  readonly maxSurge: number;
  readonly maxUnavailable: number;
  /** Somebody wrote 0: then nothing is deleted before something else is available, whatever happens. */
  readonly isLossless: boolean;
}

/**
 * What a strategy comes to for a number of Pods: percentages of surge are rounded up, of missing Pods down. Where both
 * come to nothing one Pod may be missing, as for a Deployment.
 */
export function limitsOf(
  {
    type = 'RollingUpdate',
    rollingUpdate = {},
  }: {
    readonly type?: RolloutLimits['type'];
    readonly rollingUpdate?: {
      readonly maxSurge?: number | string;
      readonly maxUnavailable?: number | string;
      readonly placement?: RolloutLimits['placement'];
    };
  },
  replicas: number,
): RolloutLimits {
  const { maxSurge: surge = '25%', maxUnavailable: missing = '25%', placement = 'SameBase' } = rollingUpdate;
  const maxSurge = countOf(surge, replicas, Math.ceil);
  const rounded = Math.min(replicas, countOf(missing, replicas, Math.floor));
  const maxUnavailable = maxSurge === 0 && rounded === 0 ? Math.min(1, replicas) : rounded;
  return { type, placement, maxSurge, maxUnavailable, isLossless: missing === 0 || missing === '0%' };
}

function countOf(value: number | string, replicas: number, round: (count: number) => number): number {
  return typeof value === 'number' ? value : round((Number.parseInt(value, 10) * replicas) / 100);
}
