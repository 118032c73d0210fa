import type { KeyPair } from '../../../../samples/control-plane/certificates.ts';
import { type Remote, startRemote } from '../../../../samples/process/remote.ts';
import type { LeaseAges } from './lease-book.ts';
import type { NodesSeen } from './node-book.ts';
import type { PodStep, PodsSeen } from './pod-book.ts';

export interface ObserverOptions {
  readonly server: string;
  readonly certificateAuthority: string;
  readonly credential: KeyPair;
}

/**
 * What watches of their own report of Nodes, Pods and leases. All times are those at which a watch reported it. Only what
 * is counted is decoded.
 */
export interface ObserverCalls {
  /** Once, before all others; resolves when the watches stand. */
  start(options: ObserverOptions): Promise<void>;
  /** So many Nodes have been ready: Ready=True, and without a taint of Kubernetes' own. */
  untilNodesReady(count: number, timeoutMs: number): Promise<NodesSeen>;
  /** A Node that was ready is so no longer; wall clock, ms. */
  untilNodeLost(name: string, timeoutMs: number): Promise<number>;
  nodes(): NodesSeen;
  /** So many Pods of a group have got so far. */
  untilPods(group: string, step: PodStep, count: number, timeoutMs: number): Promise<PodsSeen>;
  pods(group: string): PodsSeen;
  /** Leases are watched from now on, until `ignoreLeases`; the calls below need it. */
  watchLeases(): Promise<void>;
  ignoreLeases(): Promise<void>;
  /** So many leases were renewed at `since` or later (wall clock, ms); resolves with when that was so. */
  untilRenewed(since: number, count: number, timeoutMs: number): Promise<number>;
  /** Ages of the leases, looked at each second since the last call. */
  takeLeaseAges(): LeaseAges;
}

/** In a process of its own: to read what hundreds of Pods become takes time that nobody else is to lose. */
export function startObserver(options: ObserverOptions): Promise<Remote<ObserverCalls>> {
  return startRemote<ObserverCalls>('observer', new URL('./observer-child.ts', import.meta.url), options);
}
