import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../src/kube/objects.ts';
import { apiVersionOf, collectionPathOf, type ResourceKind, Resources } from '../../../src/kube/resource.ts';
import type { RestRequest } from '../../../src/kube/transport/rest-lane.ts';

const DEPLOYMENTS: ResourceKind = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  isNamespaced: true,
};
const NODES: ResourceKind = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', isNamespaced: false };
const REF = { namespace: 'ns', name: 'd1' };
const PATH = '/apis/apps/v1/namespaces/ns/deployments/d1';

/** Notes each request and gives the answers one after the other. */
function rig(answers: readonly unknown[] = []) {
  const requests: RestRequest[] = [];
  const queue = [...answers];
  const lane = {
    request: <T>(request: RestRequest): Promise<T> => {
      requests.push(request);
      return Promise.resolve((queue.shift() ?? {}) as T);
    },
  };
  const resources = new Resources({ lane, fieldManager: 'module-controller-rollout' });
  return { requests, deployments: resources.of<KubeObject>(DEPLOYMENTS), nodes: resources.of<KubeObject>(NODES) };
}

describe('paths', () => {
  it('have the group, and the namespace of a namespaced kind', () => {
    expect(collectionPathOf(DEPLOYMENTS)).toBe('/apis/apps/v1/deployments');
    expect(collectionPathOf(DEPLOYMENTS, 'ns')).toBe('/apis/apps/v1/namespaces/ns/deployments');
    expect(collectionPathOf(NODES, 'ns')).toBe('/api/v1/nodes');
    expect([apiVersionOf(DEPLOYMENTS), apiVersionOf(NODES)]).toEqual(['apps/v1', 'v1']);
  });

  it('refuse a name that would lead to another object, and a missing namespace', async () => {
    const { deployments, requests } = rig();
    await expect(deployments.get({ namespace: 'ns', name: '..' })).rejects.toThrow(RangeError);
    await expect(deployments.get({ namespace: '', name: 'd1' })).rejects.toThrow(RangeError);
    await expect(deployments.delete({ name: 'd1' })).rejects.toThrow('Deployment d1 has no namespace');
    expect(requests).toEqual([]);
  });

  it('escape what a name may not have', async () => {
    const { nodes, requests } = rig();
    await nodes.get({ name: 'a/b?c' });
    expect(requests[0]?.path).toBe('/api/v1/nodes/a%2Fb%3Fc');
  });
});

describe('writes', () => {
  const owned = { fieldManager: 'module-controller-rollout' };

  it('create and update with the type of the kind', async () => {
    const { deployments, requests } = rig();
    await deployments.create({ metadata: REF });
    await deployments.update({ metadata: { ...REF, resourceVersion: '7' } }, { subresource: 'status' });
    const type = { apiVersion: 'apps/v1', kind: 'Deployment' };
    expect(requests).toEqual([
      {
        method: 'POST',
        path: '/apis/apps/v1/namespaces/ns/deployments',
        query: owned,
        body: { ...type, metadata: REF },
      },
      {
        method: 'PUT',
        path: `${PATH}/status`,
        query: owned,
        body: { ...type, metadata: { ...REF, resourceVersion: '7' } },
      },
    ]);
  });

  it.each([
    [undefined, false],
    [{ isForced: true }, true],
  ])('apply with one field manager and %j', async (options, force) => {
    const { deployments, requests } = rig();
    await deployments.apply({ metadata: REF, spec: { replicas: 1 } }, options);
    expect(requests[0]).toEqual({
      method: 'PATCH',
      path: PATH,
      query: { ...owned, force },
      contentType: 'application/apply-patch+yaml',
      body: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: REF, spec: { replicas: 1 } },
    });
  });

  it('patch in three ways', async () => {
    const { deployments, requests } = rig();
    await deployments.mergePatch(REF, { spec: {} });
    await deployments.strategicPatch(REF, { spec: {} });
    await deployments.jsonPatch(REF, [{ op: 'test', path: '/spec/replicas', value: 1 }], { subresource: 'status' });
    expect(requests.map(({ contentType, path, body }) => [contentType, path, body])).toEqual([
      ['application/merge-patch+json', PATH, { spec: {} }],
      ['application/strategic-merge-patch+json', PATH, { spec: {} }],
      ['application/json-patch+json', `${PATH}/status`, [{ op: 'test', path: '/spec/replicas', value: 1 }]],
    ]);
  });

  it('carry permit, time limit and dry run', async () => {
    const { deployments, requests } = rig();
    const permit = (): boolean => true;
    await deployments.mergePatch(REF, {}, { permit, timeoutMs: 5, isDryRun: true });
    expect(requests[0]).toMatchObject({ permit, timeoutMs: 5, query: { ...owned, dryRun: 'All' } });
  });

  it('delete one incarnation, or any', async () => {
    const { deployments, requests } = rig();
    await deployments.delete(REF, { uid: 'u', resourceVersion: '3', propagationPolicy: 'Foreground' });
    await deployments.delete(REF, { gracePeriodSeconds: 0 });
    const type = { apiVersion: 'v1', kind: 'DeleteOptions' };
    expect(requests.map(({ body }) => body)).toEqual([
      { ...type, preconditions: { uid: 'u', resourceVersion: '3' }, propagationPolicy: 'Foreground' },
      { ...type, gracePeriodSeconds: 0 },
    ]);
  });

  it('delete nothing in a dry run, which the body says', async () => {
    const { deployments, requests } = rig();
    const permit = (): boolean => true;
    await deployments.delete(REF, { isDryRun: true, permit, timeoutMs: 5 });
    expect(requests).toEqual([
      {
        method: 'DELETE',
        path: PATH,
        body: { apiVersion: 'v1', kind: 'DeleteOptions', dryRun: ['All'] },
        ignoresAnswer: true,
        permit,
        timeoutMs: 5,
      },
    ]);
  });

  it('scale through the subresource, one version only where it is given', async () => {
    const { deployments, requests } = rig();
    await deployments.setReplicas(REF, 3, { resourceVersion: '9' });
    await deployments.setReplicas(REF, 0);
    expect(requests.map(({ path, body }) => [path, body])).toEqual([
      [`${PATH}/scale`, { metadata: { resourceVersion: '9' }, spec: { replicas: 3 } }],
      [`${PATH}/scale`, { spec: { replicas: 0 } }],
    ]);
  });
});

describe('a list', () => {
  it('has all pages, selected', async () => {
    const page = (names: readonly string[], next?: string) => ({
      metadata: { resourceVersion: '5', ...(next && { continue: next }) },
      items: names.map((name) => ({ metadata: { name } })),
    });
    const { deployments, requests } = rig([page(['a', 'b'], 'token'), page(['c'])]);
    const items = await deployments.list({ namespace: 'ns', labelSelector: 'app=x' });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b', 'c']);
    expect(requests.map(({ query }) => query)).toEqual([
      { labelSelector: 'app=x', limit: 500, continue: undefined },
      { labelSelector: 'app=x', limit: 500, continue: 'token' },
    ]);
  });

  it('is an error where the answer is none: nothing is not known then', async () => {
    const { deployments } = rig([{ metadata: { resourceVersion: '5' } }]);
    await expect(deployments.list()).rejects.toThrow('the answer is not a list');
  });
});
