import type { KubeObject } from '../../kube/objects.ts';
import { collectionPathOf, SERVICES } from '../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../kube/watch/informer-types.ts';
import type { WatchedKind } from '../../reconcile/informers.ts';
import { type ExportSettings, exportSettingsOf } from './exported-service.ts';

/** A Service as the informer keeps it: of those that are not exported only the name. */
export interface CachedService extends CachedObject {
  readonly createdAt: string;
  /** Undefined: it is not exported. */
  readonly exported: ExportSettings | undefined;
}

/** All Services: an annotation, which may name the groups, cannot be selected by. */
export const EXPORTED_SERVICES: WatchedKind<CachedService> = {
  kind: 'Service',
  path: collectionPathOf(SERVICES),
  indexers: { exported: ({ namespace, exported }) => (exported === undefined ? undefined : namespace) },
  project: projectService,
};

export function projectService(object: KubeObject): CachedService {
  const { metadata } = object;
  return {
    ...metaOf(object),
    createdAt: metadata.creationTimestamp ?? '',
    // One that is being deleted is exported until it is gone, as its Endpoints are.
    exported: exportSettingsOf(object),
  };
}
