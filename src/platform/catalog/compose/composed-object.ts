import { isDeepStrictEqual } from 'node:util';
import { controllerOf, type KubeObject, type OwnerReference } from '../../../kube/objects.ts';
import { collectionPathOf, type ResourceKind, SERVICES } from '../../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../../kube/watch/informer-types.ts';
import type { WatchedKind } from '../../../reconcile/informers.ts';
import { type ConfigInForce, configsText } from '../module/configs-in-force.ts';
import { MODULES, type WorkloadKind } from '../module/module.ts';
import { APPLICATION_JSON, CATALOG_ANNOTATION, CATALOG_LABEL, type ComposedObject, WORKLOAD_KINDS } from './compose.ts';

/** What a workload says of its Pods. */
export interface PodCounts {
  /** Pods that there should be. */
  readonly desired: number;
  readonly replicas: number;
  readonly ready: number;
  readonly updated: number;
  /** Its controller has seen its newest specification. */
  readonly isObserved: boolean;
  /** It makes no progress by itself. */
  readonly isStalled: boolean;
  /** Why not all Pods are Ready and of its newest template, as far as it says so. */
  readonly message: string | undefined;
}

/** A workload or a Service with the mark of the catalog, as the informer keeps it. */
export interface CachedComposed extends CachedObject {
  readonly isDeleting: boolean;
  readonly controller: OwnerReference | undefined;
  /** Digest of what was composed last; undefined where somebody has removed it. */
  readonly digest: string | undefined;
  readonly object: KubeObject;
}

function watched(kind: ResourceKind): WatchedKind<CachedComposed> {
  return {
    kind: kind.kind,
    path: collectionPathOf(kind),
    labelSelector: () => `${CATALOG_LABEL.composed}=${MODULES.kind}`,
    project: projectComposed,
  };
}

export const COMPOSED_WORKLOADS: Readonly<Record<WorkloadKind, WatchedKind<CachedComposed>>> = {
  ModuleDeployment: watched(WORKLOAD_KINDS.ModuleDeployment),
  Deployment: watched(WORKLOAD_KINDS.Deployment),
  StatefulSet: watched(WORKLOAD_KINDS.StatefulSet),
  DaemonSet: watched(WORKLOAD_KINDS.DaemonSet),
};

export const COMPOSED_SERVICES = watched(SERVICES);

export function projectComposed(raw: KubeObject): CachedComposed {
  const { managedFields: _managedFields, ...metadata } = raw.metadata as KubeObject['metadata'] & {
    readonly managedFields?: unknown;
  };
  return {
    ...metaOf(raw),
    isDeleting: metadata.deletionTimestamp !== undefined,
    controller: controllerOf(metadata),
    digest: metadata.annotations?.[CATALOG_ANNOTATION.digest],
    object: { ...raw, metadata },
  };
}

/** Whether two versions differ in nothing but their version. */
export function isSameComposed(a: CachedComposed, b: CachedComposed): boolean {
  return isDeepStrictEqual(withoutVersion(a), withoutVersion(b));
}

function withoutVersion({ resourceVersion: _version, object, ...rest }: CachedComposed): unknown {
  const { resourceVersion: _ofObject, generation: _generation, ...metadata } = object.metadata;
  return { ...rest, object: { ...object, metadata } };
}

/** Keys by which the API server merges lists of objects. Other lists are one value. */
const LIST_KEYS: Readonly<Record<string, readonly string[]>> = {
  containers: ['name'],
  env: ['name'],
  ports: ['name'],
  ownerReferences: ['uid'],
};

/**
 * The fields of `live` that `composed` has, in the order of `composed`: what others have added is left out. Missing
 * fields are left out too.
 */
export function composedPartOf(composed: unknown, live: unknown, field = ''): unknown {
  const keys = LIST_KEYS[field];
  if (Array.isArray(composed)) {
    if (!Array.isArray(live) || keys === undefined) return live;
    return composed.map((item) =>
      composedPartOf(
        item,
        live.find((one) => hasSameKeys(item, one, keys)),
      ),
    );
  }
  if (!isRecord(composed) || !isRecord(live)) return live;
  return Object.fromEntries(
    Object.entries(composed).flatMap(([key, value]) =>
      live[key] === undefined ? [] : [[key, composedPartOf(value, live[key], key)]],
    ),
  );
}

/** The first field in which two values differ, such as `spec.template.spec.containers[0].image`. */
export function firstDifference(expected: unknown, found: unknown, path = ''): string | undefined {
  if (isDeepStrictEqual(expected, found)) return undefined;
  for (const [key, before, after] of partsOfBoth(expected, found, path)) {
    const difference = firstDifference(before, after, key);
    if (difference !== undefined) return difference;
  }
  return path;
}

/** What two lists or two maps have at the same places, with the path of each; nothing for other values. */
function partsOfBoth(a: unknown, b: unknown, path: string): (readonly [path: string, a: unknown, b: unknown])[] {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length ? a.map((item, index) => [`${path}[${index}]`, item, b[index]]) : [];
  }
  if (!isRecord(a) || !isRecord(b)) return [];
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return keys.map((key) => [path === '' ? key : `${path}.${key}`, a[key], b[key]]);
}

function hasSameKeys(a: unknown, b: unknown, keys: readonly string[]): boolean {
  return isRecord(a) && isRecord(b) && keys.every((key) => a[key] === b[key]);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The arguments that configuration has made of the Pods of a workload. Undefined: its Pods have other versions than
 * these.
 */
export function configArgsIn(
  { object }: Pick<CachedComposed, 'object'>,
  configs: readonly ConfigInForce[] = [],
): readonly string[] | undefined {
  const { template } = (object as WithTemplate).spec ?? {};
  const text = template?.metadata?.annotations?.[CATALOG_ANNOTATION.configs];
  if (configs.length === 0 || text !== configsText(configs)) return undefined;
  const [first] = template?.spec?.containers?.[0]?.args ?? [];
  return first?.startsWith(`${APPLICATION_JSON}=`) ? [first] : [];
}

interface WithTemplate extends KubeObject {
  readonly spec?: {
    readonly template?: {
      readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
      readonly spec?: { readonly containers?: readonly { readonly args?: readonly string[] }[] };
    };
  };
}

/** What a cached workload says of its Pods. */
export function podCountsOf(kind: WorkloadKind, { object }: Pick<CachedComposed, 'object'>): PodCounts {
  const {
    metadata,
    spec = {},
    status = {},
  } = object as KubeObject & {
    readonly spec?: { readonly replicas?: number };
    readonly status?: WorkloadStatus;
  };
  const isObserved = (status.observedGeneration ?? 0) >= (metadata.generation ?? 0);
  if (kind === 'DaemonSet') {
    return {
      desired: status.desiredNumberScheduled ?? 0,
      replicas: status.currentNumberScheduled ?? 0,
      ready: status.numberReady ?? 0,
      updated: status.updatedNumberScheduled ?? 0,
      isObserved,
      isStalled: false,
      message: undefined,
    };
  }
  const { conditions = [] } = status;
  const failure = conditions.find(
    ({ type, status: value }) =>
      (type === 'ReplicaFailure' && value === 'True') || (type === 'Progressing' && value === 'False'),
  );
  // Of a ModuleDeployment; a Deployment has none.
  const ready = conditions.find(({ type, status: value }) => type === 'Ready' && value === 'False');
  return {
    desired: spec.replicas ?? 1,
    replicas: status.replicas ?? 0,
    ready: status.readyReplicas ?? 0,
    updated: status.updatedReplicas ?? 0,
    isObserved,
    isStalled: failure !== undefined,
    message: failure?.message ?? ready?.message,
  };
}

/** A field that is null is not there in the answer. */
function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) => (one === null ? [] : [[key, withoutNull(one)]])),
  );
}

interface WorkloadStatus {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly readyReplicas?: number;
  readonly updatedReplicas?: number;
  readonly desiredNumberScheduled?: number;
  readonly currentNumberScheduled?: number;
  readonly numberReady?: number;
  readonly updatedNumberScheduled?: number;
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
}

/** What the API server may have changed of what was applied: the parts that a composition has. */
export function partsOf({ metadata, spec }: Pick<ComposedObject, 'metadata' | 'spec'>): unknown {
  const { labels, annotations, ownerReferences } = metadata;
  return { metadata: { labels, annotations, ownerReferences }, spec: withoutNull(spec) };
}

/** Whether the watch selects an object. */
export function isMarked({ object }: Pick<CachedComposed, 'object'>): boolean {
  return object.metadata.labels?.[CATALOG_LABEL.composed] === MODULES.kind;
}

/** Labels and annotations that are not stored as they were applied, such as `metadata.labels.team`. */
export function alteredFields(applied: unknown, stored: unknown, path = ''): string[] {
  if (!isRecord(applied)) return [];
  const last = path.slice(path.lastIndexOf('.') + 1);
  const found = isRecord(stored) ? stored : {};
  return Object.entries(applied).flatMap(([key, value]) => {
    const field = path === '' ? key : `${path}.${key}`;
    if (last !== 'labels' && last !== 'annotations') return alteredFields(value, found[key], field);
    return found[key] === value ? [] : [field];
  });
}
