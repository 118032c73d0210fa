import { availableParallelism } from 'node:os';

/** How many test files run at a time. Most of them wait most of the time, so they are more than there are cores. */
export interface Workers {
  readonly integration: number;
  readonly e2e: number;
}

const ON_A_FAST_MACHINE: Workers = { integration: 8, e2e: 3 };
/** There, more files at a time would break times that are promised. */
const ON_A_SLOW_MACHINE: Workers = { integration: 6, e2e: 2 };

/** Two cores that take 11 ms for the sample each. */
const FAST_SAMPLES_PER_MS = 2 / 11;

/** What two cores of this speed can bear: see `docs/contribute.md`. `sampleMs`: what {@link sampleOfWorkMs} measured. */
export function workersFor(cores: number, sampleMs: number): Workers {
  return cores / sampleMs >= FAST_SAMPLES_PER_MS ? ON_A_FAST_MACHINE : ON_A_SLOW_MACHINE;
}

/** The number for this machine, as busy as it is now. Takes about 0.1 s. */
export function workersOfThisMachine(): Workers {
  return workersFor(availableParallelism(), sampleOfWorkMs());
}

/** Milliseconds that a core takes for a fixed piece of work, much like what controllers do: the shortest of ten. */
function sampleOfWorkMs(): number {
  const pods = JSON.stringify(
    Array.from({ length: 200 }, (_, i) => ({
      metadata: { name: `pod-${i}`, labels: { base: String(i) } },
      status: { phase: 'Running', restarts: i },
    })),
  );
  const tries = Array.from({ length: 10 }, () => {
    const startMs = performance.now();
    for (let i = 0; i < 60; i++) JSON.stringify(JSON.parse(pods));
    return performance.now() - startMs;
  });
  return Math.min(...tries);
}
