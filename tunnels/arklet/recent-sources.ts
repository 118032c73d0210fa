/** 4 MiB, and twice as many as a flood of 10,000 a second fills within an interval of heartbeats. */
const SLOTS_BITS = 20;
const SECONDS_BITS = 32 - SLOTS_BITS;
const SECONDS_MASK = 2 ** SECONDS_BITS - 1;
const MIN_AGE_S = 4;
const MAX_AGE_S = 30;

/**
 * Which sources were heard not long ago, in a table of fixed size. It keeps a hash of each, so it may forget a source
 * and, rarely, take one for another.
 */
export class RecentSources {
  readonly #seed: number;
  /** At the low bits of a source's hash: its high bits and the second in which it was heard. 0 = nobody. */
  readonly #slots = new Uint32Array(2 ** SLOTS_BITS);

  /** `seed`: any 32 bits that nobody else knows, or somebody could make sources push out others. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  /** Whether the source was heard 4 to 30 s ago, as a base that repeats its heartbeat is. Notes that it is heard now. */
  isReturning(source: string, now: number): boolean {
    const hash = hashOf(source, this.#seed);
    const slot = hash & (2 ** SLOTS_BITS - 1);
    const tag = (hash >>> SLOTS_BITS) << SECONDS_BITS;
    const second = Math.floor(now / 1000) & SECONDS_MASK;
    const found = this.#slots[slot] ?? 0;
    const isSame = found !== 0 && ((found ^ tag) & ~SECONDS_MASK) === 0;
    const age = (second - (found & SECONDS_MASK)) & SECONDS_MASK;
    // What is repeated faster keeps the time of its first message.
    if (!isSame || age >= MIN_AGE_S) this.#slots[slot] = tag | second;
    return isSame && age >= MIN_AGE_S && age <= MAX_AGE_S;
  }
}

/** FNV-1a, and a mix, since that alone leaves names close together that differ at the end. */
function hashOf(text: string, seed: number): number {
  let hash = seed ^ 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}
