import Type, { type Static } from 'typebox';
import type { Crd } from '../kube/crds.ts';
import type { KubeObject } from '../kube/objects.ts';
import { collectionPathOf, type ResourceKind } from '../kube/resource.ts';
import { type CachedObject, metaOf } from '../kube/watch/informer-types.ts';
import { INSTALL_STRATEGIES, PLATFORM_GROUP } from '../labels.ts';
import type { WatchedKind } from '../reconcile/informers.ts';
import { enumOf, openApiOf, rules } from './schema.ts';

/** One source of the type, of deploy/platform/module-tenancy.yaml and of the table in docs/admission.md. */

/** Host name, or all that end so. */
const HOST = '^(\\*\\.)?[a-z0-9.-]+$';
/** Name of a namespace: a DNS label. */
const NAMESPACE = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$';
/** Bounds for the API server's checks, which compare each with each. */
const MAX_ENTRIES = 64;

function portOrRange() {
  const port = '[1-9][0-9]{0,4}';
  return Type.Unsafe<number | string>({
    'x-kubernetes-int-or-string': true,
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    pattern: `^${port}(-${port})?$`,
    maxLength: 11,
    minimum: 1,
    maximum: 65_535,
    ...rules({
      rule: "type(self) == int || (self.split('-').all(p, int(p) <= 65535) && int(self.split('-')[0]) <= int(self.split('-')[self.split('-').size() - 1]))",
      message: 'a range begins with its lower port, and ends at 65535 or below',
    }),
  });
}

const spec = Type.Object({
  baseNames: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 63 }), {
      maxItems: MAX_ENTRIES,
      description: 'Names of bases that modules may run on. Not set: any.',
    }),
  ),
  envs: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 63 }), {
      maxItems: MAX_ENTRIES,
      description: 'ENVs whose bases modules may run on. Not set: any.',
    }),
  ),
  moduleNames: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 63, pattern: '^[a-z0-9-]*\\*?$' }), {
      maxItems: MAX_ENTRIES,
      description: 'Names that modules may have; `shop-*` is each one that begins with `shop-`. Not set: any.',
    }),
  ),
  imagePrefixes: Type.Optional(
    Type.Array(Type.String({ maxLength: 1024, pattern: '^(https?://[A-Za-z0-9.:\\[\\]-]+|file://)/([^?#]*/)?$' }), {
      maxItems: MAX_ENTRIES,
      description:
        'What addresses of jars may begin with: scheme, host and path, with `/` at the end. Only plain names may follow. Not set: any.',
    }),
  ),
  installStrategies: Type.Optional(
    Type.Array(enumOf(INSTALL_STRATEGIES), {
      maxItems: INSTALL_STRATEGIES.length,
      description: 'What the annotation `virtual-kubelet.koupleless.io/install-strategy` may be. Not set: any.',
    }),
  ),
  maxPreStopSeconds: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Longest `lifecycle.preStop.sleep`, s. Not set: any.' }),
  ),
  exportGroups: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 63 }), {
      maxItems: MAX_ENTRIES,
      description: 'Groups of load balancers that Services may be exported to. Not set: any.',
    }),
  ),
  exportHosts: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 253, pattern: HOST }), {
      maxItems: MAX_ENTRIES,
      description:
        'Host names that exported Services may have, in lower case; `*.shop.example.com` is each name below `shop.example.com`, at any depth. Not set: any.',
    }),
  ),
  exportSharedHosts: Type.Optional(
    Type.Array(
      Type.Object({
        host: Type.String({
          minLength: 1,
          maxLength: 253,
          pattern: HOST,
          description:
            'Host name in lower case. `*.shop.example.com` is each name below `shop.example.com`, at any depth.',
        }),
        namespaces: Type.Array(Type.String({ minLength: 1, maxLength: 63, pattern: NAMESPACE }), {
          minItems: 1,
          maxItems: MAX_ENTRIES,
          description: 'Names of the namespaces whose Services may have it too, with other paths. `*` is none.',
        }),
      }),
      {
        maxItems: MAX_ENTRIES,
        description:
          'Host names that Services of this namespace and of others may have beside each other. Not set: none.',
      },
    ),
  ),
  exportPorts: Type.Optional(
    Type.Array(portOrRange(), {
      maxItems: MAX_ENTRIES,
      description:
        'Ports that exported Services may have as TCP or UDP, such as `5432` or `9000-9099`. Not set: any, and none where `exportHosts` is set.',
    }),
  ),
});

export const MODULE_TENANCY_SCHEMAS = { spec };

export interface ModuleTenancy extends KubeObject {
  readonly spec: Static<typeof spec>;
}

export const MODULE_TENANCIES: ResourceKind = {
  group: PLATFORM_GROUP,
  version: 'v1alpha1',
  kind: 'ModuleTenancy',
  plural: 'moduletenancies',
  isNamespaced: true,
};

/** The part of a ModuleTenancy that controllers keep: the API server checks the rest. */
export interface CachedTenancy extends CachedObject {
  readonly sharedHosts: readonly { readonly host: string; readonly namespaces: readonly string[] }[];
}

export const CACHED_TENANCIES: WatchedKind<CachedTenancy> = {
  kind: MODULE_TENANCIES.kind,
  path: collectionPathOf(MODULE_TENANCIES),
  indexers: { namespace: ({ namespace }) => namespace },
  project: (object) => ({ ...metaOf(object), sharedHosts: (object as ModuleTenancy).spec.exportSharedHosts ?? [] }),
};

/** Installed by the manifests: policies of the API server need it before a controller runs. */
export const MODULE_TENANCY_CRD: Crd = {
  metadata: { name: `moduletenancies.${PLATFORM_GROUP}` },
  spec: {
    group: PLATFORM_GROUP,
    scope: 'Namespaced',
    names: { kind: 'ModuleTenancy', plural: 'moduletenancies', singular: 'moduletenancy', shortNames: ['mtn'] },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        additionalPrinterColumns: [
          { name: 'Modules', type: 'string', jsonPath: '.spec.moduleNames' },
          { name: 'Bases', type: 'string', jsonPath: '.spec.baseNames' },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
        schema: {
          openAPIV3Schema: { type: 'object', required: ['spec'], properties: { spec: openApiOf(spec) } },
        },
      },
    ],
  },
};
