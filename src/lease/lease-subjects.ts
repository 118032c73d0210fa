import type { TakeReason } from './lease.ts';
import type { LossReason } from './lease-hold.ts';

/** The VNodes that leases are about: what is to be known of them, and what they hear. */
export interface LeaseSubjects {
  readonly nodeUidOf: (nodeName: string) => string | undefined;
  /** The tunnel of the base behind a Node. */
  readonly tunnelOf: (nodeName: string) => string | undefined;
  /** Whether there is anything to lead: the base is heard, or its Node stands. */
  readonly isWanted: (nodeName: string) => boolean;
  /** The lease is ours since now: called once per gain. */
  readonly onHeld: (nodeName: string, reason: TakeReason) => void;
  /** It is ours no longer. */
  readonly onLost: (nodeName: string, reason: LossReason) => void;
}
