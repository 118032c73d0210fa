const MIB = 1024 * 1024;
/** The API server takes objects of 3 MiB; an update brings the old one along. */
export const MAX_BODY_BYTES = 7 * MIB;
/**
 * Maximum size of all bodies that are being read. As text they take up to twice as much memory, and one at a time is
 * parsed; the Pod has 512 MiB.
 */
const MAX_BYTES = 64 * MIB;
/** Nearly all bodies have less than 100 KiB. Several sources are needed to keep the API servers out. */
const MAX_BYTES_OF_SOURCE = 16 * MIB;

/** The bytes of all request bodies that are being read, in all and for each source. Pure. */
export class BodyBudget {
  /** Sources with bodies only. */
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;

  /** Takes `bytes` until the function that it returns is called, once; undefined if there is no room. */
  take(source: string, bytes: number): (() => void) | undefined {
    const ofSource = (this.#bytesOf.get(source) ?? 0) + bytes;
    if (ofSource > MAX_BYTES_OF_SOURCE || this.#bytes + bytes > MAX_BYTES) return undefined;
    this.#add(source, bytes);
    return () => this.#add(source, -bytes);
  }

  #add(source: string, bytes: number): void {
    this.#bytes += bytes;
    const ofSource = (this.#bytesOf.get(source) ?? 0) + bytes;
    if (ofSource === 0) this.#bytesOf.delete(source);
    else this.#bytesOf.set(source, ofSource);
  }
}
