/** A map that forgets the entry unused for longest when it is full. */
export class LruMap<V> {
  readonly #capacity: number;
  /** Oldest use first. */
  readonly #entries = new Map<string, V>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** The value of `key`, if it is there. Does not count as a use. */
  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  /** Replaces the value of `key`, which now counts as used last. */
  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.getOrCreate(key, () => value);
  }

  /** The value of `key`, made when it is not there; either way it now counts as used last. */
  getOrCreate(key: string, create: () => V): V {
    const value = this.#entries.get(key) ?? create();
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#capacity) {
      const oldest = this.#entries.keys().next();
      if (!oldest.done) this.#entries.delete(oldest.value);
    }
    return value;
  }
}
