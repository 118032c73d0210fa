import type { Patch } from '../kube/client.ts';
import type { KubeObject, LeaseObject, OwnerReference } from '../kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, NODE_LEASE_NAMESPACE } from '../labels.ts';
import { type MemberFacts, memberFactsOf } from './member.ts';
import type { HolderState } from './membership.ts';

/** As a kubelet: 40 s, renewed each 10 s; kube-controller-manager gives a Node up after 50 s without. */
export const LEASE_DURATION_SECONDS = 40;
export const RENEW_INTERVAL_MS = 10_000;
/** One of several replicas does not lead on a lease that it could not renew for so long: others may at 40 s. */
export const LED_FOR_MS = 36_000;

/** What the informer keeps of a Lease. */
export interface CachedLease {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly holder: string;
  readonly transitions: number;
  readonly ownerUid: string | undefined;
  readonly hasManagedFields: boolean;
  /** Of a membership lease; undefined for the lease of a Node. */
  readonly member: MemberFacts | undefined;
}

export function projectLease(object: KubeObject): CachedLease {
  const { metadata, spec = {} } = object as LeaseObject;
  return {
    namespace: metadata.namespace ?? NODE_LEASE_NAMESPACE,
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    holder: spec.holderIdentity ?? '',
    transitions: spec.leaseTransitions ?? 0,
    ownerUid: metadata.ownerReferences?.[0]?.uid,
    hasManagedFields: (metadata.managedFields?.length ?? 0) > 0,
    member: memberFactsOf(metadata),
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

/**
 * Strips all managed fields, and the API server begins none anew: half of a Lease's bytes, in each answer and for each
 * watch (https://kubernetes.io/docs/reference/using-api/server-side-apply/#clearing-managedfields).
 */
const NO_MANAGED_FIELDS = { managedFields: [{}] };

/** One merge patch that renews or takes the Lease, on the version we saw: 409 = somebody else wrote meanwhile. */
export function leasePatchOf(lease: CachedLease, facts: LeaseFacts): Patch {
  const { nodeName, env, holder, nowText, nodeUid } = facts;
  const isTakeOver = lease.holder !== holder;
  const owner =
    nodeUid === undefined || nodeUid === lease.ownerUid ? {} : { ownerReferences: [ownerOf(nodeName, nodeUid)] };
  const labels = isTakeOver ? { labels: { [COMPONENT_LABEL]: COMPONENT.lease, [ENV_LABEL]: env } } : {};
  return {
    metadata: {
      uid: lease.uid,
      resourceVersion: lease.resourceVersion,
      ...owner,
      ...labels,
      ...(lease.hasManagedFields ? NO_MANAGED_FIELDS : {}),
    },
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

/** Stops being the holder, in favour of `to`; '' = of whoever takes it. */
export function handOverPatchOf(lease: CachedLease, to: string, nowText: string): Patch {
  return {
    metadata: { uid: lease.uid, resourceVersion: lease.resourceVersion },
    // Null takes the field away.
    spec: {
      holderIdentity: to === '' ? null : to,
      renewTime: nowText,
      acquireTime: nowText,
      leaseTransitions: lease.transitions + 1,
    },
  };
}

/** Why a lease may be taken, or is ours already. */
export type TakeReason = 'New' | 'Own' | 'HandedOver' | 'Released' | 'HolderGone' | 'Expired' | 'Alone';

export interface LeaseView {
  /** Who asks. */
  readonly holder: string;
  /** The last version of a lease that somebody has deleted. */
  readonly deleted: CachedLease | undefined;
  readonly isCluster: boolean;
  /** Of who holds it, or held it when it was deleted. */
  readonly state: HolderState | undefined;
  /** So long it has been as it is, for sure. */
  readonly silentMs: number;
}

/**
 * Why the lease may be ours now; undefined while it is another replica's. The times written in it are another
 * machine's and are not looked at. A leader stops a little earlier, see `LED_FOR_MS`.
 */
export function takeReasonOf(lease: CachedLease | undefined, view: LeaseView): TakeReason | undefined {
  if (lease?.holder === view.holder) return 'Own';
  if (lease?.holder === '') return 'Released';
  if (!view.isCluster) return lease ? 'Alone' : 'New';
  const last = lease ?? view.deleted;
  if (last === undefined || last.holder === '' || last.holder === view.holder) return 'New';
  if (view.state === 'Gone') return lease ? 'HolderGone' : 'New';
  // Who led it when somebody deleted it leads it still, and makes it again.
  if (view.silentMs < LEASE_DURATION_SECONDS * 1000) return undefined;
  return lease ? 'Expired' : 'New';
}
