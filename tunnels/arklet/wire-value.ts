/** A value on the wire that does not fit. Thrown only inside this folder; `parse` turns it into an InvalidMessage. */
export class WireFault extends Error {}

/**
 * One foreign value and the path to it. Reads own properties only, so nothing of a prototype is ever taken
 * for a field; `null` counts as absent, as Java writes it.
 */
export class WireValue {
  readonly path: string;
  readonly #value: unknown;

  constructor(value: unknown, path = '') {
    this.#value = value ?? undefined;
    this.path = path;
  }

  get isAbsent(): boolean {
    return this.#value === undefined;
  }

  get isList(): boolean {
    return Array.isArray(this.#value);
  }

  fault(problem: string): WireFault {
    return new WireFault(`${this.path || 'payload'} ${problem}`);
  }

  /** The field of an object; absent where the object is absent or has none. */
  field(name: string): WireValue {
    const path = this.path ? `${this.path}.${name}` : name;
    if (this.isAbsent) return new WireValue(undefined, path);
    const owner = this.#object();
    return new WireValue(Object.hasOwn(owner, name) ? owner[name] : undefined, path);
  }

  /** All values of an object used as a map; none where it is absent. */
  values(maxLength: number): WireValue[] {
    if (this.isAbsent) return [];
    const values = Object.values(this.#object());
    if (values.length > maxLength) throw this.fault(`has ${values.length} entries, ${maxLength} are allowed`);
    return values.map((value, index) => new WireValue(value, `${this.path}{${index}}`));
  }

  list(maxLength: number): WireValue[] {
    const value = this.#value;
    if (!Array.isArray(value)) throw this.fault(this.isAbsent ? 'is missing' : 'is not a list');
    if (value.length > maxLength) throw this.fault(`has ${value.length} entries, ${maxLength} are allowed`);
    return value.map((entry, index) => new WireValue(entry, `${this.path}[${index}]`));
  }

  /** Text of 1 to `maxLength` characters. */
  text(maxLength: number): string {
    const text = this.optionalText(maxLength);
    if (text === undefined) throw this.fault('is missing');
    if (text === '') throw this.fault('is empty');
    return text;
  }

  /**
   * Text of 0 to `maxLength` characters. A lone surrogate becomes U+FFFD, as the API server stores it: otherwise what
   * was written would differ from what is read back, and would be written again and again.
   */
  optionalText(maxLength: number): string | undefined {
    const value = this.#value;
    if (value === undefined) return undefined;
    if (typeof value !== 'string') throw this.fault('is not a string');
    if (value.length > maxLength) throw this.fault(`has ${value.length} characters, ${maxLength} are allowed`);
    return value.toWellFormed();
  }

  /** A finite number; some agents send digits as text. */
  optionalNumber(): number | undefined {
    const value = this.#value;
    if (value === undefined) return undefined;
    const number = typeof value === 'string' && DIGITS.test(value) ? Number(value) : value;
    if (typeof number !== 'number' || !Number.isFinite(number)) throw this.fault('is not a number');
    return number;
  }

  #object(): Record<string, unknown> {
    const value = this.#value;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw this.fault('is not an object');
    return value as Record<string, unknown>;
  }
}

/** JSON's own number, at most 40 characters. */
const DIGITS = /^(?=.{1,40}$)-?\d+(\.\d+)?([eE][-+]?\d+)?$/;
