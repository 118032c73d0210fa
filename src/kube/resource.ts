import type { Patch } from './client.ts';
import type { KubeObject } from './objects.ts';
import { type CallOptions, listPages, type RequestLane, remove, segment } from './requests.ts';
import type { RestRequest } from './transport/rest-lane.ts';
import { APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH } from './transport/rest-lane.ts';

/** A kind of the API, built in or of a CRD. */
export interface ResourceKind {
  /** '' for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural name, as in its path: `moduledeployments`. */
  readonly plural: string;
  readonly isNamespaced: boolean;
}

export const NODES: ResourceKind = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', isNamespaced: false };

export const PODS: ResourceKind = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', isNamespaced: true };

export const SERVICES: ResourceKind = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  isNamespaced: true,
};

export const DEPLOYMENTS: ResourceKind = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  isNamespaced: true,
};

/** One object; `namespace` is required for namespaced kinds, and not used for others. */
export interface ObjectRef {
  readonly namespace?: string | undefined;
  readonly name: string;
}

export interface WriteOptions extends CallOptions {
  /** Checked and admitted by the API server, but not stored. Default false. */
  readonly isDryRun?: boolean;
}

export interface SubresourceOptions extends WriteOptions {
  /** Default: the object itself. */
  readonly subresource?: 'status';
}

export interface ApplyOptions extends SubresourceOptions {
  /** Takes over fields that other managers own. Default false: such a field is a conflict (409). */
  readonly isForced?: boolean;
}

/** One operation of a JSON patch (RFC 6902); a `test` that fails makes the API server refuse the patch (422). */
export type JsonPatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

export interface DeleteOptions extends WriteOptions {
  /** That incarnation only; 409 when another one has the name. */
  readonly uid?: string;
  /** That version only; 409 otherwise. */
  readonly resourceVersion?: string;
  /** What becomes of dependents. Default: as the kind has it. */
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  readonly gracePeriodSeconds?: number;
}

export interface ListSelection {
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** `autoscaling/v1` Scale, as far as it is used. */
export interface Scale extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly replicas: number; readonly selector?: string };
}

/**
 * The calls about one kind. Each rejects with `ApiError` (an answer with an error status) or with ControllerError
 * `Kube.ConnectionFailed` (no whole answer: a write has possibly happened).
 */
export interface ResourceClient<T extends KubeObject> {
  /** Owner of the fields that this client writes. */
  readonly fieldManager: string;
  get(ref: ObjectRef, options?: CallOptions): Promise<T>;
  /** All objects as they were at one moment; several requests where there are many. */
  list(selection?: ListSelection, options?: CallOptions): Promise<T[]>;
  create(object: T, options?: WriteOptions): Promise<T>;
  /** Replaces the object, or its status; with `metadata.resourceVersion` that version only (409). */
  update(object: T, options?: SubresourceOptions): Promise<T>;
  /** Server-side apply: the fields of `object` become this manager's, and what it applied before and now lacks goes. */
  apply(object: Patch & { readonly metadata: ObjectRef }, options?: ApplyOptions): Promise<T>;
  /** JSON merge patch (RFC 7386). `metadata.resourceVersion` in it: that version only. */
  mergePatch(ref: ObjectRef, patch: Patch, options?: SubresourceOptions): Promise<T>;
  /** Merges lists by key; built-in kinds only (415 for others). */
  strategicPatch(ref: ObjectRef, patch: Patch, options?: SubresourceOptions): Promise<T>;
  /** Never sent twice after a cut connection, unlike the other patches: an operation may add to a list. */
  jsonPatch(ref: ObjectRef, patch: readonly JsonPatchOperation[], options?: SubresourceOptions): Promise<T>;
  delete(ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  getScale(ref: ObjectRef, options?: CallOptions): Promise<Scale>;
  /** `resourceVersion`: of the Scale, which is that of the object; that version only (409). */
  setReplicas(
    ref: ObjectRef,
    replicas: number,
    options?: WriteOptions & { readonly resourceVersion?: string },
  ): Promise<Scale>;
}

/** `apps/v1`, `v1`. */
export function apiVersionOf({ group, version }: ResourceKind): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The path of a collection: of one namespace, or of all where none is given. */
export function collectionPathOf(kind: ResourceKind, namespace?: string): string {
  const root = kind.group === '' ? '/api' : `/apis/${kind.group}`;
  const scope = kind.isNamespaced && namespace !== undefined ? `/namespaces/${segment(namespace)}` : '';
  return `${root}/${kind.version}${scope}/${kind.plural}`;
}

export interface ResourcesOptions {
  readonly lane: RequestLane;
  /** Owns what is written. One for each controller, so that two of them never share a field unnoticed. */
  readonly fieldManager: string;
}

/** Makes clients for any kind, on a lane that they share with others. */
export class Resources {
  readonly #lane: RequestLane;
  readonly #fieldManager: string;

  constructor({ lane, fieldManager }: ResourcesOptions) {
    this.#lane = lane;
    this.#fieldManager = fieldManager;
  }

  /** The type is a claim of the caller: the API server holds objects to their schema, nobody else does. */
  of<T extends KubeObject>(kind: ResourceKind): ResourceClient<T> {
    const lane = this.#lane;
    const request = <R>(
      method: RestRequest['method'],
      path: string,
      { isDryRun, query, ...rest }: WriteOptions & Pick<RestRequest, 'body' | 'contentType' | 'query'> = {},
    ): Promise<R> => {
      const dryRun = isDryRun ? { dryRun: 'All' } : {};
      return lane.request<R>({ method, path, query: { ...query, ...dryRun }, ...rest });
    };
    const managed = { fieldManager: this.#fieldManager };
    const patched = <R>(
      ref: ObjectRef,
      body: unknown,
      contentType: string,
      { subresource, ...options }: WriteOptions & { readonly subresource?: 'status' | 'scale' } = {},
    ): Promise<R> =>
      request('PATCH', objectPathOf(kind, ref, subresource), { body, contentType, query: managed, ...options });
    return {
      ...managed,
      get: async (ref, options) => request('GET', objectPathOf(kind, ref), options),
      list: async ({ namespace, ...query } = {}, options) => {
        const items: T[] = [];
        const path = collectionPathOf(kind, namespace);
        await listPages<T>(lane, path, { ...options, query, onItem: (item) => items.push(item) });
        return items;
      },
      create: async (object, options) => {
        const path = collectionPathOf(kind, namespaceOf(kind, object.metadata));
        return request('POST', path, { body: typed(kind, object), query: managed, ...options });
      },
      update: async (object, { subresource, ...options } = {}) =>
        request('PUT', objectPathOf(kind, object.metadata, subresource), {
          body: typed(kind, object),
          query: managed,
          ...options,
        }),
      apply: async (object, { isForced = false, subresource, ...options } = {}) =>
        request('PATCH', objectPathOf(kind, object.metadata, subresource), {
          body: typed(kind, object),
          contentType: APPLY_PATCH,
          query: { ...managed, force: isForced },
          ...options,
        }),
      mergePatch: async (ref, patch, options) => patched(ref, patch, MERGE_PATCH, options),
      strategicPatch: async (ref, patch, options) => patched(ref, patch, STRATEGIC_MERGE_PATCH, options),
      jsonPatch: async (ref, patch, options) => patched(ref, patch, JSON_PATCH, options),
      delete: async (ref, options) => {
        const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds, isDryRun, ...rest } = options ?? {};
        const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
        const deleteOptions = {
          ...(Object.keys(preconditions).length > 0 && { preconditions }),
          ...(propagationPolicy && { propagationPolicy }),
          ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
          // In the body: the API server reads no query of a DELETE that has one.
          ...(isDryRun && { dryRun: ['All'] }),
        };
        await remove(lane, objectPathOf(kind, ref), deleteOptions, rest);
      },
      getScale: async (ref, options) => request('GET', objectPathOf(kind, ref, 'scale'), options),
      setReplicas: async (ref, replicas, { resourceVersion, ...options } = {}) => {
        const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
        return patched(ref, { ...metadata, spec: { replicas } }, MERGE_PATCH, { ...options, subresource: 'scale' });
      },
    };
  }
}

function objectPathOf(kind: ResourceKind, ref: ObjectRef, subresource?: string): string {
  const path = `${collectionPathOf(kind, namespaceOf(kind, ref))}/${segment(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Throws RangeError where a namespaced object has none: the request would go to another path. */
function namespaceOf(kind: ResourceKind, { namespace, name }: ObjectRef): string | undefined {
  if (kind.isNamespaced && namespace === undefined) throw new RangeError(`${kind.kind} ${name} has no namespace`);
  return namespace;
}

function typed<T extends object>(kind: ResourceKind, object: T): T {
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object };
}
