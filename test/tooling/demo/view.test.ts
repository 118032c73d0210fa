import { describe, expect, it } from 'vitest';
import { deploymentViewOf, moduleDeploymentViewOf, nodeViewOf, podViewOf } from '../../../samples/demo/view.ts';

const spec = { containers: [{ name: 'shop', env: [{ name: 'BIZ_VERSION', value: '1.0.0' }] }] };
const metadata = { namespace: 'default', name: 'shop-1' };

describe('a Pod', () => {
  it('nobody has looked at is Pending', () => {
    expect(podViewOf({ metadata, spec })).toMatchObject({
      modules: ['shop:1.0.0'],
      status: 'Pending',
      readyText: '0/1',
      node: '',
      ip: '',
    });
  });

  it('tells why its module waits, as kubectl does', () => {
    const waiting = { reason: 'ErrImagePull', message: 'no such file' };
    const status = { phase: 'Pending', containerStatuses: [{ state: { waiting } }] };
    expect(podViewOf({ metadata, spec, status })).toMatchObject({ status: 'ErrImagePull', message: 'no such file' });
  });

  it('tells why it is not scheduled', () => {
    const conditions = [{ type: 'PodScheduled', status: 'False', message: '0/5 nodes are available' }];
    expect(podViewOf({ metadata, spec, status: { conditions } }).message).toBe('0/5 nodes are available');
  });

  it('that is being deleted is Terminating, even while it is Ready', () => {
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    const deleted = { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
    expect(podViewOf({ metadata: deleted, spec, status })).toMatchObject({ status: 'Terminating', isReady: true });
  });
});

it('a Node that is not Ready tells why', () => {
  const conditions = [{ type: 'Ready', status: 'False', reason: 'BaseUnreachable' }];
  expect(nodeViewOf({ metadata: { name: 'vnode.base-1' }, status: { conditions } })).toMatchObject({
    status: 'NotReady (BaseUnreachable)',
    isReady: false,
  });
});

it.each([
  ['mqtt_tunnel_provider', 'MQTT'],
  ['http_tunnel_provider', 'HTTP'],
  [undefined, ''],
])('a Node with tunnel %s is shown with %j', (tunnel, text) => {
  const labels = tunnel && { 'vnode.koupleless.io/tunnel': tunnel };
  expect(nodeViewOf({ metadata: { name: 'vnode.base-1', labels } }).tunnel).toBe(text);
});

it('a new Deployment counts nothing', () => {
  expect(deploymentViewOf({ metadata: { name: 'shop' } })).toEqual({
    name: 'shop',
    observedGeneration: 0,
    replicas: 0,
    updated: 0,
    ready: 0,
  });
});

describe('a ModuleDeployment', () => {
  const object = { metadata: { name: 'orders' }, spec: { replicas: 4 } };

  it('that no controller has seen counts nothing', () => {
    expect(moduleDeploymentViewOf(object)).toEqual({
      name: 'orders',
      wanted: 4,
      observedGeneration: 0,
      replicas: 0,
      updated: 0,
      available: 0,
      revision: 0,
      reason: '',
    });
  });

  it('shows its batch, and why it waits', () => {
    const status = {
      observedGeneration: 2,
      replicas: 4,
      updatedReplicas: 2,
      availableReplicas: 4,
      revision: 2,
      batch: { current: 1, total: 2, completed: 1, waitingConfirm: true },
      conditions: [{ type: 'Progressing', status: 'Unknown', reason: 'WaitingConfirm' }],
    };
    expect(moduleDeploymentViewOf({ ...object, status })).toMatchObject({
      updated: 2,
      revision: 2,
      reason: 'WaitingConfirm',
      batch: { current: 1, total: 2 },
    });
  });
});
