import type { CachedObject } from './informer-types.ts';

type Version = Pick<CachedObject, 'uid' | 'resourceVersion'>;

/**
 * Writes of this process whose answers the cache has taken, and whose events the watch has yet to bring. Such an event
 * says nothing new, so its line need not be parsed.
 */
export class OwnWrites {
  /** UIDs by resource version. Emptied by the events, and by each list. */
  readonly #uids = new Map<string, string>();

  add({ uid, resourceVersion }: Version): void {
    this.#uids.set(resourceVersion, uid);
  }

  /** Whether the event is that of one of these writes, which is then forgotten. */
  take({ uid, resourceVersion }: Version): boolean {
    if (this.#uids.get(resourceVersion) !== uid) return false;
    this.#uids.delete(resourceVersion);
    return true;
  }

  clear(): void {
    this.#uids.clear();
  }
}
