import { type Slope, slopeOf } from './least-squares.ts';
import type { ReplicaSample, Sample } from './sample.ts';

/** A soak shorter than this cannot tell a percent an hour from noise. */
export const PROMISED_FROM_MINUTES = 60;
/** The least that a leak of one object for each Pod costs: an object, its key and its place in a map. */
export const LEAKED_BYTES = 200;
/**
 * What is allowed, with three standard errors between it and both ends: a heap that does not grow is then taken for
 * one that does in one soak of a thousand, and so is a leak for none.
 */
export const ALLOWED_BYTES = LEAKED_BYTES / 2;
const SURE_ERRORS = 3;
/** With fewer samples, what the size of the world explains is left in the noise. */
const SAMPLES_FOR_OTHERS = 12;

export interface HeapGrowth {
  /** After the warm-up. */
  readonly samples: number;
  readonly meanBytes: number;
  readonly percentPerHour: Slope | undefined;
  /** For each Pod that this replica has led to its end. */
  readonly bytesPerPod: Slope | undefined;
  /** The noise is small enough to tell a leak from none. */
  readonly isSharp: boolean;
}

/**
 * Of one replica over the samples of the churn. The heap also goes up and down with the Pods that are there at the
 * moment of a sample and with the bases led: what these explain is taken out.
 */
export function heapGrowthOf(samples: readonly Sample[], replica: string): HeapGrowth {
  const points = samples.flatMap((sample) => {
    const own = sample.replicas.find((one) => one.replica === replica);
    return own ? [{ sample, own }] : [];
  });
  const isRich = points.length >= SAMPLES_FOR_OTHERS;
  const slopeBy = (x: (point: (typeof points)[number]) => number): Slope | undefined =>
    slopeOf(
      points.map((point) => ({
        x: x(point),
        y: point.own.heap,
        ...(isRich ? { others: [point.sample.world.pods, heldBy(point.own)] } : {}),
      })),
    );
  const meanBytes = points.reduce((sum, { own }) => sum + own.heap, 0) / points.length;
  const byTime = slopeBy(({ sample }) => sample.seconds / 3600);
  const bytesPerPod = slopeBy(({ own }) => own.ended);
  return {
    samples: points.length,
    meanBytes,
    percentPerHour: byTime && {
      slope: (100 * byTime.slope) / meanBytes,
      error: (100 * byTime.error) / meanBytes,
    },
    bytesPerPod,
    isSharp: bytesPerPod !== undefined && SURE_ERRORS * bytesPerPod.error <= ALLOWED_BYTES,
  };
}

function heldBy({ gauges }: ReplicaSample): number {
  return gauges.module_controller_leases_held ?? 0;
}

/** More than is allowed, and not by chance. */
export function isLeak({ bytesPerPod }: Pick<HeapGrowth, 'bytesPerPod'>): boolean {
  if (bytesPerPod === undefined) return false;
  const { slope, error } = bytesPerPod;
  return slope > ALLOWED_BYTES && slope > SURE_ERRORS * error;
}

/**
 * Without the first part of the churn: what is made once is made, and memories that are bounded are full.
 * @param share of the time
 * @param ended so many Pods, as long as at least half of the time is left
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
