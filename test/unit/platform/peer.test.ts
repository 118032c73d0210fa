import { beforeEach, describe, expect, it } from 'vitest';
import { countPeers, isSameForPeers, type PeerNode } from '../../../src/kube/placement.ts';
import { ApiError } from '../../../src/kube/transport/api-error.ts';
import { silentLogger } from '../../../src/logger.ts';
import { PeerController } from '../../../src/platform/peer/peer-controller.ts';
import {
  isSameDeployment,
  isScaled,
  type PeerDeployment,
  projectDeployment,
} from '../../../src/platform/peer/peer-deployment.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { moduleWorkload } from '../../support/manifests.ts';

const KEY = 'default/shop';
const VIRTUAL_NODE = { key: 'schedule.koupleless.io/virtual-node', value: 'True', effect: 'NoExecute' };
const NODE_ENV = { key: 'schedule.koupleless.io/node-env', value: 'dev', effect: 'NoExecute' };

function node(name: string, more: Partial<PeerNode> = {}): PeerNode {
  const labels = { 'virtual-kubelet.koupleless.io/env': 'dev', 'vnode.koupleless.io/name': 'base' };
  return { name, isDeleting: false, taints: [VIRTUAL_NODE, NODE_ENV], ...more, labels: { ...labels, ...more.labels } };
}

interface Manifest {
  metadata: { labels?: Record<string, string>; [field: string]: unknown };
  // biome-ignore lint/suspicious/noExplicitAny: a manifest that a test changes
  spec: any;
}

/** As a user writes it, and the API server stores it. */
function deployment(change: (manifest: Manifest) => void = () => {}, replicas: number | undefined = 1): PeerDeployment {
  const manifest = structuredClone(moduleWorkload('shop', [{ name: 'shop' }])) as unknown as Manifest;
  Object.assign(manifest.metadata, { namespace: 'default', uid: 'u1', resourceVersion: '7' });
  manifest.spec.replicas = replicas;
  change(manifest);
  return projectDeployment(manifest as never);
}

describe('how many copies a peer deployment has', () => {
  it('is one for each base that its Pods fit', () => {
    const nodes = [
      node('vnode.a'),
      node('vnode.b'),
      node('vnode.c', { labels: { 'vnode.koupleless.io/name': 'other' } }),
    ];
    expect(countPeers(deployment().placement, nodes)).toBe(3);
    const ofBase = deployment(({ spec }) => {
      spec.template.spec.nodeSelector['vnode.koupleless.io/name'] = 'base';
    });
    expect(countPeers(ofBase.placement, nodes)).toBe(2);
  });

  it('counts no base of a required node affinity that does not match, and none whose taints are not tolerated', () => {
    const affine = deployment(({ spec }) => {
      const expression = { key: 'vnode.koupleless.io/version', operator: 'In', values: ['2'] };
      spec.template.spec.affinity.nodeAffinity = {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [expression] }] },
      };
    });
    expect(
      countPeers(affine.placement, [
        node('vnode.a'),
        node('vnode.b', { labels: { 'vnode.koupleless.io/version': '2' } }),
      ]),
    ).toBe(1);
    const intolerant = deployment(({ spec }) => {
      spec.template.spec.tolerations = [];
    });
    expect(countPeers(intolerant.placement, [node('vnode.a')])).toBe(0);
    const cordoned = node('vnode.a', { taints: [VIRTUAL_NODE, NODE_ENV, { key: 'gpu', effect: 'NoSchedule' }] });
    expect(countPeers(deployment().placement, [cordoned])).toBe(0);
  });

  it.each([
    ['node.kubernetes.io/not-ready', 'NoExecute'],
    ['node.kubernetes.io/unreachable', 'NoExecute'],
    ['node.kubernetes.io/unschedulable', 'NoSchedule'],
  ])('counts a silent or cordoned base as long as its Node exists: %s', (key, effect) => {
    expect(
      countPeers(deployment().placement, [node('vnode.a', { taints: [VIRTUAL_NODE, NODE_ENV, { key, effect }] })]),
    ).toBe(1);
  });

  it('counts no base whose Node is being deleted', () => {
    expect(countPeers(deployment().placement, [node('vnode.a', { isDeleting: true }), node('vnode.b')])).toBe(1);
  });
});

it('a peer deployment that names no replicas has one', () => {
  expect(deployment(({ spec }) => delete spec.replicas).replicas).toBe(1);
});

describe('what a peer deployment is looked at for', () => {
  it('is no write that changes the status of a Node or of a Deployment only', () => {
    expect(isSameForPeers(node('vnode.a'), { ...node('vnode.a') })).toBe(true);
    expect(isSameDeployment(deployment(), { ...deployment(), resourceVersion: '8' })).toBe(true);
  });

  it.each<[string, Partial<PeerNode>]>([
    ['label', { labels: { 'vnode.koupleless.io/version': '2' } }],
    ['taint', { taints: [VIRTUAL_NODE] }],
    ['deletion', { isDeleting: true }],
  ])('is the %s of a Node', (_what, change) => {
    expect(isSameForPeers(node('vnode.a'), node('vnode.a', change))).toBe(false);
  });

  it('is every field of a Deployment that is kept', () => {
    expect(isSameDeployment(deployment(), deployment(undefined, 2))).toBe(false);
    const tolerant = deployment(({ spec }) => spec.template.spec.tolerations.pop());
    expect(isSameDeployment(deployment(), tolerant)).toBe(false);
  });

  it('is no change of a base for a Deployment that bases do not scale', () => {
    expect(isScaled(deployment())).toBe(true);
    for (const field of ['isReleased', 'isDeleting'] as const) {
      expect(isScaled({ ...deployment(), [field]: true })).toBe(false);
    }
    expect(isScaled({ ...deployment(), isOfModules: false })).toBe(false);
  });
});

describe('the controller of peer deployments', () => {
  let clock: FakeClock;
  let stored: PeerDeployment | undefined;
  let nodes: PeerNode[];
  let scaled: unknown[];
  let events: string[];
  let failure: Error | undefined;
  let controller: PeerController;

  beforeEach(() => {
    clock = new FakeClock();
    stored = deployment();
    nodes = [node('vnode.a'), node('vnode.b')];
    scaled = [];
    events = [];
    failure = undefined;
    controller = new PeerController({
      deployments: { get: () => stored },
      nodes: { list: () => nodes },
      client: {
        setReplicas: async (ref, replicas, { resourceVersion, permit } = {}) => {
          if (failure) throw failure;
          if (permit?.() === false) throw new Error('not permitted');
          scaled.push([ref, replicas, resourceVersion]);
          return { metadata: { name: ref.name } };
        },
      },
      permit: () => true,
      recorder: { event: (_subject, type, reason, message) => void events.push(`${type} ${reason}: ${message}`) },
      clock,
      logger: silentLogger,
    });
  });

  it('scales that version of the Deployment to the number of bases, and says so', async () => {
    expect(await controller.reconcile(KEY)).toBeUndefined();
    expect(scaled).toEqual([[{ namespace: 'default', name: 'shop' }, 2, '7']]);
    expect(events).toEqual(['Normal PeerScaled: 2 bases fit: scaled from 1 to 2 replicas']);
  });

  it('writes nothing where the number is right', async () => {
    stored = deployment(undefined, 2);
    await controller.reconcile(KEY);
    expect([scaled, events]).toEqual([[], []]);
  });

  it('scales once a second at most', async () => {
    await controller.reconcile(KEY);
    nodes.push(node('vnode.c'));
    clock.advance(400);
    expect(await controller.reconcile(KEY)).toEqual({ requeueAfterMs: 600 });
    clock.advance(600);
    await controller.reconcile(KEY);
    expect(scaled).toHaveLength(2);
  });

  it('goes down to none when no base is left', async () => {
    nodes = [];
    await controller.reconcile(KEY);
    expect(scaled).toEqual([[{ namespace: 'default', name: 'shop' }, 0, '7']]);
  });

  it.each<[string, (manifest: Manifest) => void, string[]]>([
    [
      'that somebody else scales',
      ({ metadata }) =>
        Object.assign(metadata, { labels: { 'virtual-kubelet.koupleless.io/replicas-control': 'true' } }),
      [],
    ],
    [
      'that is being deleted',
      ({ metadata }) => Object.assign(metadata, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      [],
    ],
    [
      'whose Pods are no modules, and says so',
      ({ spec }) => void delete spec.template.metadata.labels['virtual-kubelet.koupleless.io/component'],
      [
        'Warning PeerIgnored: the Pod template has no label virtual-kubelet.koupleless.io/component: module, so no base runs it',
      ],
    ],
  ])('leaves a Deployment alone %s', async (_which, change, said) => {
    stored = deployment(change);
    await controller.reconcile(KEY);
    expect([scaled, events]).toEqual([[], said]);
  });

  it('leaves a Deployment alone that is gone, seen or not seen yet', async () => {
    failure = new ApiError('gone', { status: 404, reason: 'NotFound' });
    expect(await controller.reconcile(KEY)).toBeUndefined();
    stored = undefined;
    expect(await controller.reconcile(KEY)).toBeUndefined();
    expect(events).toEqual([]);
  });

  it('tries again when somebody else has just written the Deployment', async () => {
    failure = new ApiError('stale', { status: 409, reason: 'Conflict' });
    await expect(controller.reconcile(KEY)).rejects.toThrow('stale');
    failure = undefined;
    await controller.reconcile(KEY);
    expect(scaled).toHaveLength(1);
  });
});
