import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** How many test files run at a time. Most of them wait most of the time, so they are more than there are cores. */
export interface Workers {
  /** Of what is measured, with unit tests beside it. */
  readonly calm: number;
  readonly integration: number;
  /** Those with JVMs. */
  readonly e2e: number;
  /** Three clusters of several replicas, and what runs beside them. */
  readonly replicas: number;
}

const SAMPLE = fileURLToPath(new URL('./work-sample.ts', import.meta.url));

const ON_A_FAST_MACHINE: Workers = { calm: 6, integration: 8, e2e: 3, replicas: 4 };
/** There, more files at a time would break times that are promised. */
const ON_A_SLOW_MACHINE: Workers = { calm: 5, integration: 6, e2e: 2, replicas: 3 };
const ON_A_VERY_SLOW_MACHINE: Workers = { calm: 3, integration: 4, e2e: 1, replicas: 2 };

/** How many milliseconds two cores, both at work, take for the sample at most. */
const FAST_MS = 11;
const SLOW_MS = 14;

/** What cores of this speed can bear: see `docs/contribute.md`. `sampleMs`: what `work-sample.ts` prints. */
export function workersFor(cores: number, sampleMs: number): Workers {
  const ofTwoMs = (2 * sampleMs) / cores;
  if (ofTwoMs <= FAST_MS) return ON_A_FAST_MACHINE;
  return ofTwoMs <= SLOW_MS ? ON_A_SLOW_MACHINE : ON_A_VERY_SLOW_MACHINE;
}

/** The number for this machine, as busy as it is now. Takes about 0.7 s. */
export async function workersOfThisMachine(): Promise<Workers> {
  const cores = availableParallelism();
  const samples = await Promise.all(Array.from({ length: Math.min(cores, 8) }, sampleMs));
  return workersFor(cores, samples.reduce((sum, ms) => sum + ms, 0) / samples.length);
}

async function sampleMs(): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, [SAMPLE]);
  return Number(stdout);
}
