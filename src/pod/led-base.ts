import type { Clock } from '../clock.ts';
import type { Metrics } from '../metrics.ts';
import type { ModuleLedger, OperationEnd } from '../module/module-ledger.ts';
import type { ReportLimit } from '../report-limit.ts';
import type { ModuleId, ModuleKey } from '../tunnel/module.ts';
import type { BaseAddress, TunnelName } from '../tunnel/tunnel.ts';
import type { BaseFacts } from './pod-status.ts';
import type { PendingRemoval } from './removals.ts';
import type { VPod } from './vpod.ts';

export interface UnknownModule {
  readonly id: ModuleId;
  readonly seenAt: number;
  /** In the log and as an event of the Node. */
  readonly isReported: boolean;
}

/** What this process knows of a base's first contact while it leads the base. */
export interface Contact {
  /** All that the lists before the first plan had; undefined from that plan on. A restart of the base clears none. */
  listed: Map<ModuleKey, ModuleId> | undefined;
  /** undefined: no plan was made with a list. Before the record was read: what `listed` had that no Pod asks for. */
  kept: Set<ModuleKey> | 'all' | undefined;
  /** The record was read, or written, since this process leads the base. */
  isRecorded: boolean;
  /** Claimed by Pods, and not yet taken off the record. */
  readonly claimed: Set<ModuleKey>;
  /** How many kept modules the newest list has. */
  keptCount: number;
  /** Kept modules of the newest list that were reported; outlives a change of the leader. */
  reported: ReadonlySet<ModuleKey>;
}

export function newContact(before?: Contact): Contact {
  const reported = before?.reported ?? new Set();
  return { listed: new Map(), kept: undefined, isRecorded: false, claimed: new Set(), keptCount: 0, reported };
}

/** A base that this process leads, as far as its Pods matter: plain state. */
export interface LedBase {
  readonly nodeName: string;
  readonly tunnel: TunnelName;
  readonly address: BaseAddress;
  /** It is heard, and it is the one at its address. */
  readonly isReachable: boolean;
  readonly ledger: ModuleLedger;
  /** Pods that were deleted without a wait for their modules. The next plan turns them into pending removals. */
  readonly vanishedPods: Set<VPod>;
  /** Modules of such Pods. The PodController empties it. */
  readonly pendingRemovals: Map<ModuleKey, PendingRemoval>;
  /** Bounds what is logged and reported of it. */
  readonly reports: ReportLimit;
  /** Modules that no Pod asks for and since when. UnknownModules keeps it. */
  readonly unknown: Map<ModuleKey, UnknownModule>;
  /** What the record of first contacts says of it. FirstContacts keeps it, and `listed` whoever takes its lists. */
  readonly contact: Contact;
  /** The name that the base has in its own list; undefined before its first health answer. */
  readonly masterName: string | undefined;
  facts(): BaseFacts;
  /** Its list and health change with an operation: they are asked for a little later, once for several operations. */
  operationEnded(now: number): void;
}

/** Counts the end of an operation, and has the base looked at again. */
export function noteOperationEnd(
  base: LedBase,
  { command, result, tookMs }: OperationEnd,
  { clock, metrics }: { readonly clock: Clock; readonly metrics: Metrics },
): void {
  metrics.moduleOperations.inc({ command, result });
  metrics.moduleOperationSeconds.observe({ command }, tookMs / 1000);
  base.operationEnded(clock.now());
}
