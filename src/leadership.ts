/**
 * Leadership of Nodes. One replica at a time leads a Node: it writes the Node and its Pods, and speaks to the base. The
 * node Leases decide (src/lease), and an answer may change between two calls.
 */
export interface Leadership {
  /** True while this replica leads the Node, and so may write and command. Asked again right before each write. */
  isHeld(nodeName: string): boolean;
  /** True while this replica leads the Node but may not act. Nobody is notified when it may again. */
  isInterrupted(nodeName: string): boolean;
  /** True while another replica may lead the Node: this one only listens. */
  isFollowed(nodeName: string): boolean;
  /** True if the Lease of the Node names this replica, which may lead it or not. */
  isHolder(nodeName: string): boolean;
  /** True while this replica may act at all, also on objects without a Lease. Asked again right before each write. */
  isMember(): boolean;
}
