import type { TakeReason } from './lease.ts';
import type { LossReason } from './lease-hold.ts';

/** What the Leases need to know of the VNodes that they are about. */
export interface LeaseSubjects {
  readonly nodeUidOf: (nodeName: string) => string | undefined;
  /** The tunnel of the base behind a Node. */
  readonly tunnelOf: (nodeName: string) => string | undefined;
  /** Whether there is anything to lead: the base is heard, or its Node stands. */
  readonly isWanted: (nodeName: string) => boolean;
}

/** Called within the change, so a listener only queues. */
export interface LeaseListener {
  /** This replica leads the Node from now on: called once for each gain. */
  onHeld(nodeName: string, reason: TakeReason): void;
  /** It leads the Node no longer. */
  onLost(nodeName: string, reason: LossReason): void;
}
