import { flushCompileCache } from 'node:module';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { serveCalls } from '../../../../samples/process/serve.ts';
import { profileCalls } from '../../profiler.ts';
import { DEFAULT_RESOLUTION_MS, type MemoryFigures } from './probe.ts';

/** Loaded into a controller that is measured (`--import`); asked over its IPC channel. */

/** What was freed in one round lets more go in the next: weak references, finalizers. */
const COLLECTIONS = 3;
const BETWEEN_COLLECTIONS_MS = 10;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

let watch = watching(DEFAULT_RESOLUTION_MS);

function watching(resolutionMs: number) {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  return { resolutionMs, delays };
}

function watchLoopDelay(resolutionMs: number): void {
  watch.delays.disable();
  watch = watching(resolutionMs);
}

async function memory(): Promise<MemoryFigures> {
  for (let round = 0; round < COLLECTIONS; round++) {
    collectGarbage();
    await delay(BETWEEN_COLLECTIONS_MS);
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heapUsed, external, resident: rss };
}

function takeLoopDelay(): { p99: number; max: number } {
  const { resolutionMs, delays } = watch;
  const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - resolutionMs);
  const figures = { p99: late(delays.percentile(99)), max: late(delays.max) };
  delays.reset();
  return figures;
}

// A controller that ends with SIGKILL leaves nothing to the next one unless it is told to.
serveCalls({
  memory,
  watchLoopDelay,
  takeLoopDelay,
  keepCompiled: () => flushCompileCache(),
  ...profileCalls(),
});
// A controller that is asked to end does not wait for our questions.
process.channel?.unref();
