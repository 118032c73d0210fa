import type { Patch } from '../kube/client.ts';
import type { LeaseObject, ObjectMeta } from '../kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, MEMBER_ANNOTATION } from '../labels.ts';

/** A member renews its lease this often; what others do about a dead one may wait for the next renewal of their own. */
export const MEMBER_RENEW_MS = 2_000;
/** Counted from when its last renewal was sent, a member that cannot renew leads nothing any more. */
export const FENCE_AFTER_MS = 5_000;
/** Counted from when its last renewal was seen, others may take what it led. More than the fence: clocks differ in rate. */
export const MEMBER_GONE_MS = 6_000;
/** So much longer a member may be silent after an interruption of our own renewals: the API server was away for all. */
export const OUTAGE_GRACE_MS = 10_000;
/** Renewals of ours that were sent further apart than that prove nothing of what others did in between. */
export const MEMBER_GAP_MS = 3_000;
/** A membership lease of a member that is gone is deleted after this. */
export const MEMBER_FORGOTTEN_MS = 60_000;

/** What a replica tells the others in its membership lease. */
export interface MemberFacts {
  /** Of the process: another one of the same CLIENT_ID has another. */
  readonly nonce: string;
  /** `host:port` where it takes messages of other members; undefined without the HTTP tunnel. */
  readonly address: string | undefined;
  /** Names of its tunnels that are up. */
  readonly tunnels: readonly string[];
  /** It is about to end, and hands over what it leads. */
  readonly isLeaving: boolean;
  /** It has ended, and leads nothing any more: the last that it says. */
  readonly hasLeft: boolean;
}

/** One replica as all of them see it. */
export interface Member extends Omit<MemberFacts, 'nonce' | 'hasLeft'> {
  readonly id: string;
}

export function memberOf(id: string, { address, tunnels, isLeaving }: MemberFacts): Member {
  return { id, address, tunnels, isLeaving };
}

export function isSameFacts(a: MemberFacts, b: MemberFacts): boolean {
  const isSamePlace = a.nonce === b.nonce && a.address === b.address;
  const isSameEnd = a.isLeaving === b.isLeaving && a.hasLeft === b.hasLeft;
  return isSamePlace && isSameEnd && a.tunnels.join() === b.tunnels.join();
}

/** The name of a membership lease; CLIENT_ID may have characters that a name must not have. */
export function memberLeaseNameOf(env: string, clientId: string): string {
  const name = `module-controller-${env}-${clientId}`.toLowerCase().replace(/[^a-z0-9.-]/g, '-');
  return name.replace(/[.-]+(?=[.-])/g, '').replace(/[.-]+$/, '');
}

export function memberFactsOf({ labels = {}, annotations = {} }: ObjectMeta): MemberFacts | undefined {
  if (labels[COMPONENT_LABEL] !== COMPONENT.member) return undefined;
  const state = annotations[MEMBER_ANNOTATION.state];
  return {
    nonce: annotations[MEMBER_ANNOTATION.nonce] ?? '',
    address: annotations[MEMBER_ANNOTATION.address] || undefined,
    tunnels: (annotations[MEMBER_ANNOTATION.tunnels] ?? '').split(',').filter((name) => name !== ''),
    isLeaving: state === 'Leaving' || state === 'Left',
    hasLeft: state === 'Left',
  };
}

export interface MemberLeaseFacts {
  readonly env: string;
  readonly clientId: string;
  readonly namespace: string;
  readonly facts: MemberFacts;
  /** Wall clock with six fractional digits (metav1.MicroTime). */
  readonly nowText: string;
}

export function newMemberLeaseOf({ env, clientId, namespace, facts, nowText }: MemberLeaseFacts): LeaseObject {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: memberLeaseNameOf(env, clientId),
      namespace,
      labels: { [COMPONENT_LABEL]: COMPONENT.member, [ENV_LABEL]: env },
      annotations: annotationsOf(facts),
    },
    spec: {
      holderIdentity: clientId,
      leaseDurationSeconds: MEMBER_GONE_MS / 1000,
      acquireTime: nowText,
      renewTime: nowText,
      leaseTransitions: 0,
    },
  };
}

/** Renews the lease on the version we saw: 409 = somebody else wrote meanwhile. `isTakeOver`: from an earlier process. */
export function memberPatchOf(
  lease: { readonly uid: string; readonly resourceVersion: string; readonly transitions: number },
  { facts, clientId, env, nowText }: MemberLeaseFacts,
  isTakeOver: boolean,
): Patch {
  const acquired = { acquireTime: nowText, holderIdentity: clientId, leaseTransitions: lease.transitions + 1 };
  const labels = { [COMPONENT_LABEL]: COMPONENT.member, [ENV_LABEL]: env };
  return {
    metadata: {
      uid: lease.uid,
      resourceVersion: lease.resourceVersion,
      ...(isTakeOver && { labels }),
      annotations: annotationsOf(facts),
    },
    spec: { renewTime: nowText, ...(isTakeOver && { leaseDurationSeconds: MEMBER_GONE_MS / 1000, ...acquired }) },
  };
}

function annotationsOf({ nonce, address, tunnels, isLeaving, hasLeft }: MemberFacts): Record<string, string> {
  return {
    [MEMBER_ANNOTATION.nonce]: nonce,
    ...(address !== undefined && { [MEMBER_ANNOTATION.address]: address }),
    [MEMBER_ANNOTATION.tunnels]: tunnels.join(','),
    [MEMBER_ANNOTATION.state]: hasLeft ? 'Left' : isLeaving ? 'Leaving' : 'Active',
  };
}
