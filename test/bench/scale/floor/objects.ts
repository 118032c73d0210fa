import { microTime, secondsTime } from '../../../../src/kube/micro-time.ts';
import type { NodeObject } from '../../../../src/kube/objects.ts';
import { NODE_LEASE_NAMESPACE, nodeNameOf } from '../../../../src/labels.ts';
import { newLeaseOf } from '../../../../src/lease/lease.ts';
import type { BaseInfo } from '../../../../src/tunnel/base.ts';
import { newNodeOf, ttlSecondsOf } from '../../../../src/vnode/node-object.ts';
import type { FloorPod } from './pod-table.ts';

/** All that is ever written, as JSON. */

const HOLDER = 'floor';

export const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NODE_LEASE_NAMESPACE}/leases`;

export function leasePathOf(identity: string): string {
  return `${LEASES}/${nodeNameOf(identity)}`;
}

/** The same as the real one, in labels, taints and size. `nodeCount`: Nodes with this one. */
export function nodeOf(base: BaseInfo, env: string, now: Date, nodeCount: number): string {
  return JSON.stringify(nodeObjectOf(base, env, { now, nodeCount }));
}

/** The same before anybody has said that it is ready. */
export function bareNodeOf(base: BaseInfo, env: string): string {
  const { status = {}, ...node } = nodeObjectOf(base, env, { now: new Date(), nodeCount: 1 });
  const { conditions: _, ...bare } = status;
  return JSON.stringify({ ...node, status: bare });
}

function nodeObjectOf(base: BaseInfo, env: string, { now, nodeCount }: { now: Date; nodeCount: number }): NodeObject {
  const facts = { base, tunnel: 'mqtt_tunnel_provider', env, kubeletVersion: HOLDER, health: undefined } as const;
  const reachable = { ...facts, reachability: 'Reachable', hasAnswered: false, basePod: undefined } as const;
  return newNodeOf(reachable, secondsTime(now), ttlSecondsOf(nodeCount, 0));
}

/** Without an owner: the Node, which is created beside it, has no UID yet. */
export function leaseOf(identity: string, env: string, now: Date): string {
  const facts = { nodeName: nodeNameOf(identity), env, holder: HOLDER, nodeUid: undefined };
  return JSON.stringify(newLeaseOf({ ...facts, nowText: microTime(now) }));
}

/** A merge patch; the same for all leases of a moment. */
export function renewalOf(now: Date): string {
  return JSON.stringify({ spec: { renewTime: microTime(now) } });
}

/**
 * A strategic merge patch, for the list of conditions is not ours alone. The UID, since a Pod of the same name may
 * have come meanwhile. minReadySeconds counts from the time of Ready; nobody looks at those of the others.
 */
export function statusPatchOf({ uid, modules }: FloorPod, ip: string, now: Date): string {
  const nowText = secondsTime(now);
  return JSON.stringify({
    metadata: { uid },
    status: {
      phase: 'Running',
      startTime: nowText,
      hostIP: ip,
      podIP: ip,
      conditions: [
        { type: 'Initialized', status: 'True' },
        { type: 'ContainersReady', status: 'True' },
        { type: 'Ready', status: 'True', lastTransitionTime: nowText },
      ],
      containerStatuses: modules.map(({ name }) => ({
        name,
        ready: true,
        started: true,
        state: { running: { startedAt: nowText } },
      })),
    },
  });
}

/** DeleteOptions. */
export function deletionOf(uid: string): string {
  return JSON.stringify({ gracePeriodSeconds: 0, preconditions: { uid } });
}
