import type { CachedObject } from './informer-types.ts';

type Version = Pick<CachedObject, 'uid' | 'resourceVersion'>;

/**
 * Writes of this process whose events the watch has yet to bring. Such an event says nothing new, so its line need not
 * be parsed. For a Pod of 2.9 kB the head of the line takes 1.5 µs, and the whole line 30 µs (2026-11-28): two or three
 * lines of each Pod, 2 to 3 % of what the controller takes for it.
 */
export class OwnWrites {
  /** Whose answers the cache has taken: UIDs by resource version. Emptied by the events, and by each list. */
  readonly #uids = new Map<string, string>();
  /** UIDs of objects that are deleted at once. Emptied by their next events, by failures, and by each list. */
  readonly #deletions = new Set<string>();

  add({ uid, resourceVersion }: Version): void {
    this.#uids.set(resourceVersion, uid);
  }

  /** The event of this version had to be parsed all the same. */
  forget(resourceVersion: string): void {
    this.#uids.delete(resourceVersion);
  }

  addDeletion(uid: string): void {
    this.#deletions.add(uid);
  }

  /** It has failed, or its last event has come. */
  endDeletion(uid: string): void {
    this.#deletions.delete(uid);
  }

  /**
   * Whether the event that modified an object is that of one of these writes, which is then forgotten. Before the API
   * server deletes an object at once it ends its grace period. The event of another client may be taken for that: the
   * next event shows what it has changed.
   */
  take({ uid, resourceVersion }: Version): boolean {
    if (this.#uids.get(resourceVersion) === uid) return this.#uids.delete(resourceVersion);
    return this.#deletions.delete(uid);
  }

  clear(): void {
    this.#uids.clear();
    this.#deletions.clear();
  }
}
