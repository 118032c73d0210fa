import { isDeepStrictEqual } from 'node:util';
import { fitsNode, type Placement, type PlacingNode } from '../kube/placement.ts';

/** A Node, as far as it decides how many copies of a module there are where each base has one. */
export interface PeerNode extends PlacingNode {
  readonly isDeleting: boolean;
}

/** The taints of a Node that is not Ready do not last. */
const TAINTS_OF_NODE_HEALTH = 'node.kubernetes.io/';

/**
 * How many bases fit Pods: one for each Node that exists and that they could be bound to. A base that is silent counts
 * until its Node is deleted, so that its copy is there when it comes back.
 */
export function countPeers(placement: Placement, nodes: Iterable<PeerNode>): number {
  let count = 0;
  for (const node of nodes) if (!node.isDeleting && fits(placement, node)) count++;
  return count;
}

/** Whether two versions of a Node fit the same Pods. Most writes are about its status. */
export function isSameForPeers(a: PeerNode, b: PeerNode): boolean {
  return (
    a.isDeleting === b.isDeleting && isDeepStrictEqual(a.labels, b.labels) && isDeepStrictEqual(a.taints, b.taints)
  );
}

function fits(placement: Placement, { name, labels, taints }: PeerNode): boolean {
  const lasting = taints.filter(({ key }) => !key.startsWith(TAINTS_OF_NODE_HEALTH));
  return fitsNode(placement, { name, labels, taints: lasting });
}
