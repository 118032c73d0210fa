import type { ModuleLedger, OperationEnd } from '../module/module-ledger.ts';
import type { ModuleId, ModuleKey } from '../tunnel/module.ts';
import type { BaseAddress, TunnelName } from '../tunnel/tunnel.ts';
import type { BaseFacts } from './pod-status.ts';
import type { Debt } from './removals.ts';
import type { ReportLimit } from './report-limit.ts';
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

/** What the PodController needs of a base that this process leads. */
export interface ManagedBase {
  readonly nodeName: string;
  readonly tunnel: TunnelName;
  readonly address: BaseAddress;
  /** How many operations its tunnel takes at a time. */
  readonly maxOperations: number;
  /** Its tunnel takes `switchModule`. */
  readonly canSwitch: boolean;
  /** Commands may be sent. */
  readonly isReachable: boolean;
  readonly ledger: ModuleLedger;
  /** Pods that went without a wait, until the next plan says what of them has to be removed; the PodController empties it. */
  readonly goneWithoutWait: Set<VPod>;
  /** Modules of such Pods; the PodController empties it. */
  readonly debts: Map<ModuleKey, Debt>;
  /** Bounds what is logged and reported of it. */
  readonly reports: ReportLimit;
  /** Modules that no Pod asks for and since when; kept by UnknownModules. */
  readonly unknown: Map<ModuleKey, UnknownModule>;
  /** What the record of first contacts says of it; kept by FirstContacts, `listed` by whoever takes its lists. */
  readonly contact: Contact;
  /** The name that the base itself would have in a list; undefined before it has told its health. */
  readonly masterName: string | undefined;
  facts(): BaseFacts;
  askList(): void;
  onOperationEnd(end: OperationEnd): void;
  /** Told as an event of its Node. */
  onUnknownModules(message: string): void;
}
