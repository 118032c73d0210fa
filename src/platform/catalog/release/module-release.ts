import { isDeepStrictEqual } from 'node:util';
import Type, { type Static } from 'typebox';
import { crdOf } from '../../../kinds/crd.ts';
import { type CelRule, rules, time } from '../../../kinds/schema.ts';
import type { KubeObject } from '../../../kube/objects.ts';
import { collectionPathOf, type ResourceKind } from '../../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../../kube/watch/informer-types.ts';
import { PLATFORM_GROUP } from '../../../labels.ts';
import type { WatchedKind } from '../../../reconcile/informers.ts';
import { RELEASE_ID, SHA256 } from '../module/module.ts';

/** One source of the type, the CRD and the table in docs/catalog.md. */

/** Bound for the size of the object. */
const MAX_RELEASES = 120;

/** A release keeps its jar: Pods of one id are of one jar. */
function fixed(field: string): CelRule {
  return { rule: 'self == oldSelf', message: `${field} of a release cannot be changed: publish another id` };
}

const entry = Type.Object({
  id: Type.String({ maxLength: 63, pattern: RELEASE_ID, description: 'What `release.id` of a Module names.' }),
  image: Type.String({
    minLength: 1,
    maxLength: 500,
    description: 'Address of the jar.',
    ...rules(
      {
        rule: "self.contains('.jar')",
        message: 'image must be the address of a jar, such as https://jars.example.com/shop-1.0.0-ark-biz.jar',
      },
      fixed('image'),
    ),
  }),
  version: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 63,
      description: 'Version in the manifest of the jar. Not set: that in the name of the jar.',
      ...rules(fixed('version')),
    }),
  ),
  sha256: Type.Optional(
    Type.String({
      maxLength: 64,
      pattern: SHA256,
      description: 'Digest of the jar, in hex.',
      ...rules(fixed('sha256')),
    }),
  ),
  baseVersions: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 63 }), {
      maxItems: 16,
      'x-kubernetes-list-type': 'set',
      description: 'Versions of bases that it fits. Not set: those of the Module.',
    }),
  ),
  person: Type.Optional(Type.String({ maxLength: 100, description: 'Who published it.' })),
  time: Type.Optional(time({ description: 'When it was published.' })),
  remark: Type.Optional(Type.String({ maxLength: 1600, description: 'Changes since the release before.' })),
});

const spec = Type.Object({
  default: Type.Optional(
    Type.String({ maxLength: 63, pattern: RELEASE_ID, description: 'The release of Modules that ask for any.' }),
  ),
  releases: Type.Array(entry, {
    maxItems: MAX_RELEASES,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['id'],
    description: 'Published releases. An id is there once.',
  }),
});

const status = Type.Object({
  firstSeen: Type.Optional(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string', format: 'date-time' },
      description: 'When each release was first seen, by its id.',
    }),
  ),
  inUse: Type.Optional(
    Type.Array(Type.String({ maxLength: 63 }), {
      maxItems: MAX_RELEASES,
      'x-kubernetes-list-type': 'set',
      description: 'Ids that a Module, its history or a Pod names. They are never removed.',
    }),
  ),
  newest: Type.Optional(
    Type.String({ maxLength: 63, description: 'The newest release: by its time, else by when it was first seen.' }),
  ),
});

export type Release = Static<typeof entry>;
export type ModuleReleaseSpec = Static<typeof spec>;
export interface CachedReleases extends Omit<ModuleReleaseSpec, 'releases'> {
  readonly releases: readonly Omit<Release, 'person' | 'remark'>[];
}
export type ModuleReleaseStatus = Static<typeof status>;

export interface ModuleReleaseObject extends KubeObject {
  readonly spec: ModuleReleaseSpec;
  readonly status?: ModuleReleaseStatus;
}

export const MODULE_RELEASE_SCHEMAS = { spec, status };

export const MODULE_RELEASES: ResourceKind = {
  group: PLATFORM_GROUP,
  version: 'v1alpha1',
  kind: 'ModuleRelease',
  plural: 'modulereleases',
  isNamespaced: true,
};

export const MODULE_RELEASE_CRD = crdOf({
  kind: MODULE_RELEASES,
  shortNames: ['mrel'],
  description: 'Published releases of the Module with its name.',
  schemaRevision: 5,
  spec,
  status,
  columns: [
    { name: 'Default', type: 'string', jsonPath: '.spec.default' },
    { name: 'Newest', type: 'string', jsonPath: '.status.newest' },
    { name: 'In-Use', type: 'string', jsonPath: '.status.inUse' },
  ],
  rules: [
    {
      rule: '!has(oldSelf.status) || !has(oldSelf.status.inUse) || oldSelf.status.inUse.all(id, self.spec.releases.exists(r, r.id == id) || !oldSelf.spec.releases.exists(r, r.id == id))',
      message: 'spec.releases: a release that is in use cannot be removed: status.inUse lists these',
    },
    {
      rule: '!has(self.spec.default) || self.spec.releases.exists(r, r.id == self.spec.default)',
      message: 'spec.default names no release of spec.releases',
    },
  ],
});

/** The part of a ModuleRelease that the informer keeps: remarks and persons are most of its bytes, and for people. */
export interface CachedModuleRelease extends CachedObject {
  readonly spec: CachedReleases;
  readonly status: ModuleReleaseStatus | undefined;
}

export const CACHED_MODULE_RELEASES: WatchedKind<CachedModuleRelease> = {
  kind: MODULE_RELEASES.kind,
  path: collectionPathOf(MODULE_RELEASES),
  indexers: { namespace: ({ namespace }) => namespace },
  project: (object) => {
    const { spec, status } = object as ModuleReleaseObject;
    const releases = spec.releases.map(({ person: _person, remark: _remark, ...release }) => release);
    return { ...metaOf(object), spec: { ...spec, releases }, status };
  },
};

/** Whether two versions publish the same. The status is written by the catalog itself. */
export function isSameRelease(a: CachedModuleRelease, b: CachedModuleRelease): boolean {
  return a.uid === b.uid && isDeepStrictEqual(a.spec, b.spec);
}
