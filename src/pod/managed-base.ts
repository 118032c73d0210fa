import type { ModuleLedger, OperationEnd } from '../module/module-ledger.ts';
import type { ModuleId, ModuleKey } from '../tunnel/module.ts';
import type { BaseAddress, TunnelName } from '../tunnel/tunnel.ts';
import type { BaseFacts } from './pod-status.ts';
import type { VPod } from './vpod.ts';

export interface UnknownModule {
  readonly id: ModuleId;
  readonly seenAt: number;
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
  /** Modules of Pods that went without a wait; the PodController empties it. */
  readonly debts: Map<ModuleKey, ModuleId>;
  /** Modules that no Pod asks for and since when; kept by UnknownModules. */
  readonly unknown: Map<ModuleKey, UnknownModule>;
  /** The name that the base itself would have in a list; undefined before it has told its health. */
  readonly masterName: string | undefined;
  facts(): BaseFacts;
  oweRemoval(pod: VPod): void;
  askList(): void;
  onOperationEnd(end: OperationEnd): void;
  /** Told as an event of its Node. */
  onUnknownModules(message: string): void;
}
