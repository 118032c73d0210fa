import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LeaseObject } from '../../../src/kube/objects.ts';
import {
  FENCE_AFTER_MS,
  MEMBER_GONE_MS,
  MEMBER_RENEW_MS,
  type MemberFacts,
  memberFactsOf,
  memberLeaseNameOf,
  memberPatchOf,
  newMemberLeaseOf,
} from '../../../src/lease/member.ts';

const facts: MemberFacts = {
  nonce: 'n1',
  address: '10.0.0.1:7777',
  tunnels: ['mqtt', 'http'],
  isLeaving: false,
  hasLeft: false,
};
const about = { env: 'dev', clientId: 'controller-0', namespace: 'ns', facts, nowText: '2026-01-01T00:00:00.000000Z' };
const lease = { uid: 'u1', resourceVersion: '7', transitions: 3 };

describe('the name of a membership lease', () => {
  it.each([
    ['dev', 'controller-0', 'module-controller-dev-controller-0'],
    ['dev', 'Controller_0', 'module-controller-dev-controller-0'],
    ['dev', 'a..b--c', 'module-controller-dev-a.b-c'],
    ['dev', 'x.', 'module-controller-dev-x'],
  ])('in %s of %s is %s', (env, clientId, name) => {
    expect(memberLeaseNameOf(env, clientId)).toBe(name);
  });

  it('is one that Kubernetes takes, whatever the CLIENT_ID', () => {
    const property = fc.property(fc.string({ unit: 'binary' }), (clientId) => {
      expect(memberLeaseNameOf('dev', clientId)).toMatch(
        /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
      );
    });
    fc.assert(property);
  });
});

describe('a membership lease', () => {
  it('tells what others have to know of a replica', () => {
    expect(newMemberLeaseOf(about)).toEqual({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name: 'module-controller-dev-controller-0',
        namespace: 'ns',
        labels: {
          'virtual-kubelet.koupleless.io/component': 'vnode-member',
          'virtual-kubelet.koupleless.io/env': 'dev',
        },
        annotations: {
          'member.koupleless.io/nonce': 'n1',
          'member.koupleless.io/address': '10.0.0.1:7777',
          'member.koupleless.io/tunnels': 'mqtt,http',
          'member.koupleless.io/state': 'Active',
        },
      },
      spec: {
        holderIdentity: 'controller-0',
        leaseDurationSeconds: 6,
        acquireTime: about.nowText,
        renewTime: about.nowText,
        leaseTransitions: 0,
      },
    });
  });

  it('is read as it was written', () => {
    const tunnel = fc.constantFrom('mqtt', 'http');
    const any = fc.record({
      nonce: fc.uuid(),
      address: fc.option(fc.constant('h:1'), { nil: undefined }),
      tunnels: fc.uniqueArray(tunnel),
      end: fc.constantFrom(
        { isLeaving: false, hasLeft: false },
        { isLeaving: true, hasLeft: false },
        { isLeaving: true, hasLeft: true },
      ),
    });
    const property = fc.property(any, ({ end, ...rest }) => {
      const told = { ...rest, ...end };
      expect(memberFactsOf(newMemberLeaseOf({ ...about, facts: told }).metadata)).toEqual(told);
    });
    fc.assert(property);
  });

  it('is none without the label, and says little when somebody made it by hand', () => {
    const labels = { 'virtual-kubelet.koupleless.io/component': 'vnode-member' };
    expect(memberFactsOf({ name: 'x' })).toBeUndefined();
    expect(memberFactsOf({ name: 'x', labels })).toEqual({
      nonce: '',
      address: undefined,
      tunnels: [],
      isLeaving: false,
      hasLeft: false,
    });
  });

  it('is renewed on the version that was seen', () => {
    const { metadata, spec } = memberPatchOf(
      lease,
      { ...about, facts: { ...facts, isLeaving: true } },
      false,
    ) as unknown as LeaseObject;
    expect(metadata).toMatchObject({ uid: 'u1', resourceVersion: '7' });
    expect(metadata.annotations).toMatchObject({ 'member.koupleless.io/state': 'Leaving' });
    expect(spec).toEqual({ renewTime: about.nowText });
  });

  it('is taken over from an earlier process with all that belongs to it', () => {
    const { metadata, spec } = memberPatchOf(lease, about, true) as unknown as LeaseObject;
    expect(metadata).toMatchObject({
      uid: 'u1',
      resourceVersion: '7',
      labels: newMemberLeaseOf(about).metadata.labels,
    });
    expect(spec).toEqual({ ...newMemberLeaseOf(about).spec, leaseTransitions: 4 });
  });
});

describe('the times', () => {
  it('leave room for clocks that differ by 2 % in rate', () => {
    expect(FENCE_AFTER_MS / 0.98).toBeLessThan(MEMBER_GONE_MS / 1.02);
  });

  it('leave room for a renewal that fails and one more', () => {
    expect(2 * MEMBER_RENEW_MS).toBeLessThan(FENCE_AFTER_MS);
  });
});
