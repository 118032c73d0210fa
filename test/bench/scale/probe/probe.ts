import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

/**
 * Variables of a process that carries the probe. The cache is where `src/main.js` has it too. The probe is TypeScript
 * and comes first: without a cache it would bring in the compiler, 25 MiB that would count as the process's own.
 */
export const PROBED = {
  NODE_OPTIONS: `--import ${new URL('./probe-preload.ts', import.meta.url).href}`,
  NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache'),
} as const;

export interface MemoryFigures {
  /** Bytes that live: heap, and buffers outside of it. */
  readonly heapUsed: number;
  readonly external: number;
  readonly resident: number;
}
