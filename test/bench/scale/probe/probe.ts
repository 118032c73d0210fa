/** What a process that carries `probe-preload.ts` tells about itself. */
export interface ProbeCalls {
  /** After a full garbage collection. */
  memory(): MemoryFigures;
  /** Of the event loop since the last call, ms: how much later than asked a timer of 10 ms fired. */
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
