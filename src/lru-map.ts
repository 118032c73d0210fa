/** A map that forgets the entry unused for longest when it is full. One entry may be larger than all that it holds. */
export class LruMap<V> {
  readonly #capacity: number;
  readonly #sizeOf: (value: V) => number;
  /** Oldest use first. */
  readonly #entries = new Map<string, V>();
  /** Total size of the entries. */
  #size = 0;

  /** `capacity`: the total of what `sizeOf` gives for each entry; by default the number of entries. */
  constructor(capacity: number, sizeOf: (value: V) => number = () => 1) {
    this.#capacity = capacity;
    this.#sizeOf = sizeOf;
  }

  /** The value of `key`, if it is there. Does not count as a use. */
  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  /** The value of `key`, if it is there, which now counts as used last. */
  use(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  /** Replaces the value of `key`, which now counts as used last. */
  set(key: string, value: V): void {
    this.#delete(key);
    this.#entries.set(key, value);
    this.#size += this.#sizeOf(value);
    for (const oldest of this.#entries.keys()) {
      if (this.#size <= this.#capacity || oldest === key) break;
      this.#delete(oldest);
    }
  }

  /** The value of `key`, made when it is not there; either way it now counts as used last. */
  getOrCreate(key: string, create: () => V): V {
    const known = this.use(key);
    if (known !== undefined) return known;
    const value = create();
    this.set(key, value);
    return value;
  }

  #delete(key: string): void {
    const value = this.#entries.get(key);
    if (value === undefined) return;
    this.#entries.delete(key);
    this.#size -= this.#sizeOf(value);
  }
}
