import { flushCompileCache } from 'node:module';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { serveCalls } from '../../../../samples/process/serve.ts';
import type { MemoryFigures } from './probe.ts';

/** Loaded into a controller that is measured (`--import`); asked over its IPC channel. */

const RESOLUTION_MS = 10;
/** What was freed in one round lets more go in the next: weak references, finalizers. */
const COLLECTIONS = 3;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delays.enable();

async function memory(): Promise<MemoryFigures> {
  for (let round = 0; round < COLLECTIONS; round++) {
    collectGarbage();
    await delay(RESOLUTION_MS);
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heapUsed, external, resident: rss };
}

function takeLoopDelay(): { p99: number; max: number } {
  const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
  const figures = { p99: late(delays.percentile(99)), max: late(delays.max) };
  delays.reset();
  return figures;
}

// A controller that ends with SIGKILL leaves nothing to the next one unless it is told to.
serveCalls({ memory, takeLoopDelay, keepCompiled: () => flushCompileCache() });
// A controller that is asked to end does not wait for our questions.
process.channel?.unref();
