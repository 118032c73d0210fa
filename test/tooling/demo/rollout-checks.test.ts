import { describe, expect, it } from 'vitest';
import { moduleRemovalFaults, moduleRolloutFaults } from '../../../samples/demo/rollout-checks.ts';
import { base, cluster, moduleDeployment, pod } from './sample.ts';

const labels = { app: 'orders' };
const NEW = ['orders:2.0.0'];
const OLD = ['orders:1.0.0'];

describe('a rollout of a ModuleDeployment', () => {
  const wanted = {
    name: 'orders',
    versions: { '2.0.0': 1, '1.0.0': 1 },
    reason: 'WaitingConfirm',
    generation: 2,
    nodes: new Set(['vnode.base-1', 'vnode.base-2']),
  };
  const status = moduleDeployment({
    wanted: 2,
    replicas: 2,
    updated: 1,
    available: 2,
    observedGeneration: 2,
    reason: 'WaitingConfirm',
  });
  const pods = [pod(1, { labels, modules: NEW }), pod(2, { labels, modules: OLD })];
  const waiting = cluster({ pods, moduleDeployments: [status] });
  const bases = [base(1, 'orders:2.0.0 ACTIVATED'), base(2, 'orders:1.0.0 ACTIVATED'), base(3)];

  it('is as wanted when status, Pods and bases agree', () => {
    expect(moduleRolloutFaults(waiting, bases, wanted)).toEqual([]);
  });

  it.each([
    ['it is not there', { moduleDeployments: [] }, 'md orders: does not exist'],
    ['its status is old', { moduleDeployments: [{ ...status, observedGeneration: 1 }] }, 'not observed yet'],
    [
      'its counts are others',
      { moduleDeployments: [{ ...status, updated: 2, reason: 'PodsReplaced' }] },
      '2 replicas, 2 updated, 2 available, PodsReplaced; wanted are 2 replicas, 1 updated, 2 available, WaitingConfirm',
    ],
    [
      'a Pod too many is updated',
      { pods: [pod(1, { labels, modules: NEW }), pod(2, { labels, modules: NEW })] },
      'its Pods are orders:2.0.0 orders:2.0.0, not orders:1.0.0 orders:2.0.0',
    ],
    [
      'an old Pod is still there',
      { pods: [...pods, pod(1, { labels, modules: OLD, status: 'Terminating' })] },
      'is Terminating',
    ],
    [
      'a Pod has left its base',
      { pods: [pod(1, { labels, modules: NEW }), pod(3, { labels, modules: OLD })] },
      'is on vnode.base-3, where no Pod was before',
    ],
  ])('is not when %s', (_, part, fault) => {
    expect(moduleRolloutFaults({ ...waiting, ...part }, bases, wanted).join('\n')).toContain(fault);
  });

  it('is not when a base has the old version too, whatever the API server shows', () => {
    const first = base(1, 'orders:1.0.0 DEACTIVATED', 'orders:2.0.0 ACTIVATED');
    expect(moduleRolloutFaults(waiting, [first, ...bases.slice(1)], wanted)).toEqual([
      'base base-1: has orders:1.0.0 DEACTIVATED, orders:2.0.0 ACTIVATED, not orders:2.0.0 ACTIVATED',
    ]);
  });

  it('takes the bases that the scheduler chooses for the first version', () => {
    expect(moduleRolloutFaults(waiting, bases, { ...wanted, nodes: undefined })).toEqual([]);
  });
});

describe('a removal', () => {
  it('is done when neither ModuleDeployment, Pod nor module is left', () => {
    expect(moduleRemovalFaults(cluster({ pods: [pod(1)] }), [base(1, 'shop:1.0.0 ACTIVATED')], 'orders')).toEqual([]);
  });

  it('names what is left', () => {
    const view = cluster({
      pods: [pod(1, { labels, status: 'Terminating' })],
      moduleDeployments: [moduleDeployment()],
    });
    expect(moduleRemovalFaults(view, [base(1, 'orders:1.0.0 ACTIVATED')], 'orders')).toEqual([
      'md orders: still exists',
      'pod shop-1: still exists, Terminating on vnode.base-1',
      'base base-1: has orders:1.0.0 ACTIVATED, not none',
    ]);
  });
});
