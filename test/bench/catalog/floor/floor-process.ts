import { type Remote, startRemote } from '../../../../samples/process/remote.ts';
import type { ProfileCalls } from '../../profiler.ts';

export interface FloorOptions {
  readonly server: string;
  /** In PEM. */
  readonly certificateAuthority: string;
  /** Token of the platform: the same rights cost the API server the same. */
  readonly token: string;
  readonly env: string;
}

export interface FloorCounters {
  /** Workloads written. */
  writes: number;
  /** Writes that came too late, for what they are about is gone (404). */
  refused: number;
  /** Any other refusal or broken connection, the one after a second try counts again. */
  failed: number;
}

/** Calls of the floor. */
export interface FloorCalls extends ProfileCalls {
  /** Once, before all others; resolves when the watch stands. */
  start(options: FloorOptions): Promise<void>;
  counters(): FloorCounters;
}

/**
 * A null catalog in a process of its own: for each change of a Module it writes what the catalog would write, the
 * workload and then the status of the Module, as fast as that can be written, and looks at nothing else.
 */
export function startFloor(options: FloorOptions): Promise<Remote<FloorCalls>> {
  return startRemote<FloorCalls>('floor', new URL('./floor-child.ts', import.meta.url), options);
}
