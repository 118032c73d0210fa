import { describe, expect, it } from 'vitest';
import { nodeFaults, removalFaults, rolloutFaults } from '../../../samples/demo/checks.ts';
import { base, cluster, node, pod } from './sample.ts';

describe('the Nodes of bases', () => {
  const bases = [base(1), base(2)];

  it('are right with labels, taints, address and Ready', () => {
    expect(nodeFaults(cluster(), bases, 'dev')).toEqual([]);
  });

  it.each([
    ['is not there', [node(1)], 'node vnode.base-2: does not exist'],
    ['is not Ready', [node(1), node(2, { isReady: false, status: 'NotReady (x)' })], 'node vnode.base-2: is NotReady'],
    ['has another address', [node(1), node(2, { ip: '192.0.2.9' })], "InternalIP is '192.0.2.9'"],
    ['lacks a label', [node(1), node(2, { labels: {} })], "label vnode.koupleless.io/name is '', not 'base'"],
    [
      'is of the other tunnel',
      [node(1), node(2, { labels: { ...node(2).labels, 'vnode.koupleless.io/tunnel': 'http_tunnel_provider' } })],
      "tunnel is 'http_tunnel_provider', not 'mqtt_tunnel_provider'",
    ],
    ['lacks a taint', [node(1), node(2, { taints: [] })], 'virtual-node=True:NoExecute is missing'],
    [
      'is not schedulable yet',
      [node(1), node(2, { taints: [...node(2).taints, 'node.kubernetes.io/not-ready:NoSchedule'] })],
      'still has taint node.kubernetes.io/not-ready:NoSchedule',
    ],
  ])('are wrong when one %s', (_, nodes, fault) => {
    expect(nodeFaults(cluster({ nodes }), bases, 'dev').join('\n')).toContain(fault);
  });
});

describe('a rollout', () => {
  const wanted = { name: 'shop', version: '1.0.0', replicas: 2, generation: 3 };
  const deployment = { name: 'shop', observedGeneration: 3, replicas: 2, updated: 2, ready: 2 };
  const pods = [pod(1), pod(2)];
  const done = cluster({ pods, deployments: [deployment] });
  const bases = [base(1, 'shop:1.0.0 ACTIVATED'), base(2, 'audit:1.0.0 ACTIVATED', 'shop:1.0.0 ACTIVATED')];

  it('is done when API server and bases agree', () => {
    expect(rolloutFaults(done, bases, wanted)).toEqual([]);
  });

  it.each([
    ['the Deployment is not there', { deployments: [] }, 'deployment shop: does not exist'],
    ['its status is old', { deployments: [{ ...deployment, observedGeneration: 2 }] }, 'not observed yet'],
    ['its counts are low', { deployments: [{ ...deployment, ready: 1 }] }, '2 replicas, 2 updated, 1 ready'],
    ['a Pod too many is there', { pods: [...pods, pod(3, { node: '' })] }, '3 Pods exist'],
    ['a Pod is of the old version', { pods: [pod(1), pod(2, { modules: ['shop:0.9'] })] }, 'shop:0.9 on vnode.base-2'],
    [
      'a Pod waits',
      { pods: [pod(1), pod(2, { isReady: false, status: 'ErrImagePull', readyText: '0/1', message: 'no jar' })] },
      'is ErrImagePull, 0/1 ready: no jar',
    ],
    ['a Pod goes', { pods: [pod(1), pod(2, { status: 'Terminating' })] }, 'is Terminating'],
    ['two Pods share a Node', { pods: [pod(1), pod(2, { node: 'vnode.base-1' })] }, 'more than one copy'],
    ['a Pod has another IP than its Node', { pods: [pod(1), pod(2, { ip: '10.0.0.1' })] }, "its IP is '10.0.0.1'"],
    ['a Pod is on an unknown Node', { pods: [pod(1), pod(2, { node: 'vnode.x' })] }, 'there is no such Node'],
  ])('is not done when %s', (_, part, fault) => {
    expect(rolloutFaults({ ...done, ...part }, bases, wanted).join('\n')).toContain(fault);
  });

  it.each([
    ['lacks the module', base(2), 'base base-2: has no module'],
    ['has it inactive', base(2, 'shop:1.0.0 RESOLVED'), 'has shop:1.0.0 RESOLVED, not shop:1.0.0 ACTIVATED'],
    ['has the old version too', base(2, 'shop:0.9 DEACTIVATED', 'shop:1.0.0 ACTIVATED'), 'has shop:0.9 DEACTIVATED'],
  ])('is not done when a base %s, whatever the API server shows', (_, second, fault) => {
    expect(rolloutFaults(done, [base(1, 'shop:1.0.0 ACTIVATED'), second], wanted).join('\n')).toContain(fault);
  });

  it('is not done when a base without a Pod of it has the module', () => {
    expect(rolloutFaults(done, [...bases, base(3, 'shop:1.0.0 ACTIVATED')], wanted)).toEqual([
      'base base-3: has shop:1.0.0 ACTIVATED, not none',
    ]);
  });
});

describe('a removal', () => {
  it('is done when neither Deployment, Pod nor module is left', () => {
    const others = cluster({ pods: [pod(1, { labels: { app: 'audit' } })] });
    expect(removalFaults(others, [base(1, 'audit:1.0.0 ACTIVATED')], 'shop')).toEqual([]);
  });

  it('names what is left', () => {
    const view = cluster({ pods: [pod(1, { status: 'Terminating' })] });
    expect(removalFaults(view, [base(2, 'shop:1.0.0 ACTIVATED')], 'shop')).toEqual([
      'pod shop-1: still exists, Terminating on vnode.base-1',
      'base base-2: has shop:1.0.0 ACTIVATED, not none',
    ]);
  });
});
