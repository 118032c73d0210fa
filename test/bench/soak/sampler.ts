import { appendFile } from 'node:fs/promises';
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

/** Looks at all replicas that are up, writes down what it saw, and keeps it: some kilobytes each. */
export class Sampler {
  readonly #options: SamplerOptions;
  readonly samples: Sample[] = [];
  #startedAt = performance.now();

  constructor(options: SamplerOptions) {
    this.#options = options;
  }

  /** Seconds count from now on. */
  begin(): void {
    this.#startedAt = performance.now();
  }

  /** `note` stands in the line that is told. */
  async take(phase: Sample['phase'], note = ''): Promise<Sample> {
    const { replicas, sizeOf, path, onProgress } = this.#options;
    const taken: ReplicaSample[] = [];
    // One after the other: a garbage collection of all at once would be a fault of its own.
    for (const replica of replicas) {
      const sample = await replica.sample();
      if (sample) taken.push(sample);
    }
    const seconds = Math.round((performance.now() - this.#startedAt) / 100) / 10;
    const sample = { seconds, phase, world: sizeOf(), replicas: taken };
    this.samples.push(sample);
    await appendFile(path, `${JSON.stringify(sample)}\n`);
    onProgress([wordsOf(sample), note].filter(Boolean).join('; '));
    return sample;
  }
}

function wordsOf({ phase, seconds, world, replicas }: Sample): string {
  const { bases, pods, churned, rollouts } = world;
  const each = (text: (one: ReplicaSample) => string): string => replicas.map(text).join(' ');
  return [
    `${phase} ${Math.round(seconds)} s: ${bases} bases, ${pods} Pods, ${churned} gone, ${rollouts} roll-outs`,
    `heap MiB ${each(({ heap }) => numberText(heap / 1024 ** 2))}`,
    `sockets ${each(({ sockets }) => String(sockets))}`,
    `loop p99 ms ${each(({ loopDelayP99 }) => numberText(loopDelayP99))}`,
  ].join('; ');
}
