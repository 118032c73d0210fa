import type { ProfileCalls } from '../../profiler.ts';

/** Of the event loop delay. */
export const DEFAULT_RESOLUTION_MS = 10;

/** What a process that carries `probe-preload.ts` tells about itself. */
export interface ProbeCalls extends ProfileCalls {
  /** After a full garbage collection. */
  memory(): MemoryFigures;
  /** Begins anew with a timer of so many ms. One of 10 ms costs 0.7 % of a core by itself, one of 100 ms 0.1 %. */
  watchLoopDelay(resolutionMs: number): void;
  /** Of the event loop since the last call, ms: how much later than asked the timer fired. */
  takeLoopDelay(): { p99: number; max: number };
  /** What was compiled until now is there for the next process. */
  keepCompiled(): void;
}

export interface MemoryFigures {
  /** Bytes that live: heap, and buffers outside of it. */
  readonly heapUsed: number;
  readonly external: number;
  readonly resident: number;
}
