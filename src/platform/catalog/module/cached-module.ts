import { isDeepStrictEqual } from 'node:util';
import type { EventSubject } from '../../../kube/events/event-correlator.ts';
import { subjectOf } from '../../../kube/events/event-object.ts';
import { collectionPathOf } from '../../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../../kube/watch/informer-types.ts';
import type { WatchedKind } from '../../../reconcile/informers.ts';
import { MODULES, type ModuleObject, type ModuleSpec } from './module.ts';
import type { ModuleStatus } from './module-status-schema.ts';

/** The part of a Module that the informer keeps. */
export interface CachedModule extends CachedObject {
  readonly generation: number;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly isDeleting: boolean;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: ModuleSpec;
  readonly status: ModuleStatus | undefined;
}

export const CACHED_MODULES: WatchedKind<CachedModule> = {
  kind: MODULES.kind,
  path: collectionPathOf(MODULES),
  indexers: { namespace: ({ namespace }) => namespace },
  project: (object) => {
    const { metadata, spec, status } = object as ModuleObject;
    return {
      ...metaOf(object),
      generation: metadata.generation ?? 0,
      createdAt: metadata.creationTimestamp ?? '',
      isDeleting: metadata.deletionTimestamp !== undefined,
      annotations: metadata.annotations ?? {},
      spec,
      status,
    };
  },
};

/** Subject of the events of a Module. */
export function moduleSubject(module: CachedModule): EventSubject {
  return subjectOf(MODULES, module);
}

/** Whether two versions differ in nothing but their status. */
export function isSameModule(a: CachedModule, b: CachedModule): boolean {
  return (
    a.generation === b.generation && a.isDeleting === b.isDeleting && isDeepStrictEqual(a.annotations, b.annotations)
  );
}

/** Whether two versions name the same releases. */
export function hasSameReleases(a: CachedModule, b: CachedModule): boolean {
  const releasesOf = ({ uid, spec, status }: CachedModule) => [
    uid,
    spec.release?.id,
    status?.release?.id,
    status?.history,
  ];
  return isDeepStrictEqual(releasesOf(a), releasesOf(b));
}
