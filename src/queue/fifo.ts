/**
 * Distinct items in order of arrival. Each operation takes the same time however many there are: a new iterator of a
 * Set steps over all that was deleted at its start, so one iterator stays.
 */
export class Fifo<T> {
  readonly #items = new Set<T>();
  #iterator = this.#items.values();

  get size(): number {
    return this.#items.size;
  }

  /** An item that is there keeps its place. */
  add(item: T): void {
    this.#items.add(item);
  }

  delete(item: T): void {
    this.#items.delete(item);
  }

  /** Removes the first item and returns it; undefined when there is none. */
  shift(): T | undefined {
    let next = this.#iterator.next();
    if (next.done) {
      // An iterator that has come to the end sees nothing that is added later.
      this.#iterator = this.#items.values();
      next = this.#iterator.next();
    }
    if (next.done) return undefined;
    this.#items.delete(next.value);
    return next.value;
  }
}
