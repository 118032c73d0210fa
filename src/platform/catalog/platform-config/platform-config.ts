import Type, { type Static } from 'typebox';
import { crdOf } from '../../../kinds/crd.ts';
import { enumOf, stringMap, time } from '../../../kinds/schema.ts';
import type { KubeObject } from '../../../kube/objects.ts';
import { collectionPathOf, type ResourceKind } from '../../../kube/resource.ts';
import { type CachedObject, type Informer, metaOf } from '../../../kube/watch/informer-types.ts';
import { PLATFORM_GROUP } from '../../../labels.ts';
import type { WatchedKind } from '../../../reconcile/informers.ts';

/** One source of the type, the CRD and the table in docs/kinds.md. */

/** Name of the only one in a namespace. */
export const PLATFORM_CONFIG_NAME = 'platform';
/** Bounds and default of the number of entries that a list keeps. */
export const RECORD_LIMIT = { min: 10, max: 100, default: 48 } as const;
/** Bounds for the API server's estimate of what its checks cost. */
const MAX_APPS = 256;
const MAX_BUSINESSES = 64;

/** Name in `upChain` of the addresses for names that it does not have. */
export const DEFAULT_CHAIN = 'default';
/** A DNS name, or an IPv4 or IPv6 address. */
const HOST = '^[0-9A-Za-z:]([-.0-9A-Za-z:]*[0-9A-Za-z:])?$';

const limit = (description: string) =>
  Type.Optional(
    Type.Integer({
      minimum: RECORD_LIMIT.min,
      maximum: RECORD_LIMIT.max,
      description: `${description} Default ${RECORD_LIMIT.default}.`,
    }),
  );

const about = {
  person: Type.Optional(Type.String({ maxLength: 100, description: 'Who has added it.' })),
  time: Type.Optional(time({ description: 'When it was added.' })),
  remark: Type.Optional(Type.String({ maxLength: 1600 })),
};

/** Entries of one name in `upChain`. */
const MAX_HOSTS = 16;
const MAX_CHAINS = 64;
const MAX_EXPANSIONS = 64;
/** Milliseconds that a client waits for an answer. */
export const DEFAULT_TIMEOUT_MS = 6_000;

const upstream = Type.Object({
  host: Type.String({ minLength: 1, maxLength: 253, pattern: HOST, description: 'Name or address.' }),
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  timeoutMs: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 600_000,
      description: `How long a client waits for an answer. Default ${DEFAULT_TIMEOUT_MS}.`,
    }),
  ),
  protocol: Type.Optional(enumOf(['TCP', 'UDP'], { description: 'Default `TCP`.' })),
});

const upstreams = Type.Array(upstream, { minItems: 1, maxItems: MAX_HOSTS });

const byName = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] };

const spec = Type.Object({
  recordLimit: Type.Optional(
    Type.Object(
      {
        exitedPod: limit('Maximum number of Pods that a ModuleExitedRecord keeps.'),
        moduleRelease: limit('Maximum number of releases that a ModuleRelease keeps, besides those in use.'),
        configVersion: limit('Maximum number of versions that a ModuleConfig keeps, besides those in use.'),
      },
      { description: 'How much is kept.' },
    ),
  ),
  businesses: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String({ minLength: 2, maxLength: 32 }),
        show: Type.String({ minLength: 1, maxLength: 100, description: 'Its name for people.' }),
        weight: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 5, description: 'The greater ones are shown first. Default 3.' }),
        ),
        ...about,
      }),
      { maxItems: MAX_BUSINESSES, ...byName, description: 'Groups of applications.' },
    ),
  ),
  upChain: Type.Optional(
    Type.Unsafe<Record<string, Static<typeof upstreams>>>({
      type: 'object',
      additionalProperties: upstreams,
      maxProperties: MAX_CHAINS,
      description: `Addresses outside of the cluster, by \`{app}.{module}.{port}\`, for \`/resolve\`; \`${DEFAULT_CHAIN}\` is for all other names. A Module with the port goes before.`,
    }),
  ),
  expand: Type.Optional(
    stringMap(
      { maxLength: 4096 },
      {
        maxProperties: MAX_EXPANSIONS,
        description: 'Settings for tools. The platform does not read them.',
      },
    ),
  ),
  apps: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String({ minLength: 1, maxLength: 63, description: '`app` of Modules.' }),
        business: Type.Optional(
          Type.String({ maxLength: 32, description: 'The business that it belongs to. Not set: none.' }),
        ),
        ...about,
      }),
      { maxItems: MAX_APPS, ...byName, description: 'Applications. One that Modules use cannot be removed.' },
    ),
  ),
});

const status = Type.Object({
  observedGeneration: Type.Integer(),
  apps: Type.Array(
    Type.Object({
      name: Type.String(),
      business: Type.String({ description: 'Empty where none is named, or where `businesses` does not have it.' }),
    }),
    {
      ...byName,
      maxItems: MAX_APPS,
      description: `Applications of the Modules in the namespace, the first ${MAX_APPS}.`,
    },
  ),
});

export type PlatformConfigSpec = Static<typeof spec>;
export type PlatformConfigStatus = Static<typeof status>;

export interface PlatformConfigObject extends KubeObject {
  readonly spec: PlatformConfigSpec;
  readonly status?: PlatformConfigStatus;
}

export const PLATFORM_CONFIG_SCHEMAS = { spec, status };

export const PLATFORM_CONFIGS: ResourceKind = {
  group: PLATFORM_GROUP,
  version: 'v1alpha1',
  kind: 'PlatformConfig',
  plural: 'platformconfigs',
  isNamespaced: true,
};

export const PLATFORM_CONFIG_CRD = crdOf({
  kind: PLATFORM_CONFIGS,
  shortNames: ['pcfg'],
  description: 'How the catalog works in a namespace. Without it all defaults hold.',
  schemaRevision: 5,
  spec,
  status,
  columns: [
    { name: 'Exited-Pods', type: 'integer', jsonPath: '.spec.recordLimit.exitedPod' },
    { name: 'Releases', type: 'integer', jsonPath: '.spec.recordLimit.moduleRelease' },
    { name: 'Apps', type: 'string', jsonPath: '.status.apps[*].name', priority: 1 },
  ],
  rules: [
    {
      rule: `self.metadata.name == '${PLATFORM_CONFIG_NAME}'`,
      message: `metadata.name must be ${PLATFORM_CONFIG_NAME}: a namespace has one`,
    },
    {
      rule: `!has(oldSelf.status) || !has(oldSelf.spec.apps) || oldSelf.spec.apps.all(a, (has(self.spec.apps) && self.spec.apps.exists(b, b.name == a.name)) || !oldSelf.status.apps.exists(u, u.name == a.name))`,
      message: 'spec.apps: an application that Modules use cannot be removed: status.apps lists these',
    },
  ],
});

/** The part of a PlatformConfig that the informer keeps. */
export interface CachedPlatformConfig extends CachedObject {
  readonly generation: number;
  readonly spec: PlatformConfigSpec;
  readonly status: PlatformConfigStatus | undefined;
}

export const CACHED_PLATFORM_CONFIGS: WatchedKind<CachedPlatformConfig> = {
  kind: PLATFORM_CONFIGS.kind,
  path: collectionPathOf(PLATFORM_CONFIGS),
  project: (object) => {
    const { metadata, spec, status } = object as PlatformConfigObject;
    return { ...metaOf(object), generation: metadata.generation ?? 0, spec, status };
  },
};

/** How many entries lists in a namespace keep. */
export function recordLimitOf(
  configs: Pick<Informer<CachedPlatformConfig>, 'get'>,
  namespace: string,
  list: keyof NonNullable<PlatformConfigSpec['recordLimit']>,
): number {
  const found = configs.get(`${namespace}/${PLATFORM_CONFIG_NAME}`)?.spec.recordLimit?.[list];
  return found ?? RECORD_LIMIT.default;
}

/** Status of a PlatformConfig in a namespace with Modules of these applications. */
export function platformConfigStatus(
  { generation, spec }: Pick<CachedPlatformConfig, 'generation' | 'spec'>,
  used: Iterable<string>,
): PlatformConfigStatus {
  const known = new Set(spec.businesses?.map(({ name }) => name));
  const businessOf = new Map(spec.apps?.map(({ name, business = '' }) => [name, known.has(business) ? business : '']));
  const apps = [...new Set(used)].sort().slice(0, MAX_APPS);
  return {
    observedGeneration: generation,
    apps: apps.map((name) => ({ name, business: businessOf.get(name) ?? '' })),
  };
}
