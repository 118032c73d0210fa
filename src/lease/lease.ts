import type { Patch } from '../kube/client.ts';
import type { KubeObject, LeaseObject, OwnerReference } from '../kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, NODE_LEASE_NAMESPACE } from '../labels.ts';

/** As a kubelet: 40 s, renewed each 10 s; kube-controller-manager gives a Node up after 50 s without. */
export const LEASE_DURATION_SECONDS = 40;
export const RENEW_INTERVAL_MS = 10_000;

/** What the informer keeps of a Lease. */
export interface CachedLease {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly holder: string;
  readonly renewTime: string;
  readonly transitions: number;
  readonly ownerUid: string | undefined;
}

export function projectLease(object: KubeObject): CachedLease {
  const { metadata, spec = {} } = object as LeaseObject;
  return {
    namespace: metadata.namespace ?? NODE_LEASE_NAMESPACE,
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    holder: spec.holderIdentity ?? '',
    renewTime: spec.renewTime ?? '',
    transitions: spec.leaseTransitions ?? 0,
    ownerUid: metadata.ownerReferences?.[0]?.uid,
  };
}

export interface LeaseFacts {
  readonly nodeName: string;
  readonly env: string;
  readonly holder: string;
  /** Wall clock with six fractional digits (metav1.MicroTime). */
  readonly nowText: string;
  /** The Node's UID once it is known: a Lease of a missing Node is collected within a second. */
  readonly nodeUid: string | undefined;
}

export function newLeaseOf(facts: LeaseFacts): LeaseObject {
  const { nodeName, env, holder, nowText, nodeUid } = facts;
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: nodeName,
      namespace: NODE_LEASE_NAMESPACE,
      labels: { [COMPONENT_LABEL]: COMPONENT.lease, [ENV_LABEL]: env },
      ...(nodeUid === undefined ? {} : { ownerReferences: [ownerOf(nodeName, nodeUid)] }),
    },
    spec: {
      holderIdentity: holder,
      leaseDurationSeconds: LEASE_DURATION_SECONDS,
      acquireTime: nowText,
      renewTime: nowText,
      leaseTransitions: 0,
    },
  };
}

/** One merge patch that renews or takes the Lease, on the version we saw: 409 = somebody else wrote meanwhile. */
export function leasePatchOf(lease: CachedLease, facts: LeaseFacts): Patch {
  const { nodeName, env, holder, nowText, nodeUid } = facts;
  const isTakeOver = lease.holder !== holder;
  const owner =
    nodeUid === undefined || nodeUid === lease.ownerUid ? {} : { ownerReferences: [ownerOf(nodeName, nodeUid)] };
  const labels = isTakeOver ? { labels: { [COMPONENT_LABEL]: COMPONENT.lease, [ENV_LABEL]: env } } : {};
  return {
    metadata: { uid: lease.uid, resourceVersion: lease.resourceVersion, ...owner, ...labels },
    spec: {
      renewTime: nowText,
      ...(isTakeOver
        ? {
            holderIdentity: holder,
            leaseDurationSeconds: LEASE_DURATION_SECONDS,
            acquireTime: nowText,
            leaseTransitions: lease.transitions + 1,
          }
        : {}),
    },
  };
}

function ownerOf(nodeName: string, uid: string): OwnerReference {
  return { apiVersion: 'v1', kind: 'Node', name: nodeName, uid };
}

/** The key of a Node's Lease in the informer. */
export function leaseKeyOf(nodeName: string): string {
  return `${NODE_LEASE_NAMESPACE}/${nodeName}`;
}

/** The ENV that a Lease belongs to, when that is not ours; one without a label is nobody's. */
export function otherEnvOf({ metadata }: LeaseObject, env: string): string | undefined {
  const other = metadata.labels?.[ENV_LABEL];
  return other === env ? undefined : other;
}

/**
 * Whether the Lease may be ours now. `unchangedMs`: how long it has been as it is on my own clock; the times
 * written in it are another machine's.
 */
export function canHold(
  lease: CachedLease | undefined,
  options: { readonly holder: string; readonly isCluster: boolean; readonly unchangedMs: number },
): boolean {
  if (lease === undefined || lease.holder === options.holder || lease.holder === '') return true;
  if (!options.isCluster) return true;
  return options.unchangedMs >= LEASE_DURATION_SECONDS * 1000;
}
