/**
 * Which Nodes this replica leads. One replica at a time leads a Node: it writes the Node and its Pods, and speaks to
 * its base. The node Leases decide (src/lease); the answers change between two calls.
 */
export interface Leadership {
  /** Whether this replica leads the Node now, so that it may write and command. Asked again right before each write. */
  isHeld(nodeName: string): boolean;
  /** Whether this replica leads the Node, but not at this moment. Nobody is notified when it does again. */
  isInterrupted(nodeName: string): boolean;
  /** Whether another replica may lead the Node: this one only listens. */
  isFollowed(nodeName: string): boolean;
  /** Whether the Lease of the Node names this replica, whether it leads now or not. */
  isHolder(nodeName: string): boolean;
  /** Whether this replica may act at all, also on objects without a Lease. Asked again right before each write. */
  isMember(): boolean;
}
