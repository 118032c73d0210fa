import { isDeepStrictEqual } from 'node:util';
import type { KubeObject, OwnerReference } from '../../src/kube/objects.ts';
import type { JsonPatchOperation, ObjectRef, ResourceClient, Scale } from '../../src/kube/resource.ts';
import { ApiError } from '../../src/kube/transport/api-error.ts';
import type { CachedObject } from '../../src/kube/watch/informer-types.ts';
import { copyOf } from './copy.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeInformer, type WatchEvent } from './fake-informer.ts';

export interface FakeObjectsOptions<C extends CachedObject> {
  readonly project: (raw: KubeObject) => C;
  readonly indexers?: Readonly<Record<string, (object: C) => string | undefined>>;
  /** Around each write; what it throws the caller gets. `isDone`: the write has happened. */
  readonly onWrite: (isDone: boolean) => void;
}

let version = 100;

/** The objects of one kind, as an API server stores them, and caches that learn of them when a test says so. */
export class FakeObjects<T extends KubeObject, C extends CachedObject> {
  readonly #options: FakeObjectsOptions<C>;
  readonly #stored = new Map<string, T>();
  readonly #listeners: ((event: WatchEvent) => void)[] = [];
  /** What was applied last, by name. There is one manager. */
  readonly #applied = new Map<string, unknown>();
  /** Changes each object that is applied, or changed by a JSON patch, as a mutating webhook does. */
  onApply: (object: T, isPatch: boolean) => T = (object) => object;
  informer: FakeInformer<C>;

  constructor(options: FakeObjectsOptions<C>) {
    this.#options = options;
    this.informer = this.newInformer();
  }

  /** As the list of a process that starts. */
  newInformer(): FakeInformer<C> {
    this.informer = new FakeInformer(new FakeClock(), this.#options.project, this.#options.indexers);
    for (const object of this.#stored.values()) this.informer.deliver({ type: 'PUT', object });
    return this.informer;
  }

  /** Besides the informer. */
  addListener(listener: (event: WatchEvent) => void): void {
    this.#listeners.push(listener);
  }

  get all(): T[] {
    return [...this.#stored.values()];
  }

  put(object: T): T {
    const { name, uid = `uid-${name}-${++version}` } = object.metadata;
    const metadata = { ...object.metadata, uid, resourceVersion: String(++version) };
    const stored = { ...copyOf(object), metadata };
    this.#stored.set(name, stored);
    this.#deliver({ type: 'PUT', object: stored });
    return copyOf(stored);
  }

  remove(name: string): void {
    const object = this.#stored.get(name);
    this.#stored.delete(name);
    if (object) this.#deliver({ type: 'DELETED', object });
  }

  #deliver(event: WatchEvent): void {
    this.informer.deliver(event);
    for (const listener of this.#listeners) listener(event);
  }

  /** The calls that a rollout makes; others are missing. */
  client(onDelete: (object: T) => void): ResourceClient<T> {
    const changed = (ref: ObjectRef, change: (object: T) => T): T => {
      const before = this.#get(ref);
      const after = change(copyOf(before));
      return this.#write(() => this.put(after));
    };
    return {
      get: async (ref) => copyOf(this.#get(ref)),
      list: async () => copyOf(this.all),
      create: async (object) => {
        if (this.#stored.has(object.metadata.name)) throw errorOf(409, 'AlreadyExists');
        return this.#write(() => this.put(object));
      },
      update: async (object) =>
        changed(object.metadata, (before) => ({ ...before, ...object, metadata: before.metadata })),
      // Lists are one value.
      apply: async (object) => {
        const { name } = object.metadata;
        const before = this.#stored.get(name);
        const kept = without(before, this.#applied.get(name), object);
        const after = this.onApply(merged(kept, object) as T, false);
        this.#applied.set(name, copyOf(object));
        if (before !== undefined && isDeepStrictEqual(copyOf(after), before)) return copyOf(before);
        return this.#write(() => this.put(after));
      },
      mergePatch: async (ref, patch) =>
        changed(ref, (object) => {
          checkVersion(object, patch.metadata as KubeObject['metadata'] | undefined);
          const { generation } = object.metadata as { readonly generation?: number };
          const isOfSpec = patch.spec !== undefined && generation !== undefined;
          return merged(merged(object, patch), isOfSpec ? { metadata: { generation: generation + 1 } } : {}) as T;
        }),
      strategicPatch: async (ref, patch) =>
        changed(ref, (object) => {
          const metadata = patch.metadata as KubeObject['metadata'];
          checkVersion(object, metadata);
          const ownerReferences = ownersOf(object.metadata.ownerReferences ?? [], metadata.ownerReferences ?? []);
          return { ...object, ...patch, metadata: { ...object.metadata, ownerReferences } };
        }),
      jsonPatch: async (ref, operations) => {
        const before = this.#get(ref);
        const patched = copyOf(before);
        for (const operation of operations) applyOperation(patched, operation);
        const after = this.onApply(patched, true);
        if (isDeepStrictEqual(copyOf(after), before)) return copyOf(before);
        return this.#write(() => this.put(after));
      },
      setReplicas: async (ref, replicas, { resourceVersion } = {}) => {
        const scaled = changed(ref, (object) => {
          checkVersion(object, resourceVersion === undefined ? undefined : { ...object.metadata, resourceVersion });
          return merged(object, { spec: { replicas } }) as T;
        });
        return scaled as KubeObject as Scale;
      },
      delete: async (ref, { uid } = {}) => {
        const object = this.#get(ref);
        if (uid !== undefined && object.metadata.uid !== uid) throw errorOf(409, 'Conflict');
        this.#write(() => onDelete(object));
      },
    } as ResourceClient<T>;
  }

  #get({ name }: ObjectRef): T {
    const object = this.#stored.get(name);
    if (object === undefined) throw errorOf(404, 'NotFound');
    return object;
  }

  #write<R>(act: () => R): R {
    this.#options.onWrite(false);
    const result = act();
    this.#options.onWrite(true);
    return result;
  }
}

function errorOf(status: number, reason: string): ApiError {
  return new ApiError(reason, { status, reason, retryAfterMs: undefined, causes: undefined });
}

function checkVersion({ metadata }: KubeObject, wanted: KubeObject['metadata'] | undefined): void {
  const isOther =
    (wanted?.resourceVersion !== undefined && wanted.resourceVersion !== metadata.resourceVersion) ||
    (wanted?.uid !== undefined && wanted.uid !== metadata.uid);
  if (isOther) throw errorOf(409, 'Conflict');
}

/** `stored` without what was applied before and is not any more. */
function without(stored: unknown, applied: unknown, next: unknown): unknown {
  if (!isRecord(stored) || !isRecord(applied)) return stored;
  const entries = Object.entries(stored).flatMap(([key, value]) => {
    if (!(key in applied)) return [[key, value]];
    if (!isRecord(next) || !(key in next)) return [];
    return [[key, without(value, applied[key], next[key])]];
  });
  return Object.fromEntries(entries);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function merged(before: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = isRecord(before) ? { ...before } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}

/** To replace the version with the one that is there is allowed, and with another one it is a conflict. */
export function applyOperation(object: KubeObject, operation: JsonPatchOperation): void {
  const { op, path } = operation;
  if (path === '/metadata/resourceVersion') {
    checkVersion(object, { ...object.metadata, resourceVersion: String((operation as { value: unknown }).value) });
    return;
  }
  const keys = path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = keys.pop() ?? '';
  let parent = object as unknown as Record<string, unknown>;
  for (const key of keys) parent = parent[key] as Record<string, unknown>;
  if (Array.isArray(parent)) {
    if (!/^\d+$/.test(last) || Number(last) > parent.length) throw errorOf(422, 'Invalid');
    parent.splice(Number(last), op === 'add' ? 0 : 1, ...(op === 'remove' ? [] : [copyOf(operation.value)]));
  } else if (op === 'remove') delete parent[last];
  else parent[last] = copyOf(operation.value);
}

function ownersOf(before: OwnerReference[], patch: (OwnerReference & { $patch?: string })[]): OwnerReference[] {
  const uids = new Set(patch.map(({ uid }) => uid));
  return [...before.filter(({ uid }) => !uids.has(uid)), ...patch.filter(({ $patch }) => $patch !== 'delete')];
}
