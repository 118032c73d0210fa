import type { KeyPair } from '../../../../samples/control-plane/certificates.ts';
import { type Remote, startRemote } from '../../../../samples/process/remote.ts';
import type { ChangeSeen } from './change-book.ts';

export interface ObserverOptions {
  readonly server: string;
  readonly certificateAuthority: string;
  readonly credential: KeyPair;
}

/** Times of a fill, ms on the clock of `monotonicMs`. */
export interface FillSeen {
  /** The last Module had its workload. */
  readonly composedAt: number;
  /** The last Module was Ready. */
  readonly readyAt: number;
}

export interface FillProgress {
  readonly modules: number;
  readonly workloads: number;
  readonly ready: number;
}

/** Calls of the observer, which watches Modules and ModuleDeployments. All times are those at which an event arrived. */
export interface ObserverCalls {
  /** Once, before all others; resolves when the watches stand. */
  start(options: ObserverOptions): Promise<void>;
  progress(): FillProgress;
  /** Resolves when so many Modules are Ready at the same time. */
  untilReady(count: number, timeoutMs: number): Promise<FillSeen>;
  /** Begins to write down changes with these numbers, and forgets those before. */
  expectChanges(from: number, count: number): void;
  /** Resolves when all of them have come to their workloads, or with what was seen until then after `timeoutMs`. */
  changesSeen(timeoutMs: number): Promise<ChangeSeen[]>;
}

/** In a process of its own: a pause of what is measured, or of what writes, is no time of an event. */
export function startObserver(options: ObserverOptions): Promise<Remote<ObserverCalls>> {
  return startRemote<ObserverCalls>('observer', new URL('./observer-child.ts', import.meta.url), options);
}
