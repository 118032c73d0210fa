const MAX_STRINGS = 20_000;
/** A longer one is hardly there twice, and would be held for long. */
const MAX_LENGTH = 256;

/**
 * Equal strings as one: `JSON.parse` makes each anew, and what an informer keeps of many objects says the same again
 * and again. Starts over when it is full; that only costs memory.
 */
export class StringPool {
  readonly #strings = new Map<string, string>();

  /** The string itself, or an equal one from before. */
  of<T extends string | undefined>(text: T): T {
    if (text === undefined || text.length > MAX_LENGTH) return text;
    const known = this.#strings.get(text);
    if (known !== undefined) return known as T;
    if (this.#strings.size >= MAX_STRINGS) this.#strings.clear();
    this.#strings.set(text, text);
    return text;
  }
}
