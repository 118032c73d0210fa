import { type Slope, slopeOf } from './least-squares.ts';
import type { ReplicaSample, Sample } from './sample.ts';

/** A soak shorter than this cannot tell a percent an hour from noise. */
export const PROMISED_FROM_MINUTES = 60;
/** The least that a leak of one object for each Pod costs: an object, its key and its place in a map. */
export const LEAKED_BYTES = 200;
/**
 * What is allowed lies in the middle between no growth and such a leak. It is judged where three standard errors are
 * less than the way to either: then neither is taken for the other by chance.
 */
export const ALLOWED_BYTES = LEAKED_BYTES / 2;
const SURE_ERRORS = 3;
/** With fewer samples, what the size of the world explains is left in the noise. */
const SAMPLES_FOR_OTHERS = 12;

export interface HourlyGrowth {
  /** After the warm-up. */
  readonly samples: number;
  readonly meanBytes: number;
  readonly percentPerHour: Slope | undefined;
}

export interface GrowthPerPod {
  /** For each Pod that came and went anywhere: every replica sees all of them. */
  readonly bytes: Slope | undefined;
  /** The noise is small enough to tell a leak from none. */
  readonly isSharp: boolean;
}

/**
 * Of one replica over samples of the churn. The heap also goes up and down with the Pods that are there at the moment
 * of a sample and with the bases led: what these explain is taken out.
 */
export function hourlyGrowthOf(samples: readonly Sample[], replica: string): HourlyGrowth {
  const points = pointsOf(samples, replica);
  const isRich = points.length >= SAMPLES_FOR_OTHERS;
  const meanBytes = points.reduce((sum, { own }) => sum + own.heap, 0) / points.length;
  const percentPerHour = slopeOf(
    points.map(({ sample, own }) => ({
      x: sample.seconds / 3600,
      y: (100 * own.heap) / meanBytes,
      ...(isRich ? { others: [sample.world.pods, heldBy(own)] } : {}),
    })),
  );
  return { samples: points.length, meanBytes, percentPerHour };
}

/** Over the calm samples: between them Pods come and go, in them the world is the same. The first is a warm-up. */
export function growthPerPodOf(samples: readonly Sample[], replica: string): GrowthPerPod {
  const [, ...points] = pointsOf(
    samples.filter(({ phase }) => phase === 'calm'),
    replica,
  );
  const bytes = slopeOf(points.map(({ sample, own }) => ({ x: sample.world.churned, y: own.heap })));
  return { bytes, isSharp: bytes !== undefined && SURE_ERRORS * bytes.error <= ALLOWED_BYTES };
}

/** More than is allowed, and not by chance. */
export function isLeak({ bytes }: Pick<GrowthPerPod, 'bytes'>): boolean {
  return bytes !== undefined && bytes.slope > ALLOWED_BYTES && bytes.slope > SURE_ERRORS * bytes.error;
}

/**
 * Without the first part of the churn: what is made once is made, and memories that are bounded are full.
 * @param share of the time
 * @param ended so many Pods led to their end, as long as at least half of the time is left
 */
export function afterWarmUp(
  samples: readonly Sample[],
  { replica, share, ended = 0 }: { replica: string; share: number; ended?: number },
): Sample[] {
  const churn = samples.filter(({ phase }) => phase === 'churn');
  const lastAt = churn.at(-1)?.seconds ?? 0;
  return churn.filter((sample) => {
    if (sample.seconds < share * lastAt) return false;
    const own = sample.replicas.find((one) => one.replica === replica);
    return (own?.ended ?? 0) >= ended || sample.seconds >= Math.max(share, 0.5) * lastAt;
  });
}

function pointsOf(samples: readonly Sample[], replica: string): { sample: Sample; own: ReplicaSample }[] {
  return samples.flatMap((sample) => {
    const own = sample.replicas.find((one) => one.replica === replica);
    return own ? [{ sample, own }] : [];
  });
}

function heldBy({ gauges }: ReplicaSample): number {
  return gauges.module_controller_leases_held ?? 0;
}
