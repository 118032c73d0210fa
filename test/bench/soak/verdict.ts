import type { Measurement } from '../suite.ts';
import { grownGauges } from './gauges.ts';
import { ALLOWED_BYTES, afterWarmUp, growthPerPodOf, hourlyGrowthOf, isLeak, PROMISED_FROM_MINUTES } from './growth.ts';
import type { ReplicaSample, Sample } from './sample.ts';
import type { Soaked } from './soak.ts';

/** Connections that a replica uses at rest: a few more of them, in the moment of a sample, are no growth. */
export const MORE_SOCKETS = 8;
export const MAX_PERCENT_PER_HOUR = 1;

/** So many Pods fill the memory of Events, which has 4,096 entries of a kind. */
const MEMORY_FULL = 4_096;

export const FIGURES = {
  violations: { text: 'violations of what replicas promise', unit: '', atMost: 0 },
  differences: { text: 'Pods, modules and Nodes not as wanted in the end', unit: '', atMost: 0 },
  problems: { text: 'requests of the soak that failed', unit: '', atMost: 0 },
  slope: { text: 'growth of the live heap of the replica that lives on', unit: '%/h', atMost: MAX_PERCENT_PER_HOUR },
  shortSlope: { text: `the same, less than ${PROMISED_FROM_MINUTES} minutes tell little`, unit: '%/h' },
  slopeError: { text: 'plus or minus (standard error)', unit: '%/h' },
  bytes: { text: 'growth of its live heap for each Pod that came and went', unit: 'B', atMost: ALLOWED_BYTES },
  noisyBytes: { text: 'the same, in too much noise to be judged', unit: 'B' },
  bytesError: { text: 'plus or minus (standard error)', unit: 'B' },
  leaks: { text: '1: the heap grows, and not by chance', unit: '', atMost: 0 },
  grownGauges: { text: 'sizes in /metrics that grew though the world did not', unit: '', atMost: 0 },
  moreSockets: { text: 'sockets in the end, more than in the beginning', unit: '', atMost: MORE_SOCKETS },
  loopDelay: { text: 'event-loop delay, worst p99 of a sample', unit: 'ms' },
  churned: { text: 'Pods that came and went', unit: '' },
  kills: { text: 'replicas killed', unit: '' },
  flaps: { text: 'bases that died or were silent', unit: '' },
} as const;

export interface VerdictOptions {
  readonly minutes: number;
  /** Of the replica that lives on. */
  readonly replica: string;
  /** Of the churn, at its begin: not judged. */
  readonly warmUpShare: number;
}

/** Pure: what the samples and the checks come to. */
export function verdictOf(soaked: Soaked, options: VerdictOptions): Measurement<keyof typeof FIGURES> {
  const { samples, violations, differences, problems, acts } = soaked;
  const { replica, minutes, warmUpShare: share } = options;
  const isLong = minutes >= PROMISED_FROM_MINUTES;
  const judged = afterWarmUp(samples, { replica, share, ...(isLong ? { ended: MEMORY_FULL } : {}) });
  const hourly = hourlyGrowthOf(judged, replica);
  const perPod = growthPerPodOf(samples, replica);
  const { percentPerHour } = hourly;
  const { bytes, isSharp } = perPod;
  const [first, last] = restsOf(samples, replica);
  const grown = grownGauges(first?.gauges ?? {}, last?.gauges ?? {});
  return {
    values: {
      violations,
      differences: differences.length,
      problems: problems.length,
      // What could not be fitted is told as missing, not as well.
      [isLong ? 'slope' : 'shortSlope']: percentPerHour?.slope ?? Number.NaN,
      slopeError: percentPerHour?.error ?? Number.NaN,
      [isSharp ? 'bytes' : 'noisyBytes']: bytes?.slope ?? Number.NaN,
      bytesError: bytes?.error ?? Number.NaN,
      leaks: Number(isLeak(perPod)),
      grownGauges: first && last ? grown.length : Number.NaN,
      moreSockets: (last?.sockets ?? Number.NaN) - (first?.sockets ?? Number.NaN),
      loopDelay: Math.max(...samples.flatMap((one) => one.replicas.map(({ loopDelayP99 }) => loopDelayP99))),
      churned: samples.at(-1)?.world.churned ?? Number.NaN,
      kills: acts.kill,
      flaps: acts.die + acts.silence,
    },
    details: {
      grown,
      hourly,
      perPod,
      acts,
      differences: soaked.differences,
      problems,
      reports: soaked.reports,
      remembered: soaked.remembered,
      samples: soaked.samplesPath,
    },
  };
}

/** The world is as large in both, but for a base that has died for good. */
function restsOf(samples: readonly Sample[], replica: string): readonly (ReplicaSample | undefined)[] {
  const rests = samples.filter(({ phase }) => phase === 'rest');
  return [rests[0], rests.at(-1)].map((sample) => sample?.replicas.find((one) => one.replica === replica));
}
