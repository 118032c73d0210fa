/** Longer ones are rarely alike. */
const MAX_LENGTH = 256;

/**
 * Keeps one copy of equal texts. Objects that are parsed from JSON each bring copies of their own: a time, a type of a
 * condition, the address of a jar. Thousands of objects that are kept then hold thousands of the same text.
 */
export class TextPool {
  readonly #capacity: number;
  /** Emptied when it is full: what comes again is soon back. */
  readonly #known = new Map<string, string>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** An equal text. */
  share<T extends string | undefined>(text: T): T {
    if (text === undefined || text.length > MAX_LENGTH) return text;
    const known = this.#known.get(text);
    if (known !== undefined) return known as T;
    if (this.#known.size >= this.#capacity) this.#known.clear();
    this.#known.set(text, text);
    return text;
  }

  /** Equal fields. Only the texts directly in it are shared. */
  shareIn<T extends object>(fields: T): T {
    const shared: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(fields))
      shared[key] = typeof value === 'string' ? this.share(value) : value;
    return shared as T;
  }
}
