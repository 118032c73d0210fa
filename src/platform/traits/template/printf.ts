import { type Bytes, encodeRune, runeAt } from './bytes.ts';
import { type Budget, refused } from './fault.ts';
import { noFlags, Printer } from './format.ts';
import { Int, typeOf, type Value } from './value.ts';

/** Values in the places of the verbs of a format: `fmt.Sprintf`. */
export function sprintf(budget: Budget, format: Bytes, values: readonly Value[]): Bytes {
  return new Formatter(budget, format, values).run();
}

/** Most digits of a width or a precision count up to this. */
const MAX_NUMBER = 1_000_000;
const FLAGS: Readonly<Record<string, 'sharp' | 'zero' | 'plus' | 'minus' | 'space'>> = {
  '#': 'sharp',
  '0': 'zero',
  '+': 'plus',
  '-': 'minus',
  ' ': 'space',
};

/** Reads a format as `doPrintf` of Go's `fmt` does, wrong ones included. */
class Formatter {
  readonly #format: Bytes;
  readonly #values: readonly Value[];
  readonly #printer: Printer;
  #at = 0;
  /** Index of the next value. */
  #next = 0;
  /** Whether a verb named the index of its value. */
  #isReordered = false;
  #isGoodIndex = true;
  #isAfterIndex = false;

  constructor(budget: Budget, format: Bytes, values: readonly Value[]) {
    this.#format = format;
    this.#values = values;
    this.#printer = new Printer(budget);
  }

  run(): Bytes {
    while (this.#at < this.#format.length) {
      const percent = this.#format.indexOf('%', this.#at);
      const end = percent < 0 ? this.#format.length : percent;
      this.#printer.write(this.#format.slice(this.#at, end));
      this.#at = end + 1;
      if (percent >= 0) this.#directive();
    }
    if (!this.#isReordered && this.#next < this.#values.length) this.#extra();
    return this.#printer.text;
  }

  #directive(): void {
    this.#isGoodIndex = true;
    this.#isAfterIndex = false;
    this.#printer.flags = noFlags();
    this.#readFlags();
    if (this.#readSimpleVerb()) return;
    this.#readIndex();
    this.#readWidth();
    this.#readPrecision();
    if (!this.#isAfterIndex) this.#readIndex();
    if (this.#at >= this.#format.length) this.#printer.write('%!(NOVERB)');
    else this.#readVerb();
  }

  #readFlags(): void {
    for (;;) {
      const flag = FLAGS[this.#format[this.#at] ?? ''];
      if (flag === undefined) return;
      this.#printer.flags[flag] = true;
      this.#at++;
    }
  }

  #readSimpleVerb(): boolean {
    const verb = this.#format[this.#at] ?? '';
    if (!/^[a-z]$/.test(verb) || this.#next >= this.#values.length) return false;
    this.#at++;
    this.#print(verb);
    return true;
  }

  #print(verb: Bytes): void {
    const { flags } = this.#printer;
    if (verb === 'w') throw refused('the verb %w');
    if (verb === 'v') {
      flags.isGoSyntax = flags.sharp;
      flags.sharp = false;
      flags.plus = false;
    }
    this.#printer.print(this.#values[this.#next++] ?? null, verb);
  }

  #readVerb(): void {
    const { code, width } = runeAt(this.#format, this.#at);
    const verb = encodeRune(code);
    this.#at += width;
    if (verb === '%') this.#printer.write('%');
    else if (!this.#isGoodIndex) this.#printer.write(`%!${verb}(BADINDEX)`);
    else if (this.#next >= this.#values.length) this.#printer.write(`%!${verb}(MISSING)`);
    else this.#print(verb);
  }

  /** The index of a value, such as `[1]`. */
  #readIndex(): void {
    this.#isAfterIndex = false;
    if (this.#format[this.#at] !== '[') return;
    this.#isReordered = true;
    const end = this.#format.length - this.#at < 3 ? -1 : this.#format.indexOf(']', this.#at);
    const digits = end < 0 ? '' : this.#format.slice(this.#at + 1, end);
    const isNumber = /^[0-9]+$/.test(digits) && isWithinBounds(digits);
    const index = Number(digits) - 1;
    this.#at = end < 0 ? this.#at + 1 : end + 1;
    if (isNumber && index >= 0 && index < this.#values.length) {
      this.#next = index;
      this.#isAfterIndex = true;
      return;
    }
    this.#isGoodIndex = false;
    this.#isAfterIndex = isNumber;
  }

  #readWidth(): void {
    const { flags } = this.#printer;
    if (this.#format[this.#at] === '*') {
      this.#at++;
      const width = this.#integerOfValue();
      if (width === undefined) this.#printer.write('%!(BADWIDTH)');
      flags.width = width === undefined ? undefined : Math.abs(width);
      if (width !== undefined && width < 0) flags.minus = true;
      this.#isAfterIndex = false;
      return;
    }
    flags.width = this.#readNumber();
    if (this.#isAfterIndex && flags.width !== undefined) this.#isGoodIndex = false;
  }

  #readPrecision(): void {
    const { flags } = this.#printer;
    if (this.#format[this.#at] !== '.' || this.#at + 1 >= this.#format.length) return;
    this.#at++;
    if (this.#isAfterIndex) this.#isGoodIndex = false;
    this.#readIndex();
    if (this.#format[this.#at] !== '*') {
      flags.precision = this.#readNumber() ?? 0;
      return;
    }
    this.#at++;
    const precision = this.#integerOfValue();
    flags.precision = precision !== undefined && precision >= 0 ? precision : undefined;
    if (flags.precision === undefined) this.#printer.write('%!(BADPREC)');
    this.#isAfterIndex = false;
  }

  /** Digits at the place. A number that is too large takes the rest of the format with it, as in Go. */
  #readNumber(): number | undefined {
    const pattern = /[0-9]+/y;
    pattern.lastIndex = this.#at;
    const digits = pattern.exec(this.#format)?.[0];
    if (digits === undefined) return undefined;
    const isGood = isWithinBounds(digits);
    this.#at = isGood ? this.#at + digits.length : this.#format.length;
    return isGood ? Number(digits) : undefined;
  }

  /** A width or a precision that is a value. */
  #integerOfValue(): number | undefined {
    const value = this.#values[this.#next];
    if (this.#next >= this.#values.length) return undefined;
    this.#next++;
    if (!(value instanceof Int)) return undefined;
    const isBeyond = value.value > BigInt(MAX_NUMBER) || value.value < -BigInt(MAX_NUMBER);
    return isBeyond ? undefined : Number(value.value);
  }

  #extra(): void {
    this.#printer.flags = noFlags();
    this.#printer.write('%!(EXTRA ');
    for (const [index, value] of this.#values.slice(this.#next).entries()) {
      if (index > 0) this.#printer.write(', ');
      this.#printer.write(typeOf(value));
      if (value === null) continue;
      this.#printer.write('=');
      this.#printer.print(value, 'v');
    }
    this.#printer.write(')');
  }
}

/** Whether Go reads all digits of a number: it stops as soon as those in front are too large. */
function isWithinBounds(digits: string): boolean {
  return Number(digits.slice(0, -1) || '0') <= MAX_NUMBER;
}
