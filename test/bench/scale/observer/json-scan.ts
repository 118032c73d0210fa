const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN = { object: 0x7b, array: 0x5b } as const;
const CLOSE = { object: 0x7d, array: 0x5d } as const;
/** The last of the white space of JSON. */
const SPACE = 0x20;

/** Takes exactly the value at the cursor of `scan`. */
export type Take<T> = (scan: JsonScan, into: T) => void;

/** The members of an object that are of interest; the others are skipped. */
export type Members<T> = readonly (readonly [name: Buffer, take: Take<T>])[];

export function membersOf<T>(takes: Readonly<Record<string, Take<T>>>): Members<T> {
  return Object.entries(takes).map(([name, take]) => [Buffer.from(name), take]);
}

/**
 * A cursor over the bytes of one valid JSON text, without escapes in the names that are wanted: takes what is asked for and makes no object of the rest. A large
 * object of which five values are wanted costs a pass over its bytes and no garbage. Each method takes exactly one
 * value, also one that is not of the kind that it is for.
 */
export class JsonScan {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  object<T>(members: Members<T>, into: T): void {
    if (!this.#enter(OPEN.object)) {
      this.skip();
      return;
    }
    while (this.#hasNext(CLOSE.object)) {
      const take = this.#member(members);
      this.#gap();
      this.#at += 1; // the colon
      if (take === undefined) this.skip();
      else take(this, into);
    }
  }

  array(take: (scan: JsonScan) => void): void {
    if (!this.#enter(OPEN.array)) {
      this.skip();
      return;
    }
    while (this.#hasNext(CLOSE.array)) take(this);
  }

  /** undefined: it is no string. */
  text(): string | undefined {
    this.#gap();
    const start = this.#at;
    this.skip();
    if (this.#bytes[start] !== QUOTE) return undefined;
    const inner = this.#bytes.subarray(start + 1, this.#at - 1);
    if (inner.includes(BACKSLASH)) return JSON.parse(this.#bytes.toString('utf8', start, this.#at));
    return inner.toString('utf8');
  }

  /** undefined: it is no number. */
  number(): number | undefined {
    this.#gap();
    const start = this.#at;
    this.skip();
    const value = Number(this.#bytes.toString('latin1', start, this.#at));
    return Number.isNaN(value) ? undefined : value;
  }

  skip(): void {
    this.#gap();
    const first = this.#bytes[this.#at];
    if (first === QUOTE) this.#skipString();
    else if (first === OPEN.object || first === OPEN.array) this.#skipNested();
    else this.#skipLiteral();
  }

  #skipNested(): void {
    const bytes = this.#bytes;
    let depth = 0;
    do {
      const byte = bytes[this.#at];
      if (byte === QUOTE) {
        this.#skipString();
        continue;
      }
      if (byte === OPEN.object || byte === OPEN.array) depth += 1;
      else if (byte === CLOSE.object || byte === CLOSE.array) depth -= 1;
      this.#at += 1;
    } while (depth > 0 && this.#at < bytes.length);
  }

  /** A number, true, false or null. */
  #skipLiteral(): void {
    const bytes = this.#bytes;
    for (; this.#at < bytes.length; this.#at++) {
      const byte = bytes[this.#at] ?? 0;
      if (byte === COMMA || byte === CLOSE.object || byte === CLOSE.array || byte <= SPACE) return;
    }
  }

  #skipString(): void {
    const bytes = this.#bytes;
    let at = this.#at + 1;
    for (; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at += 1;
    this.#at = at + 1;
  }

  #enter(open: number): boolean {
    this.#gap();
    if (this.#bytes[this.#at] !== open) return false;
    this.#at += 1;
    return true;
  }

  /** False behind the last member or item, with the cursor behind the bracket. */
  #hasNext(close: number): boolean {
    this.#gap();
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new Error('the text ends inside of an object or array');
    if (byte === COMMA || byte === close) this.#at += 1;
    if (byte === COMMA) this.#gap();
    return byte !== close;
  }

  #member<T>(members: Members<T>): Take<T> | undefined {
    const start = this.#at;
    this.#skipString();
    const length = this.#at - start - 2;
    for (const [name, take] of members) {
      if (name.length === length && this.#isAt(start + 1, name)) return take;
    }
    return undefined;
  }

  #isAt(start: number, wanted: Buffer): boolean {
    for (let index = 0; index < wanted.length; index++) {
      if (this.#bytes[start + index] !== wanted[index]) return false;
    }
    return true;
  }

  #gap(): void {
    const bytes = this.#bytes;
    while ((bytes[this.#at] ?? COLON) <= SPACE) this.#at += 1;
  }
}
