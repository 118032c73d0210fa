import { type CachedObject, objectKey } from './informer-types.ts';

/** Which objects have a value; kept with each change, so that no lookup walks the cache. */
export class ObjectIndex<T extends CachedObject> {
  readonly #valueOf: (object: T) => string | undefined;
  /** Emptied value by value as the last object of each goes. */
  readonly #byValue = new Map<string, Map<string, T>>();

  /** Objects with the value undefined are not in the index. */
  constructor(indexer: (object: T) => string | undefined) {
    this.#valueOf = indexer;
  }

  get(value: string): readonly T[] {
    const objects = this.#byValue.get(value);
    return objects ? [...objects.values()] : [];
  }

  /** `object` takes the place of `old`, which has the same key. */
  change(old: T | undefined, object: T | undefined): void {
    const oldValue = old && this.#valueOf(old);
    const value = object && this.#valueOf(object);
    if (old && oldValue !== undefined && oldValue !== value) this.#remove(oldValue, objectKey(old));
    if (object && value !== undefined) this.#add(value, object);
  }

  #add(value: string, object: T): void {
    const objects = this.#byValue.get(value);
    if (objects) objects.set(objectKey(object), object);
    else this.#byValue.set(value, new Map([[objectKey(object), object]]));
  }

  #remove(value: string, key: string): void {
    const objects = this.#byValue.get(value);
    objects?.delete(key);
    if (objects?.size === 0) this.#byValue.delete(value);
  }
}
