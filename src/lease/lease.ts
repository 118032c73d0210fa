import type { Patch } from '../kube/client.ts';
import type { KubeObject, LeaseObject, OwnerReference } from '../kube/objects.ts';
import { compareResourceVersions } from '../kube/resource-version.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, identityFault, identityOf, NODE_LEASE_NAMESPACE } from '../labels.ts';
import { phaseOf } from '../queue/phase.ts';
import { MEMBER_LEASE_PREFIX, type MemberFacts, memberFactsOf, memberLeaseNameOf } from './member.ts';
import type { HolderState } from './membership.ts';

/**
 * Lease duration of a kubelet, which renews its Lease every 10 s; kube-controller-manager gives a Node up after 50 s
 * without a renewal, and before Kubernetes 1.32 after 40 s.
 */
export const LEASE_DURATION_SECONDS = 40;
/** One of several replicas stops leading when it could not renew a lease for this long: others may take it at 40 s. */
export const LED_FOR_MS = 36_000;

/**
 * What the one watch of Leases asks for: those of Nodes and those of replicas, so that a replica which sees its own
 * renewal has seen what others wrote before. Of one namespace, which tenants cannot write.
 */
export const LEASES_PATH = `/apis/coordination.k8s.io/v1/namespaces/${NODE_LEASE_NAMESPACE}/leases`;

/**
 * `Foreign`: has the controller's labels, but not the namespace or name that the controller would give it. Nothing in
 * it counts.
 */
export type LeaseKind = 'Node' | 'Member' | 'Foreign';

/** What the informer keeps of a Lease. */
export interface CachedLease {
  readonly kind: LeaseKind;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly holder: string;
  readonly transitions: number;
  readonly leaseDurationSeconds: number;
  /** Renew time as written; '' where there is none. Never compared with a clock. */
  readonly renewTime: string;
  readonly ownerUid: string | undefined;
  readonly hasManagedFields: boolean;
  /** The watch selects by these labels; without them nobody but its holder knows of the Lease. */
  readonly isLabelled: boolean;
  /** Facts about the replica; present for kind `Member` only. */
  readonly member: MemberFacts | undefined;
}

/** `env`: that of this replica. */
export function projectLease(object: KubeObject, env: string): CachedLease {
  const { metadata, spec = {} } = object as LeaseObject;
  const kind = kindOf(object as LeaseObject, env);
  return {
    kind,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    holder: spec.holderIdentity ?? '',
    transitions: spec.leaseTransitions ?? 0,
    leaseDurationSeconds: spec.leaseDurationSeconds ?? 0,
    renewTime: spec.renewTime ?? '',
    ownerUid: metadata.ownerReferences?.[0]?.uid,
    hasManagedFields: (metadata.managedFields?.length ?? 0) > 0,
    isLabelled: isLabelled(metadata.labels, kind, env),
    member: kind === 'Member' ? memberFactsOf(metadata) : undefined,
  };
}

function isLabelled(labels: Readonly<Record<string, string>> = {}, kind: LeaseKind, env: string): boolean {
  const component = kind === 'Member' ? COMPONENT.member : COMPONENT.lease;
  return labels[COMPONENT_LABEL] === component && labels[ENV_LABEL] === env;
}

/** Kind of a Lease, from its place and name alone: labels are anybody's, and an admin may have removed them. */
function kindOf({ metadata, spec = {} }: LeaseObject, env: string): LeaseKind {
  const { namespace, name } = metadata;
  if (namespace !== NODE_LEASE_NAMESPACE) return 'Foreign';
  if (name.startsWith(MEMBER_LEASE_PREFIX)) {
    return name === memberLeaseNameOf(env, spec.holderIdentity ?? '') ? 'Member' : 'Foreign';
  }
  const identity = identityOf(name);
  return identity !== undefined && identityFault(identity) === undefined ? 'Node' : 'Foreign';
}

/**
 * Whether a read shows an older version of a Lease than was known before it was sent. Versions of one object only rise,
 * so the cluster went back to an older state.
 */
export function isOlderThan(read: CachedLease, known: CachedLease | undefined): boolean {
  return read.uid === known?.uid && compareResourceVersions(read.resourceVersion, known.resourceVersion) < 0;
}

export interface LeaseFacts {
  readonly nodeName: string;
  readonly env: string;
  readonly holder: string;
  /** The new renewTime (metav1.MicroTime), after that of the known version. */
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
 * Strips all managed fields, and the API server starts no new ones: half of a Lease's bytes, in each answer and for
 * each watch (https://kubernetes.io/docs/reference/using-api/server-side-apply/#clearing-managedfields).
 */
const NO_MANAGED_FIELDS = { managedFields: [{}] };

/** One merge patch that renews or takes the Lease, on the known version: 409 = somebody else has written it since. */
export function leasePatchOf(lease: CachedLease, facts: LeaseFacts): Patch {
  const { nodeName, env, holder, nowText, nodeUid } = facts;
  const isTakeOver = lease.holder !== holder;
  const owner =
    nodeUid === undefined || nodeUid === lease.ownerUid ? {} : { ownerReferences: [ownerOf(nodeName, nodeUid)] };
  const labels =
    isTakeOver || !lease.isLabelled ? { labels: { [COMPONENT_LABEL]: COMPONENT.lease, [ENV_LABEL]: env } } : {};
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

/** The ENV that a Lease belongs to, when it is another one; one without a label is nobody's. */
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

/** Why a lease may be taken, or is held already. */
export type TakeReason = 'New' | 'Own' | 'HandedOver' | 'Released' | 'HolderGone' | 'Expired' | 'Alone';

export interface LeaseView {
  /** Who asks. */
  readonly holder: string;
  /** The last version of a lease that somebody has deleted. */
  readonly deleted: CachedLease | undefined;
  readonly isCluster: boolean;
  /** State of the replica that holds it, or held it when it was deleted. */
  readonly state: HolderState | undefined;
  /** Lower bound of the time since this lease last changed, in ms. */
  readonly silentMs: number;
}

/**
 * Why the lease may be taken now; undefined while another replica may lead. The times written in it are another
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

/**
 * A kubelet waits up to 4 % longer from one renewal to the next, 2 % on average, see `Run` in
 * k8s.io/component-helpers/apimachinery/lease/controller.go.
 */
const KUBELET_STRETCH = 1.02;

/** From one renewal of a Lease to the next, ms: what a kubelet with this interval comes to. */
export function renewalPeriodMsOf(intervalMs: number): number {
  return intervalMs * KUBELET_STRETCH;
}

/** A timer may be early by some milliseconds. */
const EARLY_MS = 100;
/**
 * A late lease moves back to its own moment by this much at each renewal: with a tenth or two more of renewals, not
 * twice as many.
 */
const CATCH_UP_MS = 2_000;
const SOONEST_MS = 2_000;
/** Leases whose moments lie in the same half second share one: a replica that wakes up less often takes less CPU time. */
const TOGETHER_MS = 500;

/** A moment, ms of the local monotonic clock, and how long it is from one renewal to the next, ms. */
export interface RenewalTime {
  readonly now: number;
  readonly intervalMs: number;
}

/**
 * Each lease is renewed at its own moment of the interval, for ever: what a burst, or an API server that was slow, has
 * brought together parts again. Returns ms; at most the interval.
 */
export function nextRenewalInMs(nodeName: string, time: RenewalTime): number {
  return time.intervalMs - Math.min(sinceOwnMoment(nodeName, time), CATCH_UP_MS);
}

/** The same for a lease that was just gained: at its own moment, if that is not too soon. */
export function firstRenewalInMs(nodeName: string, time: RenewalTime): number {
  return Math.max(time.intervalMs - sinceOwnMoment(nodeName, time), SOONEST_MS);
}

/** In [-EARLY_MS, interval - EARLY_MS). */
function sinceOwnMoment(nodeName: string, { now, intervalMs }: RenewalTime): number {
  const ownMoment = Math.floor((phaseOf(nodeName) * intervalMs) / TOGETHER_MS) * TOGETHER_MS;
  const since = now - ownMoment + EARLY_MS;
  return (((since % intervalMs) + intervalMs) % intervalMs) - EARLY_MS;
}
