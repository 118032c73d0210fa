import type { ModuleLedger, OperationEnd } from '../module/module-ledger.ts';
import type { ModuleId, ModuleKey } from '../tunnel/module.ts';
import type { BaseAddress, TunnelName } from '../tunnel/tunnel.ts';
import type { BaseFacts } from './pod-status.ts';
import type { VPod } from './vpod.ts';

/** What the PodController needs of a base that this process leads. */
export interface ManagedBase {
  readonly nodeName: string;
  readonly tunnel: TunnelName;
  readonly address: BaseAddress;
  /** Commands may be sent. */
  readonly isReachable: boolean;
  readonly ledger: ModuleLedger;
  /** Modules of Pods that went without a wait; the PodController empties it. */
  readonly debts: Map<ModuleKey, ModuleId>;
  facts(): BaseFacts;
  oweRemoval(pod: VPod): void;
  askList(): void;
  onOperationEnd(end: OperationEnd): void;
}
