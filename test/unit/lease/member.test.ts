import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LeaseObject } from '../../../src/kube/objects.ts';
import {
  FENCE_AFTER_MS,
  goneAfterMsOf,
  MEMBER_GONE_MS,
  MEMBER_RENEW_MS,
  type MemberFacts,
  memberFactsOf,
  memberLeaseNameOf,
  memberOf,
  memberPatchOf,
  newMemberLeaseOf,
  peersOf,
} from '../../../src/lease/member.ts';

const facts: MemberFacts = {
  nonce: 'n1',
  address: '10.0.0.1:7777',
  tunnels: ['mqtt', 'http'],
  isLeaving: false,
  hasLeft: false,
};
const about = { env: 'dev', clientId: 'controller-0', facts, nowText: '2026-01-01T00:00:00.000000Z' };
const lease = { uid: 'u1', resourceVersion: '7', transitions: 3 };

describe('the name of a membership lease', () => {
  it.each([
    ['dev', 'controller-0', 'module-controller.dev.controller-0'],
    ['dev', 'Controller_0', 'module-controller.dev.controller-0.93908d97947570d2'],
    ['dev', 'a..b--c', 'module-controller.dev.a-b-c.5b39a42a668c5737'],
    ['dev', 'x.', 'module-controller.dev.x.bbea8f47ec219a43'],
    ['eu.prod', 'x', 'module-controller.eu-prod.x.0cb6ac86aa365b91'],
  ])('in %s of %s is %s', (env, clientId, name) => {
    expect(memberLeaseNameOf(env, clientId)).toBe(name);
  });

  it('is one that Kubernetes takes, whatever ENV and CLIENT_ID', () => {
    const property = fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (env, clientId) => {
      expect(memberLeaseNameOf(env, clientId)).toMatch(
        /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
      );
    });
    fc.assert(property);
    expect(memberLeaseNameOf('_'.repeat(63), 'A'.repeat(128)).length).toBeLessThanOrEqual(253);
    expect(memberLeaseNameOf('A'.repeat(63), 'A'.repeat(128)).length).toBeLessThanOrEqual(253);
  });

  it('is of one ENV and CLIENT_ID alone', () => {
    expect(memberLeaseNameOf('dev', 'eu-c-0')).not.toBe(memberLeaseNameOf('dev-eu', 'c-0'));
    // Few letters, so that they meet: the same text cut elsewhere, and what is lost where a name is made of it.
    const text = fc.string({ unit: fc.constantFrom('a', 'A', '.', '-', '_', '0'), minLength: 1, maxLength: 5 });
    const property = fc.property(fc.array(fc.tuple(text, text), { minLength: 2, maxLength: 60 }), (pairs) => {
      const byName = new Map<string, string>();
      for (const pair of pairs) {
        const name = memberLeaseNameOf(...pair);
        expect(byName.get(name) ?? String(pair)).toBe(String(pair));
        byName.set(name, String(pair));
      }
    });
    fc.assert(property, { numRuns: 300 });
  });
});

describe('a membership lease', () => {
  it('tells what others have to know of a replica', () => {
    expect(newMemberLeaseOf(about)).toEqual({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name: 'module-controller.dev.controller-0',
        namespace: 'kube-node-lease',
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
        leaseDurationSeconds: 4,
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

  it('says little when somebody made it by hand', () => {
    expect(memberFactsOf({ name: 'x' })).toEqual({
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
    // Somebody may have taken them off, and then the others do not see it.
    expect(metadata.labels).toEqual(newMemberLeaseOf(about).metadata.labels);
    expect(metadata.annotations).toMatchObject({ 'member.koupleless.io/state': 'Leaving' });
    expect(spec).toEqual({ renewTime: about.nowText });
  });

  it('has no address any more when an earlier process of the name had one', () => {
    const patch = memberPatchOf(lease, { ...about, facts: { ...facts, address: undefined } }, true);
    expect(patch.metadata).toMatchObject({ annotations: { 'member.koupleless.io/address': null } });
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

  it.each([
    [undefined, MEMBER_GONE_MS],
    [1, MEMBER_GONE_MS],
    [4, MEMBER_GONE_MS],
    [5, MEMBER_GONE_MS + 1_000],
    [3_600, 30_000],
  ])('are longer for a member whose Lease says so (%s s: %i ms)', (leaseDurationSeconds, ms) => {
    expect(goneAfterMsOf({ leaseDurationSeconds: leaseDurationSeconds ?? 0 })).toBe(ms);
  });
});

describe('the peers of a member', () => {
  it('are the others that stay and take messages, each with the nonce of its process', () => {
    const members = [
      memberOf('controller-0', facts),
      memberOf('controller-1', { ...facts, nonce: 'n2', address: '10.0.0.2:7777' }),
      memberOf('controller-2', { ...facts, address: undefined }),
      memberOf('controller-3', { ...facts, isLeaving: true }),
    ];
    expect(peersOf(members, 'controller-0')).toEqual([{ id: 'controller-1', boot: 'n2', address: '10.0.0.2:7777' }]);
  });
});
