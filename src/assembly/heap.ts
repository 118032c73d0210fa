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

/** Bursts come in waves. */
const CALM_FOR_MS = 5_000;
/** Of what the collection before has left; less is not worth the pause. */
const WORTHWHILE_GROWTH = 1.5;

/**
 * Gives the memory of a burst back when the burst is over. V8 lets garbage grow before it collects, which costs least
 * while much is to be done, but then keeps it while nothing is. At rest this does nothing.
 */
export function heapKeeper({ heap, traffic, clock, logger }: HeapOptions): Runnable {
  let bursts = 0;
  let wake: () => void = () => {};
  traffic.onCalm(() => {
    bursts += 1;
    wake();
  });
  return {
    name: 'heap',
    run: async (signal) => {
      signal.addEventListener('abort', () => wake(), { once: true });
      const woken = (): Promise<void> =>
        new Promise((resolve) => {
          wake = resolve;
        });
      let leftBytes = 0;
      for (let seen = 0; !signal.aborted; ) {
        if (seen === bursts) await woken();
        seen = bursts;
        await sleep(clock, CALM_FOR_MS, signal);
        const sizeBytes = heap.sizeBytes();
        const isOver = seen === bursts && traffic.isCalm && !signal.aborted;
        if (!isOver || sizeBytes < WORTHWHILE_GROWTH * leftBytes) continue;
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
