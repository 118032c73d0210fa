import { appendFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { numberText } from '../report.ts';
import type { ReplicaSample, Sample, WorldSize } from './sample.ts';
import type { SoakReplica } from './soak-replica.ts';

export interface SamplerOptions {
  readonly replicas: readonly SoakReplica[];
  readonly sizeOf: () => WorldSize;
  /** Each sample is a line of JSON there. */
  readonly path: string;
  readonly onProgress: (line: string) => void;
}

/** What a request or a timer holds at one moment is gone at another. */
const CALM_READINGS = 5;
const BETWEEN_READINGS_MS = 600;

/** Looks at all replicas that are up, writes down what it saw, and keeps it: some kilobytes each. */
export class Sampler {
  readonly #options: SamplerOptions;
  readonly samples: Sample[] = [];
  #startedAt: number | undefined;

  constructor(options: SamplerOptions) {
    this.#options = options;
  }

  /** Seconds count from now on; before they are 0. */
  begin(): void {
    this.#startedAt = performance.now();
  }

  /** `note` stands in the line that is told. */
  async take(phase: Sample['phase'], note = ''): Promise<Sample> {
    const { replicas, sizeOf, path, onProgress } = this.#options;
    const taken: ReplicaSample[] = [];
    // One after the other: a garbage collection of all at once would be a fault of its own.
    for (const replica of replicas) {
      const sample = phase === 'calm' ? await medianOf(replica) : await replica.sample();
      if (sample) taken.push(sample);
    }
    const now = performance.now();
    const seconds = Math.round((now - (this.#startedAt ?? now)) / 100) / 10;
    const sample = { seconds, phase, world: sizeOf(), replicas: taken };
    this.samples.push(sample);
    await appendFile(path, `${JSON.stringify(sample)}\n`);
    onProgress([wordsOf(sample), note].filter(Boolean).join('; '));
    return sample;
  }
}

/** By its heap. */
async function medianOf(replica: SoakReplica): Promise<ReplicaSample | undefined> {
  const readings: ReplicaSample[] = [];
  for (let reading = 0; reading < CALM_READINGS; reading++) {
    await delay(BETWEEN_READINGS_MS);
    const sample = await replica.sample();
    if (sample) readings.push(sample);
  }
  return readings.sort((a, b) => a.heap - b.heap)[Math.floor(readings.length / 2)];
}

function wordsOf({ phase, seconds, world, replicas }: Sample): string {
  const { bases, pods, churned, rollouts } = world;
  const each = (text: (one: ReplicaSample) => string): string => replicas.map(text).join(' ');
  return [
    `${phase} ${Math.round(seconds)} s: ${bases} bases, ${pods} Pods, ${churned} gone, ${rollouts} roll-outs`,
    `heap MiB ${each(({ heap }) => (heap / 1024 ** 2).toFixed(2))}`,
    `sockets ${each(({ sockets }) => String(sockets))}`,
    `loop p99 ms ${each(({ loopDelayP99 }) => numberText(loopDelayP99))}`,
  ].join('; ');
}
