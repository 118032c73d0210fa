import { isDeepStrictEqual } from 'node:util';
import type { KubeObject, PodObject } from '../../kube/objects.ts';
import {
  matchesNode,
  type Placement,
  type PlacingNode,
  placementOf,
  untoleratedTaintOf,
} from '../../kube/placement.ts';
import { collectionPathOf, type ResourceKind } from '../../kube/resource.ts';
import type { CachedObject } from '../../kube/watch/informer-types.ts';
import { COMPONENT, COMPONENT_LABEL, PEER_STRATEGY, REPLICAS_CONTROL_LABEL, STRATEGY_LABEL } from '../../labels.ts';
import type { WatchedKind } from '../../reconcile/informers.ts';

export const DEPLOYMENTS: ResourceKind = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  isNamespaced: true,
};

export interface DeploymentObject extends KubeObject {
  readonly spec?: {
    /** Default 1. */
    readonly replicas?: number;
    readonly template?: {
      readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
      readonly spec?: PodObject['spec'];
    };
  };
}

/** The part of a Deployment with the label `strategy: peer` that the informer keeps. */
export interface PeerDeployment extends CachedObject {
  readonly isDeleting: boolean;
  /** Its replicas are somebody else's for now. */
  readonly isReleased: boolean;
  /** Its Pods are modules: others never run on a VNode. */
  readonly isOfModules: boolean;
  readonly replicas: number;
  readonly placement: Placement;
}

export const PEER_DEPLOYMENTS: WatchedKind<PeerDeployment> = {
  kind: 'Deployment',
  path: collectionPathOf(DEPLOYMENTS),
  labelSelector: () => `${STRATEGY_LABEL}=${PEER_STRATEGY}`,
  project: projectDeployment,
};

export function projectDeployment(object: KubeObject): PeerDeployment {
  const { metadata, spec = {} } = object as DeploymentObject;
  const { metadata: podMetadata, spec: podSpec } = spec.template ?? {};
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    isDeleting: metadata.deletionTimestamp !== undefined,
    isReleased: metadata.labels?.[REPLICAS_CONTROL_LABEL] === 'true',
    isOfModules: podMetadata?.labels?.[COMPONENT_LABEL] === COMPONENT.module,
    replicas: spec.replicas ?? 1,
    placement: placementOf(podSpec ?? { containers: [] }),
  };
}

/** Whether bases decide its replicas. */
export function isScaled({ isDeleting, isReleased, isOfModules }: PeerDeployment): boolean {
  return isOfModules && !isReleased && !isDeleting;
}

/** Whether two versions differ in nothing that is kept of them. A roll-out writes many that differ in their status only. */
export function isSameDeployment(a: PeerDeployment, b: PeerDeployment): boolean {
  return isDeepStrictEqual({ ...a, resourceVersion: '' }, { ...b, resourceVersion: '' });
}

/** As far as it decides where a Pod may run. */
export interface PeerNode extends PlacingNode {
  readonly isDeleting: boolean;
}

/** Effects that keep a Pod off a Node for good; the taints of a Node that is not Ready are none of them. */
const LASTING_EFFECTS = ['NoExecute', 'NoSchedule'];
const TAINTS_OF_NODE_HEALTH = 'node.kubernetes.io/';

/**
 * How many copies a Deployment should have: one for each base whose Node exists and fits its Pods. A base that is
 * silent counts until its Node is deleted, so that its copy is there when it comes back.
 */
export function peersOf({ placement }: PeerDeployment, nodes: Iterable<PeerNode>): number {
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
  const lasting = { name, labels, taints: taints.filter(({ key }) => !key.startsWith(TAINTS_OF_NODE_HEALTH)) };
  return matchesNode(placement, lasting) && untoleratedTaintOf(placement, lasting, LASTING_EFFECTS) === undefined;
}
