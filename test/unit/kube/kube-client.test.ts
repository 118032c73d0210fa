import { describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createKubeClient } from '../../../src/kube/kube-client.ts';
import type { EventObject } from '../../../src/kube/objects.ts';
import type { RestLane, RestRequest } from '../../../src/kube/transport/rest-lane.ts';

function recordingClient(answers: unknown[] = []) {
  const sent: [string, RestRequest][] = [];
  const lane = (name: string): RestLane => ({
    request: async <T>(request: RestRequest) => {
      sent.push([name, request]);
      return (answers.shift() ?? { answered: true }) as T;
    },
    open: () => Promise.reject(new Error('not used')),
  });
  return { client: createKubeClient({ rest: lane('rest'), leases: lane('leases') }), sent };
}

const BODY = { metadata: { name: 'a' } };
const EVENT = { metadata: { name: 'a.1', namespace: 'ns' } } as EventObject;
const MANAGER = { fieldManager: 'module-controller' };
const MERGE = 'application/merge-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const CONFIG_MAPS = '/api/v1/namespaces/kube-node-lease/configmaps';
const deletion = (more: object) => ({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: 'u' }, ...more });

describe('createKubeClient', () => {
  it.each<[string, (client: KubeClient) => Promise<unknown>, string, RestRequest]>([
    ['getNode', (c) => c.getNode('a'), 'rest', { method: 'GET', path: '/api/v1/nodes/a' }],
    [
      'createNode',
      (c) => c.createNode(BODY),
      'rest',
      { method: 'POST', path: '/api/v1/nodes', query: MANAGER, body: BODY },
    ],
    [
      'patchNode',
      (c) => c.patchNode('a', BODY),
      'rest',
      { method: 'PATCH', path: '/api/v1/nodes/a', query: MANAGER, body: BODY, contentType: MERGE },
    ],
    [
      'patchNodeStatus',
      (c) => c.patchNodeStatus('a', BODY),
      'rest',
      { method: 'PATCH', path: '/api/v1/nodes/a/status', query: MANAGER, body: BODY, contentType: STRATEGIC },
    ],
    [
      'deleteNode',
      (c) => c.deleteNode('a', 'u'),
      'rest',
      { method: 'DELETE', path: '/api/v1/nodes/a', body: deletion({}), ignoresAnswer: true },
    ],
    [
      'patchPodStatus',
      (c) => c.patchPodStatus('ns', 'a', BODY),
      'rest',
      {
        method: 'PATCH',
        path: '/api/v1/namespaces/ns/pods/a/status',
        query: MANAGER,
        body: BODY,
        contentType: STRATEGIC,
      },
    ],
    [
      'forceDeletePod',
      (c) => c.forceDeletePod('ns', 'a', 'u'),
      'rest',
      {
        method: 'DELETE',
        path: '/api/v1/namespaces/ns/pods/a',
        body: deletion({ gracePeriodSeconds: 0 }),
        ignoresAnswer: true,
      },
    ],
    ['getLease', (c) => c.getLease('a'), 'leases', { method: 'GET', path: `${LEASES}/a` }],
    ['createLease', (c) => c.createLease(BODY), 'leases', { method: 'POST', path: LEASES, query: MANAGER, body: BODY }],
    [
      'patchLease',
      (c) => c.patchLease('a', BODY),
      'leases',
      { method: 'PATCH', path: `${LEASES}/a`, query: MANAGER, body: BODY, contentType: MERGE },
    ],
    [
      'deleteLease',
      (c) => c.deleteLease('a', 'u'),
      'leases',
      { method: 'DELETE', path: `${LEASES}/a`, body: deletion({}), ignoresAnswer: true },
    ],
    ['getConfigMap', (c) => c.getConfigMap('a'), 'rest', { method: 'GET', path: `${CONFIG_MAPS}/a` }],
    [
      'createConfigMap',
      (c) => c.createConfigMap(BODY),
      'rest',
      { method: 'POST', path: CONFIG_MAPS, query: MANAGER, body: BODY },
    ],
    [
      'patchConfigMap',
      (c) => c.patchConfigMap('a', BODY),
      'rest',
      { method: 'PATCH', path: `${CONFIG_MAPS}/a`, query: MANAGER, body: BODY, contentType: MERGE },
    ],
    [
      'createEvent',
      (c) => c.createEvent(EVENT),
      'rest',
      { method: 'POST', path: '/api/v1/namespaces/ns/events', query: MANAGER, body: EVENT, ignoresAnswer: true },
    ],
    [
      'createEvent of a cluster-scoped object',
      (c) => c.createEvent({ metadata: { name: 'a.1' } } as EventObject),
      'rest',
      {
        method: 'POST',
        path: '/api/v1/namespaces/default/events',
        query: MANAGER,
        body: { metadata: { name: 'a.1' } } as EventObject,
        ignoresAnswer: true,
      },
    ],
    [
      'patchEvent',
      (c) => c.patchEvent('ns', 'a.1', BODY),
      'rest',
      {
        method: 'PATCH',
        path: '/api/v1/namespaces/ns/events/a.1',
        query: MANAGER,
        body: BODY,
        contentType: MERGE,
        ignoresAnswer: true,
      },
    ],
  ])('%s is one request', async (_name, call, lane, request) => {
    const { client, sent } = recordingClient();
    const answer = await call(client);
    const time = lane === 'leases' ? { timeoutMs: 5000 } : {};
    expect(sent).toEqual([[lane, { ...request, ...time }]]);
    expect(answer).toEqual('ignoresAnswer' in request ? undefined : { answered: true });
  });

  it('lists Pods page by page, 50 at a time, and keeps of each what it is asked for', async () => {
    const pods = ['a', 'b', 'c'].map((name) => ({ metadata: { name } }));
    const { client, sent } = recordingClient([
      { metadata: { resourceVersion: '1', continue: 'next' }, items: pods.slice(0, 2) },
      { metadata: { resourceVersion: '1' }, items: pods.slice(2) },
    ]);
    expect(await client.listPods('a=b', ({ metadata }) => metadata.name)).toEqual(['a', 'b', 'c']);
    const request = { method: 'GET', path: '/api/v1/pods' };
    expect(sent).toEqual([
      ['rest', { ...request, query: { labelSelector: 'a=b', limit: 50 } }],
      ['rest', { ...request, query: { labelSelector: 'a=b', limit: 50, continue: 'next' } }],
    ]);
  });

  it('looks for the Pod of an address in the cache of the API server, past modules and the network of hosts', async () => {
    const { client, sent } = recordingClient([{ metadata: { resourceVersion: '1' }, items: null }]);
    expect(await client.listPodsAt('10.0.0.7')).toEqual([]);
    const query = {
      fieldSelector: 'status.podIP=10.0.0.7,status.phase=Running,spec.hostNetwork=false',
      labelSelector: 'virtual-kubelet.koupleless.io/component!=module',
      resourceVersion: '0',
      limit: 500,
    };
    expect(sent).toEqual([['rest', { method: 'GET', path: '/api/v1/pods', query }]]);
  });

  it('does not take an answer for a list that is none', async () => {
    await expect(recordingClient().client.listPods('a=b', String)).rejects.toMatchObject({
      code: 'Kube.RequestFailed',
    });
  });

  it.each(['', '.', '..'])('rejects the name "%s", which a URL would resolve to another object', async (name) => {
    const { client, sent } = recordingClient();
    await expect(client.deleteNode(name, 'u')).rejects.toThrow(RangeError);
    expect(sent).toEqual([]);
  });

  it('escapes a name that holds a slash', async () => {
    const { client, sent } = recordingClient();
    await client.forceDeletePod('../x', 'a/../../nodes/b?c', 'u');
    expect(sent[0]?.[1].path).toBe('/api/v1/namespaces/..%2Fx/pods/a%2F..%2F..%2Fnodes%2Fb%3Fc');
  });
});
