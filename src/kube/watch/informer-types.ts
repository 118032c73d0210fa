import type { KubeObject } from '../objects.ts';

/** The least that a cached object keeps of its metadata. */
export interface CachedObject {
  /** '' for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** The metadata of an object as the API server sends it. */
export function metaOf({ metadata }: KubeObject): CachedObject {
  const { namespace = '', name, uid = '', resourceVersion = '' } = metadata;
  return { namespace, name, uid, resourceVersion };
}

/** `namespace/name`, or `name` alone for cluster-scoped objects. */
export function objectKey(object: { readonly namespace: string; readonly name: string }): string {
  return object.namespace === '' ? object.name : `${object.namespace}/${object.name}`;
}

/**
 * Called in the order of events, and inside the reading of the stream, so it must be cheap: queue a key and return.
 * An update never joins two incarnations of a name: that is `onDelete(old)` and then `onAdd(new)`.
 * What a handler throws is logged and counted; the next event comes all the same.
 */
export interface InformerHandler<T> {
  onAdd?(object: T): void;
  onUpdate?(old: T, object: T): void;
  /**
   * `last` is the last cached state, with the version of the deletion where its event has come. `isForgotten`: nobody
   * deleted it, the cluster went back to a state in which it was not there.
   */
  onDelete?(last: T, isForgotten: boolean): void;
  /** Everything that happened up to this version was handed to all handlers. Called after each event of the watch. */
  onProgress?(resourceVersion: string): void;
}

/** A local copy of one kind of object, kept current by a watch. */
export interface Informer<T extends CachedObject> {
  /** The objects of the cache are handed to a late handler at once, as adds. */
  addHandler(handler: InformerHandler<T>): void;
  get(key: string): T | undefined;
  list(): readonly T[];
  byIndex(index: string, value: string): readonly T[];
  /** Whether the cache has been whole once; stays true while a later watch is broken. */
  hasSynced(): boolean;
  /** Resolves with true once the cache is whole and handlers have seen it, with false on abort. */
  whenSynced(signal?: AbortSignal): Promise<boolean>;
  /** Age of the last sign of life of the watch; Infinity before the first one. */
  lastEventAgeMs(): number;
  /**
   * Read your writes: takes the answer to a write of this process. Stored only over an older version of the same
   * incarnation; the watch's own event for it is then no second update.
   */
  upsert(raw: KubeObject): void;
  /**
   * This process is about to delete the object at once (grace period 0), whatever is left of a grace period. The event
   * that the grace period was shortened is then no update. Not for an object with finalizers, which stays. Returns what
   * to call when the deletion has failed.
   */
  expectDeletion(object: Pick<T, 'uid'>): () => void;
  /**
   * Lists everything again, and believes the list whatever its versions say: another request has shown that the cluster
   * went back to an older state, as after a restore of etcd. The watch may not notice for minutes.
   */
  wasRolledBack(): void;
}

/** Each watch brings a bookmark every minute: a replica that hears nothing for two and a half is cut off. */
const STALE_AFTER_MS = 150_000;

/** Whether others may act on what a cache says. */
export function isWatchAlive(informer: Pick<Informer<CachedObject>, 'lastEventAgeMs'>): boolean {
  return informer.lastEventAgeMs() < STALE_AFTER_MS;
}
