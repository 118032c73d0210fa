import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import type { ControlPlaneAccess } from '../../samples/control-plane/control-plane-access.ts';

export const TENANT_NAMESPACE = 'tenant';

/** A client with the token of a service account that has the built-in ClusterRole `edit` in one namespace. */
export async function createTenant(
  controlPlane: ControlPlaneAccess,
  namespace: string = TENANT_NAMESPACE,
): Promise<ApiClient> {
  const metadata = { name: 'mallory', namespace };
  const ownNamespace: KubeObject[] =
    namespace === 'default' ? [] : [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }];
  await controlPlane.apply([
    ...ownNamespace,
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
  ]);
  return controlPlane.client({ serviceAccount: `${namespace}/${metadata.name}` });
}
