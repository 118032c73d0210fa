import fc from 'fast-check';
import type { LeaseObject } from '../../../src/kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, MEMBER_ANNOTATION, NODE_LEASE_NAMESPACE } from '../../../src/labels.ts';
import { memberLeaseNameOf } from '../../../src/lease/member.ts';
import { ENV } from './sim-watch.ts';
import type { World } from './world.ts';

/**
 * A Lease that somebody outside of the cluster of replicas writes. `Tenant`: any name, in a namespace of its own.
 * `Kubelet`: in `kube-node-lease`, but only under the name of its machine (the admission plugin NodeRestriction).
 */
export interface Forgery {
  readonly by: 'Tenant' | 'Kubelet';
  readonly poses: 'Replica' | 'Stranger' | 'Node';
  readonly state: 'Active' | 'Leaving' | 'Left';
  /** Of the replica or base that it is about. */
  readonly index: number;
  /** How often it is renewed, and how often in all; then it is deleted. */
  readonly everyMs: number;
  readonly times: number;
}

export const forgeries: fc.Arbitrary<Forgery> = fc.record({
  by: fc.constantFrom('Tenant', 'Kubelet'),
  poses: fc.constantFrom('Replica', 'Stranger', 'Node'),
  state: fc.constantFrom('Active', 'Leaving', 'Left'),
  index: fc.nat({ max: 7 }),
  everyMs: fc.integer({ min: 200, max: 15_000 }),
  times: fc.integer({ min: 1, max: 8 }),
});

export function forge(world: World, forgery: Forgery, time = 0): void {
  const { by, poses, everyMs, times } = forgery;
  const lease = poses === 'Node' ? nodeLease(world, forgery) : memberLease(world, forgery);
  if (by === 'Tenant') lease.metadata.namespace = 'tenant';
  else lease.metadata.name = 'machine-1';
  if (time === times) {
    world.server.drop(`${lease.metadata.namespace}/${lease.metadata.name}`);
    return;
  }
  world.server.put(lease);
  world.timeline.after(everyMs, () => forge(world, forgery, time + 1));
}

function memberLease({ replicas }: World, { poses, state, index }: Forgery): LeaseObject {
  const victim = replicas[index % replicas.length]?.clientId ?? '';
  const clientId = poses === 'Stranger' ? `stranger-${index}` : victim;
  return leaseOf(memberLeaseNameOf(ENV, clientId), COMPONENT.member, clientId, {
    [MEMBER_ANNOTATION.nonce]: 'forged',
    [MEMBER_ANNOTATION.address]: '192.0.2.1:7777',
    [MEMBER_ANNOTATION.tunnels]: 'mqtt,http',
    [MEMBER_ANNOTATION.state]: state,
  });
}

function nodeLease({ bases }: World, { index }: Forgery): LeaseObject {
  const names = [...bases.keys()];
  return leaseOf(names[index % names.length] ?? 'vnode.none', COMPONENT.lease, 'forger', {});
}

function leaseOf(
  name: string,
  component: string,
  holderIdentity: string,
  annotations: Record<string, string>,
): LeaseObject {
  const labels = { [COMPONENT_LABEL]: component, [ENV_LABEL]: ENV };
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: NODE_LEASE_NAMESPACE, labels, annotations },
    spec: { holderIdentity, leaseDurationSeconds: 40, leaseTransitions: 99 },
  };
}

/** As an admin does it with `kubectl label lease … component-`: the watch no longer shows a Lease that stands. */
export function takeLabelsOff(
  { server, bases, replicas, processes, timeline }: World,
  { base, isMember }: { readonly base: number; readonly isMember: boolean },
): void {
  const names = isMember ? replicas.map(({ clientId }) => memberLeaseNameOf(ENV, clientId)) : [...bases.keys()];
  const lease = server.leases.get(`${NODE_LEASE_NAMESPACE}/${names[base % names.length]}`);
  if (lease === undefined) return;
  server.put({ ...lease, metadata: { ...lease.metadata, labels: {} } });
  for (const replica of processes) {
    if (isMember && replica.clientId === lease.spec?.holderIdentity) replica.hiddenAt = timeline.now;
  }
}
