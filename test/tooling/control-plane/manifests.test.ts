import { describe, expect, it } from 'vitest';
import { parseManifests, pathOfResource } from '../../../samples/control-plane/manifests.ts';

const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });

describe('parseManifests', () => {
  it('reads several documents in order, without the empty ones', () => {
    const text = `---\n${JSON.stringify(configMap('a'))}\n---\n# nothing\n---\n${JSON.stringify(configMap('b'))}\n---\n`;
    expect(parseManifests(text)).toEqual([configMap('a'), configMap('b')]);
  });

  it('takes an object, several, and a List', () => {
    expect(parseManifests(configMap('a'))).toEqual([configMap('a')]);
    expect(parseManifests([configMap('a'), { kind: 'List', items: [configMap('b')] }])).toEqual([
      configMap('a'),
      configMap('b'),
    ]);
  });

  it('refuses YAML that does not parse and objects without a name', () => {
    expect(() => parseManifests('a: [')).toThrow();
    expect(() => parseManifests('kind: ConfigMap')).toThrow('a manifest needs apiVersion, kind and metadata.name');
  });
});

describe('pathOfResource', () => {
  it.each([
    ['v1', 'configmaps', true, 'team', '/api/v1/namespaces/team/configmaps/x'],
    ['v1', 'configmaps', true, undefined, '/api/v1/namespaces/default/configmaps/x'],
    ['v1', 'nodes', false, undefined, '/api/v1/nodes/x'],
    ['apps/v1', 'deployments', true, 'team', '/apis/apps/v1/namespaces/team/deployments/x'],
    [
      'rbac.authorization.k8s.io/v1',
      'clusterroles',
      false,
      undefined,
      '/apis/rbac.authorization.k8s.io/v1/clusterroles/x',
    ],
  ])('%s %s', (apiVersion, name, namespaced, namespace, path) => {
    const object = { apiVersion, kind: 'Any', metadata: { name: 'x', namespace } };
    expect(pathOfResource(object, { name, kind: 'Any', namespaced })).toBe(path);
  });
});
