import { getHeapStatistics } from 'node:v8';
import { type Clock, sleep } from '../clock.ts';
import type { Traffic } from '../kube/transport/concurrency-limit.ts';
import type { Logger } from '../logger.ts';
import type { Runnable } from '../manager.ts';

/** The heap of this process. */
export interface Heap {
  /** What it takes from the operating system, in bytes. */
  sizeBytes(): number;
  /** Removes all garbage and gives free memory back. Everything waits meanwhile, about 3 ms for each MiB. */
  collect(): void;
}

export interface HeapOptions {
  readonly heap: Heap;
  readonly traffic: Traffic;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Also how long requests to the API server have to be few: bursts come in waves. */
const LOOK_EACH_MS = 5_000;
/** Minimum growth, as a factor of what the collection before has left; less is not worth the pause. */
const WORTHWHILE_GROWTH = 1.35;

/**
 * Gives the memory of a burst back when the burst is over. V8 lets garbage grow before it collects, which costs least
 * while much is to be done, but then keeps it while nothing is.
 */
export function heapKeeper({ heap, traffic, clock, logger }: HeapOptions): Runnable {
  let calmSince = Number.NEGATIVE_INFINITY;
  traffic.onCalm(() => {
    calmSince = clock.now();
  });
  return {
    name: 'heap',
    run: async (signal) => {
      let leftBytes = 0;
      while (!signal.aborted) {
        await sleep(clock, LOOK_EACH_MS, signal);
        const isCalm = traffic.isCalm && clock.now() - calmSince >= LOOK_EACH_MS;
        const sizeBytes = heap.sizeBytes();
        if (signal.aborted || !isCalm || sizeBytes < WORTHWHILE_GROWTH * leftBytes) continue;
        const startedAt = clock.now();
        heap.collect();
        leftBytes = heap.sizeBytes();
        logger.debug({ sizeBytes, leftBytes, tookMs: Math.round(clock.now() - startedAt) }, 'heap collected');
      }
    },
  };
}

/** undefined: Node was started without `--expose-gc`, so that its collector cannot be called. */
export function systemHeap(): Heap | undefined {
  const { gc } = globalThis;
  if (gc === undefined) return undefined;
  return {
    sizeBytes: () => getHeapStatistics().total_heap_size,
    collect: () => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' }),
  };
}
