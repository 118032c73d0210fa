import { createHash } from 'node:crypto';
import type { Patch } from '../kube/client.ts';
import type { LeaseObject, ObjectMeta } from '../kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, MEMBER_ANNOTATION, NODE_LEASE_NAMESPACE } from '../labels.ts';

/** A member renews its lease this often; what others do about a dead one may wait for the next renewal of their own. */
export const MEMBER_RENEW_MS = 1_000;
/** Counted from when its last renewal was sent, a member that cannot renew leads nothing any more. */
export const FENCE_AFTER_MS = 3_500;
/**
 * Counted from when its last renewal was seen, others may take what it led. More than the fence: clocks differ in rate.
 */
export const MEMBER_GONE_MS = 3_800;
/** The field takes whole seconds. See {@link goneAfterMsOf}. */
const LEASE_DURATION_SECONDS = Math.ceil(MEMBER_GONE_MS / 1000);
/** No Lease makes others wait longer for its member. */
const MOST_GONE_MS = 30_000;
/**
 * How much longer a member may be silent after an interruption of this replica's renewals: the API server was away for
 * all.
 */
export const OUTAGE_GRACE_MS = 10_000;
/** Between two renewals of this replica that were sent further apart, the silence of others does not count. */
export const MEMBER_GAP_MS = 2_000;
/** A membership lease of a member that is gone is deleted after this. */
export const MEMBER_FORGOTTEN_MS = 60_000;

/**
 * After how much silence a member is gone, in ms, by its lease: one of another version may stop leading later than
 * {@link FENCE_AFTER_MS}. `leaseDurationSeconds`: 0 where there is none.
 */
export function goneAfterMsOf({ leaseDurationSeconds }: { readonly leaseDurationSeconds: number }): number {
  const laterMs = 1000 * (leaseDurationSeconds - LEASE_DURATION_SECONDS);
  return Math.min(MEMBER_GONE_MS + Math.max(0, laterMs), MOST_GONE_MS);
}

/** What a replica publishes in its membership lease. */
export interface MemberFacts {
  /** Nonce of the process: another one of the same CLIENT_ID has another. */
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
export interface Member extends Omit<MemberFacts, 'hasLeft'> {
  readonly id: string;
}

export function memberOf(id: string, { nonce, address, tunnels, isLeaving }: MemberFacts): Member {
  return { id, nonce, address, tunnels, isLeaving };
}

/** A member as others send messages to it. */
export interface MemberPeer {
  readonly id: string;
  /** Nonce of its process. */
  readonly boot: string;
  readonly address: string;
}

/** The members besides `self` that stay and take messages. */
export function peersOf(members: readonly Member[], self: string): MemberPeer[] {
  return members.flatMap(({ id, nonce: boot, address, isLeaving }) =>
    id === self || isLeaving || address === undefined ? [] : [{ id, boot, address }],
  );
}

export function isSameFacts(a: MemberFacts, b: MemberFacts): boolean {
  const isSamePlace = a.nonce === b.nonce && a.address === b.address;
  const isSameEnd = a.isLeaving === b.isLeaving && a.hasLeft === b.hasLeft;
  return isSamePlace && isSameEnd && a.tunnels.join() === b.tunnels.join();
}

/**
 * A Lease of a replica begins with this, so that admission policies and people can distinguish it from the Lease of a
 * Node.
 */
export const MEMBER_LEASE_PREFIX = 'module-controller.';
const DNS_LABEL = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

/**
 * The name of a membership Lease, different for each pair of ENV and CLIENT_ID: `module-controller.{env}.{clientId}`
 * where both are DNS labels. Else, since both may have characters that a name must not have, the rest of them
 * and a hash as a fourth part, so that no name of one form is a name of the other. At most 228 characters.
 */
export function memberLeaseNameOf(env: string, clientId: string): string {
  if (DNS_LABEL.test(env) && DNS_LABEL.test(clientId)) return `${MEMBER_LEASE_PREFIX}${env}.${clientId}`;
  const hash = createHash('sha256')
    .update(JSON.stringify([env, clientId]))
    .digest('hex')
    .slice(0, 16);
  return `${MEMBER_LEASE_PREFIX}${dnsLabelOf(env)}.${dnsLabelOf(clientId)}.${hash}`;
}

function dnsLabelOf(text: string): string {
  const label = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  return label === '' ? 'x' : label;
}

export function memberFactsOf({ annotations = {} }: ObjectMeta): MemberFacts {
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
  readonly facts: MemberFacts;
  /** The new renewTime (metav1.MicroTime). */
  readonly nowText: string;
}

export function newMemberLeaseOf({ env, clientId, facts, nowText }: MemberLeaseFacts): LeaseObject {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: memberLeaseNameOf(env, clientId),
      namespace: NODE_LEASE_NAMESPACE,
      labels: { [COMPONENT_LABEL]: COMPONENT.member, [ENV_LABEL]: env },
      annotations: annotationsOf(facts),
    },
    spec: {
      holderIdentity: clientId,
      leaseDurationSeconds: LEASE_DURATION_SECONDS,
      acquireTime: nowText,
      renewTime: nowText,
      leaseTransitions: 0,
    },
  };
}

/**
 * Renews the lease on the known version: 409 = somebody else has written it since. `isTakeOver`: from an earlier
 * process.
 */
export function memberPatchOf(
  lease: { readonly uid: string; readonly resourceVersion: string; readonly transitions: number },
  { facts, clientId, env, nowText }: MemberLeaseFacts,
  isTakeOver: boolean,
): Patch {
  const acquired = { acquireTime: nowText, holderIdentity: clientId, leaseTransitions: lease.transitions + 1 };
  return {
    metadata: {
      uid: lease.uid,
      resourceVersion: lease.resourceVersion,
      // Each time: without them the others do not see it.
      labels: { [COMPONENT_LABEL]: COMPONENT.member, [ENV_LABEL]: env },
      // An earlier process of this CLIENT_ID may have had an address.
      annotations: { ...annotationsOf(facts), [MEMBER_ANNOTATION.address]: facts.address ?? null },
    },
    spec: { renewTime: nowText, ...(isTakeOver && { leaseDurationSeconds: LEASE_DURATION_SECONDS, ...acquired }) },
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
