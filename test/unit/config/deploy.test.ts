import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../samples/control-plane/api-client.ts';
import { parseManifests } from '../../../samples/control-plane/manifests.ts';
import { ConfigError, loadConfig } from '../../../src/config/config.ts';

const read = (file: string): string => readFileSync(new URL(`../../../deploy/${file}`, import.meta.url), 'utf8');
const objectsOf = (text: string, kind: string): KubeObject[] =>
  parseManifests(text).filter((object) => object.kind === kind);

/** What the Deployment gives a replica. */
function envOf(config: string): Record<string, string> {
  const [configMap] = objectsOf(config, 'ConfigMap');
  const downward: Record<string, string> = {
    'metadata.name': 'module-controller-7d9c-x2x4z',
    'metadata.namespace': 'koupleless-system',
    'status.podIP': '10.244.0.7',
  };
  const [deployment] = objectsOf(read('deployment.yaml'), 'Deployment');
  const fields = deployment?.spec.template.spec.containers[0].env.map(({ name, valueFrom }: KubeObject) => [
    name,
    downward[valueFrom.fieldRef.fieldPath],
  ]);
  return { ...configMap?.data, ...Object.fromEntries(fields) };
}

describe('a replica that deploy/ starts', () => {
  it('is a member, named as its Pod', () => {
    const { clientId, cluster } = loadConfig(envOf(read('config.yaml')), 'host');
    expect(clientId).toBe('module-controller-7d9c-x2x4z');
    expect(cluster).toMatchObject({ memberAddress: undefined });
  });

  it('shows the others where it is when bases are found over HTTP, with a key of its own Secret', () => {
    const env = envOf(read('config.yaml').replace(/^( *)# ([A-Z_]+: )/gm, '$1$2'));
    expect(env).toMatchObject({ ENABLE_HTTP_TUNNEL: 'true' });
    expect(() => loadConfig(env, 'host')).toThrow(ConfigError);
    const changed = { ...env, MEMBER_TOKEN: '0123456789abcdef', HTTP_TUNNEL_TOKEN: 'fedcba9876543210' };
    expect(loadConfig(changed, 'host').cluster).toMatchObject({ memberAddress: '10.244.0.7:7777' });
  });

  it('is never alone during an update', () => {
    const [deployment] = objectsOf(read('deployment.yaml'), 'Deployment');
    expect(deployment?.spec.replicas).toBeGreaterThan(1);
    expect(deployment?.spec.strategy).toMatchObject({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0 } });
  });

  it('may read and write Leases where tenants cannot, and nowhere else', () => {
    const rbac = read('rbac.yaml');
    const rights = ['ClusterRole', 'Role']
      .flatMap((kind) => objectsOf(rbac, kind))
      .flatMap(({ metadata, rules }) =>
        rules
          .filter(({ resources }: KubeObject) => resources.includes('leases'))
          .map(({ verbs }: KubeObject) => [metadata.namespace ?? '', verbs.toSorted()]),
      );
    expect(rights).toEqual([['kube-node-lease', ['create', 'delete', 'get', 'list', 'patch', 'watch']]]);
    const bound = objectsOf(rbac, 'RoleBinding').map(({ metadata }) => metadata.namespace);
    expect(bound).toEqual(['kube-node-lease']);
  });

  it('may record in the namespace of the leases of Nodes which bases it met, and read ConfigMaps nowhere else', () => {
    const rights = ['ClusterRole', 'Role']
      .flatMap((kind) => objectsOf(read('rbac.yaml'), kind))
      .flatMap(({ metadata, rules }) =>
        rules
          .filter(({ resources }: KubeObject) => resources.includes('configmaps'))
          .map(({ verbs }: KubeObject) => [metadata.namespace ?? '', verbs.toSorted()]),
      );
    expect(rights).toEqual([['kube-node-lease', ['create', 'get', 'patch']]]);
  });
});
