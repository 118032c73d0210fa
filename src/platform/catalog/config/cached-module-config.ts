import { isDeepStrictEqual } from 'node:util';
import { collectionPathOf } from '../../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../../kube/watch/informer-types.ts';
import type { WatchedKind } from '../../../reconcile/informers.ts';
import { causeIn } from './change-cause.ts';
import {
  type ChangeCause,
  MODULE_CONFIGS,
  type ModuleConfigObject,
  type ModuleConfigSpec,
  type ModuleConfigStatus,
} from './module-config.ts';

/** The part of a ModuleConfig that the informer keeps: not its content, which comes from its versions. */
export interface CachedModuleConfig extends CachedObject {
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly finalizers: readonly string[];
  readonly spec: Omit<ModuleConfigSpec, 'content' | 'instances'>;
  /** Annotations about its last change. */
  readonly cause: ChangeCause;
  readonly status: ModuleConfigStatus | undefined;
}

export const CACHED_MODULE_CONFIGS: WatchedKind<CachedModuleConfig> = {
  kind: MODULE_CONFIGS.kind,
  path: collectionPathOf(MODULE_CONFIGS),
  indexers: {
    namespace: ({ namespace }) => namespace,
    // Names of Modules have their application in lower case.
    application: ({ namespace, spec: { target } }) =>
      target.app === undefined ? undefined : `${namespace}/${target.app.toLowerCase()}`,
    parent: ({ namespace, spec: { parent } }) => (parent === undefined ? undefined : `${namespace}/${parent}`),
  },
  project: (object) => {
    const { metadata, spec, status } = object as ModuleConfigObject;
    const { content: _content, instances: _instances, ...rest } = spec;
    return {
      ...metaOf(object),
      generation: metadata.generation ?? 0,
      isDeleting: metadata.deletionTimestamp !== undefined,
      finalizers: metadata.finalizers ?? [],
      spec: rest,
      cause: causeIn(metadata.annotations ?? {}),
      status,
    };
  },
};

/** Whether two versions differ in nothing that a ModuleConfig or its children depend on. */
export function isSameConfig(a: CachedModuleConfig, b: CachedModuleConfig): boolean {
  return (
    a.generation === b.generation &&
    a.isDeleting === b.isDeleting &&
    isDeepStrictEqual(a.finalizers, b.finalizers) &&
    isDeepStrictEqual(a.cause, b.cause) &&
    isDeepStrictEqual(a.status, b.status)
  );
}

/** Whether two versions offer Modules the same. */
export function offersSame(a: CachedModuleConfig, b: CachedModuleConfig): boolean {
  const offerOf = ({ status }: CachedModuleConfig) => [
    status?.activeVersion,
    status?.versions?.map(({ id, digest }) => [id, digest]),
  ];
  return a.uid === b.uid && isDeepStrictEqual(offerOf(a), offerOf(b));
}
