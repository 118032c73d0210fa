import { describe, expect, it } from 'vitest';
import type { LeaseObject } from '../../../src/kube/objects.ts';
import {
  type CachedLease,
  type LeaseView,
  leasePatchOf,
  newLeaseOf,
  projectLease,
  takeReasonOf,
} from '../../../src/lease/lease.ts';
import { makeCachedLease } from '../../support/builders.ts';

const facts = { nodeName: 'vnode.b1', env: 'dev', holder: 'me', nowText: '2026-01-01T00:00:00.123000Z', nodeUid: 'n1' };
const lease = (more: Partial<CachedLease> = {}): CachedLease =>
  makeCachedLease({ transitions: 2, ownerUid: 'n1', ...more });

describe('a new lease', () => {
  it('names its holder exactly, and its Node as owner once that is known', () => {
    expect(newLeaseOf(facts)).toMatchObject({
      metadata: {
        name: 'vnode.b1',
        namespace: 'kube-node-lease',
        labels: {
          'virtual-kubelet.koupleless.io/component': 'vnode-lease',
          'virtual-kubelet.koupleless.io/env': 'dev',
        },
        ownerReferences: [{ kind: 'Node', name: 'vnode.b1', uid: 'n1' }],
      },
      spec: { holderIdentity: 'me', leaseDurationSeconds: 40, leaseTransitions: 0 },
    });
    expect(newLeaseOf({ ...facts, nodeUid: undefined }).metadata).not.toHaveProperty('ownerReferences');
  });
});

describe('the patch of a lease', () => {
  it('renews on the version that was seen, and says nothing else', () => {
    expect(leasePatchOf(lease(), facts)).toEqual({
      metadata: { uid: 'l1', resourceVersion: '7' },
      spec: { renewTime: facts.nowText },
    });
  });

  it('takes over with holder, time, one more transition, and our labels', () => {
    expect(leasePatchOf(lease({ holder: 'other' }), facts)).toEqual({
      metadata: {
        uid: 'l1',
        resourceVersion: '7',
        labels: {
          'virtual-kubelet.koupleless.io/component': 'vnode-lease',
          'virtual-kubelet.koupleless.io/env': 'dev',
        },
      },
      spec: {
        renewTime: facts.nowText,
        holderIdentity: 'me',
        leaseDurationSeconds: 40,
        acquireTime: facts.nowText,
        leaseTransitions: 3,
      },
    });
  });

  it('strips managed fields where there are any', () => {
    const managed = projectLease(
      { metadata: { name: 'vnode.b1', uid: 'l1', managedFields: [{ manager: 'us' }] } },
      'dev',
    );
    expect(leasePatchOf(managed, facts).metadata).toMatchObject({ managedFields: [{}] });
    const bare = projectLease({ metadata: { name: 'vnode.b1', uid: 'l1' } }, 'dev');
    expect(leasePatchOf(bare, facts).metadata).not.toHaveProperty('managedFields');
  });

  it('corrects the owner when the Node was made again, and leaves it while the Node is not known', () => {
    const patch = leasePatchOf(lease({ ownerUid: 'old' }), facts);
    expect(patch.metadata).toMatchObject({ ownerReferences: [{ apiVersion: 'v1', kind: 'Node', uid: 'n1' }] });
    expect(leasePatchOf(lease({ ownerUid: 'old' }), { ...facts, nodeUid: undefined }).metadata).not.toHaveProperty(
      'ownerReferences',
    );
  });
});

describe('whether a lease may be ours', () => {
  const deleted = lease({ holder: 'other' });
  const inCluster: LeaseView = { holder: 'me', deleted: undefined, isCluster: true, state: 'Alive', silentMs: 0 };

  it.each([
    ['there is none', undefined, inCluster, 'New'],
    ['it was deleted', undefined, { ...inCluster, deleted }, undefined],
    ['ours was deleted', undefined, { ...inCluster, deleted: lease() }, 'New'],
    ['that of one who is gone was deleted', undefined, { ...inCluster, deleted, state: 'Gone' as const }, 'New'],
    ['it was not made again', undefined, { ...inCluster, deleted, silentMs: 40_000 }, 'New'],
    ['it is ours', lease(), inCluster, 'Own'],
    ['nobody holds it', lease({ holder: '' }), inCluster, 'Released'],
    ['we are alone', lease({ holder: 'other' }), { ...inCluster, isCluster: false }, 'Alone'],
    ['another one renews it', lease({ holder: 'other' }), inCluster, undefined],
    ['its holder is gone', lease({ holder: 'other' }), { ...inCluster, state: 'Gone' as const }, 'HolderGone'],
    ['it did not change for 39.9 s', lease({ holder: 'other' }), { ...inCluster, silentMs: 39_999 }, undefined],
    ['it did not change for 40 s', lease({ holder: 'other' }), { ...inCluster, silentMs: 40_000 }, 'Expired'],
  ])('when %s', (_, candidate, view, reason) => {
    expect(takeReasonOf(candidate, view)).toBe(reason);
  });
});

describe('a lease in the cache', () => {
  it('that was just made and is almost empty can be read', () => {
    expect(projectLease({ metadata: { name: 'vnode.x', namespace: 'kube-node-lease' } }, 'dev')).toEqual({
      kind: 'Node',
      namespace: 'kube-node-lease',
      name: 'vnode.x',
      uid: '',
      resourceVersion: '',
      holder: '',
      transitions: 0,
      leaseDurationSeconds: 0,
      renewTime: '',
      ownerUid: undefined,
      hasManagedFields: false,
      isLabelled: false,
      member: undefined,
    });
  });

  const member = { 'virtual-kubelet.koupleless.io/component': 'vnode-member' };
  it.each([
    ['of a Node', 'Node', { name: 'vnode.b1', namespace: 'kube-node-lease' }],
    ['of a Node, in a namespace of a tenant', 'Foreign', { name: 'vnode.b1', namespace: 'tenant' }],
    ['of no namespace', 'Foreign', { name: 'vnode.b1' }],
    ['of a name that no base can have', 'Foreign', { name: 'vnode.-', namespace: 'kube-node-lease' }],
    ['of a machine', 'Foreign', { name: 'machine-1', namespace: 'kube-node-lease' }],
    [
      'of a machine that poses as a replica',
      'Foreign',
      { name: 'machine-1', namespace: 'kube-node-lease', labels: member },
    ],
    ['of a replica', 'Member', { name: 'module-controller.dev.c-0', namespace: 'kube-node-lease', labels: member }],
    ['of a replica, without labels', 'Member', { name: 'module-controller.dev.c-0', namespace: 'kube-node-lease' }],
    ['of a replica, in a namespace of a tenant', 'Foreign', { name: 'module-controller.dev.c-0', namespace: 'tenant' }],
    ['that names another holder', 'Foreign', { name: 'module-controller.dev.c-1', namespace: 'kube-node-lease' }],
    ['of another ENV', 'Foreign', { name: 'module-controller.prod.c-0', namespace: 'kube-node-lease' }],
  ])('%s is taken for %s', (_, kind, metadata) => {
    const { kind: taken, member: facts } = projectLease(
      { metadata, spec: { holderIdentity: 'c-0' } } as LeaseObject,
      'dev',
    );
    expect(taken).toBe(kind);
    expect(facts !== undefined).toBe(kind === 'Member');
  });

  it('gets its labels back with the next renewal when somebody has taken them off', () => {
    const labels = {
      'virtual-kubelet.koupleless.io/component': 'vnode-lease',
      'virtual-kubelet.koupleless.io/env': 'dev',
    };
    expect(leasePatchOf(lease({ isLabelled: false }), facts).metadata).toMatchObject({ labels });
  });
});
