import type { Clock } from '../clock.ts';
import { type CachedObject, type InformerHandler, objectKey } from './informer-types.ts';
import { ObjectIndex } from './object-index.ts';
import { compareResourceVersions } from './resource-version.ts';
import { WorkSlice } from './work-slice.ts';

export interface InformerStoreOptions<T extends CachedObject> {
  readonly indexers: Readonly<Record<string, (object: T) => string | undefined>>;
  readonly clock: Clock;
  /** Told what a handler has thrown. */
  readonly onHandlerError: (error: unknown) => void;
  readonly onSizeChange: (size: number) => void;
}

/** The cache of an informer, its indexes, and the order of versions: an older one never replaces a newer one. */
export class InformerStore<T extends CachedObject> {
  readonly #options: InformerStoreOptions<T>;
  readonly #objects = new Map<string, T>();
  readonly #indexes: ReadonlyMap<string, ObjectIndex<T>>;
  readonly #handlers: InformerHandler<T>[] = [];

  constructor(options: InformerStoreOptions<T>) {
    this.#options = options;
    this.#indexes = new Map(
      Object.entries(options.indexers).map(([name, indexer]) => [name, new ObjectIndex(indexer)]),
    );
  }

  addHandler(handler: InformerHandler<T>): void {
    this.#handlers.push(handler);
    for (const object of this.#objects.values()) this.#guard(() => handler.onAdd?.(object));
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): readonly T[] {
    return [...this.#objects.values()];
  }

  byIndex(index: string, value: string): readonly T[] {
    const found = this.#indexes.get(index);
    if (!found) throw new RangeError(`no such index: ${index}`);
    return found.get(value);
  }

  /** Takes an added or modified object. */
  put(object: T): void {
    const old = this.#objects.get(objectKey(object));
    if (old && compareResourceVersions(object.resourceVersion, old.resourceVersion) <= 0) return;
    this.#set(old, object);
  }

  /** Takes a deleted object in its last state; a deletion older than what is cached is one of an earlier life. */
  remove(object: T): void {
    const old = this.#objects.get(objectKey(object));
    if (!old || compareResourceVersions(object.resourceVersion, old.resourceVersion) < 0) return;
    this.#delete(old, old.uid === object.uid ? object : old);
  }

  /** Takes the answer to a write: only a newer version of the incarnation that is cached. */
  upsert(object: T): void {
    if (this.#objects.get(objectKey(object))?.uid === object.uid) this.put(object);
  }

  /**
   * Makes the cache equal to a list: adds and updates first, deletions last. Objects that were written after the
   * list stay as they are, unless the list is of a cluster that was `rolledBack` to an older state.
   * Gives way to other work in between; nothing else may be put or removed until it resolves, but upserts may come.
   */
  async replace(objects: ReadonlyMap<string, T>, rolledBack: boolean): Promise<void> {
    const slice = new WorkSlice(this.#options.clock);
    for (const object of objects.values()) {
      if (rolledBack) this.#force(object);
      else this.put(object);
      if (slice.isOver()) await slice.yield();
    }
    for (const [key, object] of this.#objects) {
      if (!objects.has(key)) this.#delete(object, object);
      if (slice.isOver()) await slice.yield();
    }
  }

  progressed(resourceVersion: string): void {
    for (const handler of this.#handlers) this.#guard(() => handler.onProgress?.(resourceVersion));
  }

  #force(object: T): void {
    const old = this.#objects.get(objectKey(object));
    if (old?.resourceVersion !== object.resourceVersion || old.uid !== object.uid) this.#set(old, object);
  }

  #set(old: T | undefined, object: T): void {
    if (old && old.uid !== object.uid) {
      this.#delete(old, old);
      this.#set(undefined, object);
      return;
    }
    this.#objects.set(objectKey(object), object);
    for (const index of this.#indexes.values()) index.change(old, object);
    if (old) {
      for (const handler of this.#handlers) this.#guard(() => handler.onUpdate?.(old, object));
    } else {
      this.#options.onSizeChange(this.#objects.size);
      for (const handler of this.#handlers) this.#guard(() => handler.onAdd?.(object));
    }
  }

  #delete(old: T, last: T): void {
    this.#objects.delete(objectKey(old));
    for (const index of this.#indexes.values()) index.change(old, undefined);
    this.#options.onSizeChange(this.#objects.size);
    for (const handler of this.#handlers) this.#guard(() => handler.onDelete?.(last));
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#options.onHandlerError(error);
    }
  }
}
