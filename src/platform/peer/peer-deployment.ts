import { isDeepStrictEqual } from 'node:util';
import type { KubeObject, PodObject } from '../../kube/objects.ts';
import { type Placement, placementOf } from '../../kube/placement.ts';
import { collectionPathOf, DEPLOYMENTS } from '../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../kube/watch/informer-types.ts';
import { COMPONENT, COMPONENT_LABEL, PEER_STRATEGY, REPLICAS_CONTROL_LABEL, STRATEGY_LABEL } from '../../labels.ts';
import type { WatchedKind } from '../../reconcile/informers.ts';

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
    ...metaOf(object),
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
