import { startRemote } from '../../../../samples/process/remote.ts';
import type { ProfileCalls } from '../../profiler.ts';

export interface FloorOptions {
  /** `https://127.0.0.1:port` */
  server: string;
  /** In PEM. */
  certificateAuthority: string;
  token: string;
  /** `mqtt://127.0.0.1:port` */
  brokerUrl: string;
  env: string;
  /** How many writes are in flight at most. */
  connections: number;
}

export interface FloorCounters {
  /** Nodes created. */
  nodes: number;
  /** Install commands sent, one for each container. */
  installs: number;
  /** Status patches that were taken. */
  patches: number;
  /** Pods deleted. */
  deletes: number;
  /** Writes that came too late, for what they are about is there or gone (409, 404). */
  refused: number;
  /** Any other refusal or broken connection, the one after a second try counts again; and installs that failed. */
  failed: number;
}

export interface FloorProcess extends ProfileCalls {
  readonly pid: number;
  counters(): Promise<FloorCounters>;
  stop(): Promise<void>;
}

/** What the child answers to. */
export interface FloorCalls extends ProfileCalls {
  start(options: FloorOptions): Promise<void>;
  counters(): FloorCounters;
}

/**
 * A null controller in a process of its own: it writes what no controller can leave out, as fast as that can be
 * written, and looks after nothing. What a real controller takes longer, or more of, is what it is to be blamed for.
 * Resolves when its watch stands and it is subscribed.
 */
export function startFloor(options: FloorOptions): Promise<FloorProcess> {
  return startRemote<FloorCalls>('floor', new URL('./floor-child.ts', import.meta.url), options);
}
