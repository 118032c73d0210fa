import { type Bytes, encodeRune, isAscii, MAX_RUNE, REPLACEMENT, runeCountOf, runesOf } from './bytes.ts';
import { type Budget, Halt, refused, Writer } from './fault.ts';
import { type FloatVerb, formatFloat } from './float.ts';
import { canBackquote, quoted } from './quote.ts';
import { Dict, Int, List, sortedEntriesOf, typeOf, type Value } from './value.ts';

/** Flags, width and precision of one verb. */
export interface Flags {
  width: number | undefined;
  precision: number | undefined;
  minus: boolean;
  plus: boolean;
  sharp: boolean;
  space: boolean;
  zero: boolean;
  /** `%#v`. */
  isGoSyntax: boolean;
}

export function noFlags(): Flags {
  return {
    width: undefined,
    precision: undefined,
    minus: false,
    plus: false,
    sharp: false,
    space: false,
    zero: false,
    isGoSyntax: false,
  };
}

/** Text of a value, as `%v` writes it. */
export function textOfValue(budget: Budget, value: Value): Bytes {
  if (typeof value === 'string') return value;
  const printer = new Printer(budget);
  printer.print(value, 'v');
  return printer.text;
}

/** Text of values, with a blank between two that are no strings: `fmt.Sprint`. */
export function sprint(budget: Budget, values: readonly Value[]): Bytes {
  const printer = new Printer(budget);
  for (const [index, value] of values.entries()) {
    if (index > 0 && typeof value !== 'string' && typeof values[index - 1] !== 'string') printer.write(' ');
    printer.print(value, 'v');
  }
  return printer.text;
}

/** Text of values, with blanks between them and a line end: `fmt.Sprintln`. */
export function sprintln(budget: Budget, values: readonly Value[]): Bytes {
  const printer = new Printer(budget);
  for (const [index, value] of values.entries()) {
    if (index > 0) printer.write(' ');
    printer.print(value, 'v');
  }
  printer.write('\n');
  return printer.text;
}

const RADIXES: ReadonlyMap<string, 2 | 8 | 10 | 16> = new Map<string, 2 | 8 | 10 | 16>([
  ['v', 10],
  ['d', 10],
  ['b', 2],
  ['o', 8],
  ['O', 8],
  ['x', 16],
  ['X', 16],
]);
const FLOAT_VERBS: ReadonlyMap<string, [FloatVerb, number]> = new Map<string, [FloatVerb, number]>([
  ['v', ['g', -1]],
  ['g', ['g', -1]],
  ['G', ['G', -1]],
  ['f', ['f', 6]],
  ['F', ['f', 6]],
  ['e', ['e', 6]],
  ['E', ['E', 6]],
]);
/** Most digits of a float, of which more than 1,100 are zero anyway. */
const MAX_DIGITS = 2_000;

/** Writes values as Go's `fmt` does. */
export class Printer {
  flags: Flags = noFlags();
  readonly #out: Writer;

  constructor(budget: Budget) {
    this.#out = new Writer(budget);
  }

  get text(): Bytes {
    return this.#out.text;
  }

  write(piece: Bytes): void {
    this.#out.write(piece);
  }

  /** `verb`: one character. */
  print(value: Value, verb: Bytes): void {
    if (value === null) this.#nil(verb);
    else if (verb === 'T') this.#string(typeOf(value), 's');
    else if (verb === 'p') this.#pointer(value);
    else this.#value(value, verb, 0);
  }

  #nil(verb: Bytes): void {
    if (verb === 'v' || verb === 'T') this.#pad('<nil>');
    else this.#badVerb(null, verb);
  }

  #pointer(value: Value): void {
    if (value instanceof List || value instanceof Dict) throw refused('%p writes an address of memory');
    this.#badVerb(value, 'p');
  }

  #value(value: Value, verb: Bytes, depth: number): void {
    this.#out.budget.checkDepth(depth);
    this.#out.budget.spend();
    if (value === null) this.write(this.flags.isGoSyntax ? 'interface {}(nil)' : '<nil>');
    else if (typeof value === 'boolean') this.#boolean(value, verb);
    else if (typeof value === 'number') this.#float(value, verb);
    else if (typeof value === 'string') this.#string(value, verb);
    else if (value instanceof Int) this.#integer(value, verb);
    else if (value instanceof List) this.#list(value, verb, depth);
    else this.#dict(value, verb, depth);
  }

  #list(list: List, verb: Bytes, depth: number): void {
    const { isGoSyntax } = this.flags;
    this.write(isGoSyntax ? `${typeOf(list)}{` : '[');
    for (const [index, item] of list.items.entries()) {
      if (index > 0) this.write(isGoSyntax ? ', ' : ' ');
      this.#value(item, verb, depth + 1);
    }
    this.write(isGoSyntax ? '}' : ']');
  }

  #dict(dict: Dict, verb: Bytes, depth: number): void {
    const { isGoSyntax } = this.flags;
    this.write(isGoSyntax ? `${typeOf(dict)}{` : 'map[');
    for (const [index, [key, item]] of sortedEntriesOf(this.#out.budget, dict).entries()) {
      if (index > 0) this.write(isGoSyntax ? ', ' : ' ');
      this.#string(key, verb);
      this.write(':');
      this.#value(item, verb, depth + 1);
    }
    this.write(isGoSyntax ? '}' : ']');
  }

  #badVerb(value: Value, verb: Bytes): void {
    this.write(`%!${verb}(`);
    if (value === null) {
      this.write('<nil>');
    } else {
      this.write(`${typeOf(value)}=`);
      this.#value(value, 'v', 0);
    }
    this.write(')');
  }

  #boolean(value: boolean, verb: Bytes): void {
    if (verb === 't' || verb === 'v') this.#pad(String(value));
    else this.#badVerb(value, verb);
  }

  #string(value: Bytes, verb: Bytes): void {
    if (verb === 's' || (verb === 'v' && !this.flags.isGoSyntax)) this.#pad(this.#truncated(value));
    else if (verb === 'q' || verb === 'v') this.#quoted(value);
    else if (verb === 'x' || verb === 'X') this.#hexBytes(value, verb);
    else this.#badVerb(value, verb);
  }

  #truncated(value: Bytes): Bytes {
    const { precision } = this.flags;
    if (precision === undefined || value.length <= precision) return value;
    if (isAscii(value)) return value.slice(0, precision);
    let [length, count] = [0, 0];
    for (const { width } of runesOf(value)) {
      if (++count > precision) break;
      length += width;
    }
    return value.slice(0, length);
  }

  #quoted(value: Bytes): void {
    const text = this.#truncated(value);
    if (this.flags.sharp && canBackquote(text)) this.#pad(`\`${text}\``);
    else this.#pad(quoted(this.#out.budget, text, '"', this.flags.plus));
  }

  #hexBytes(value: Bytes, verb: 'x' | 'X'): void {
    const { precision, space, sharp } = this.flags;
    const bytes = precision === undefined ? value : value.slice(0, precision);
    this.#out.budget.checkLength(bytes.length * 2);
    const pairs = [...bytes].map((byte) => hexOf(byte.charCodeAt(0), verb));
    const prefix = sharp ? `0${verb}` : '';
    const text = space ? pairs.map((pair) => prefix + pair).join(' ') : prefix + pairs.join('');
    this.#pad(pairs.length === 0 ? '' : text);
  }

  #integer(value: Int, verb: Bytes): void {
    const radix = RADIXES.get(verb);
    const isUnsigned = value.type === 'uint8';
    if (radix !== undefined) {
      const isHexByte = verb === 'v' && isUnsigned && this.flags.isGoSyntax;
      this.#digits(value.value, verb, isHexByte ? 16 : radix, isHexByte || this.flags.sharp);
      return;
    }
    const code = BigInt.asUintN(64, value.value);
    const character = code > BigInt(MAX_RUNE) ? REPLACEMENT : Number(code);
    if (verb === 'c') this.#pad(encodeRune(character));
    else if (verb === 'q') this.#quotedCharacter(character);
    else if (verb === 'U') throw refused('the verb %U');
    else this.#badVerb(value, verb);
  }

  #quotedCharacter(character: number): void {
    this.#pad(quoted(this.#out.budget, encodeRune(character), "'", this.flags.plus));
  }

  #digits(value: bigint, verb: Bytes, radix: 2 | 8 | 10 | 16, isSharp: boolean): void {
    const { precision, width } = this.flags;
    if (precision === 0 && value === 0n) {
      this.#out.repeat(' ', width ?? 0);
      return;
    }
    const magnitude = (value < 0n ? -value : value).toString(radix);
    const minimum = precision ?? this.#zeroPaddedLength(value < 0n);
    this.#out.budget.checkLength(minimum);
    const digits = (verb === 'X' ? magnitude.toUpperCase() : magnitude).padStart(minimum, '0');
    const prefix = isSharp ? prefixOf(digits, radix, verb) : '';
    this.#pad(this.#signOf(value < 0n) + (verb === 'O' ? '0o' : '') + prefix + digits, false);
  }

  /** The number of digits where zeros fill the width. */
  #zeroPaddedLength(isNegative: boolean): number {
    const { zero, minus, plus, space, width } = this.flags;
    if (!zero || minus || width === undefined) return 0;
    return isNegative || plus || space ? width - 1 : width;
  }

  #signOf(isNegative: boolean): string {
    if (isNegative) return '-';
    if (this.flags.plus) return '+';
    return this.flags.space ? ' ' : '';
  }

  #float(value: number, verb: Bytes): void {
    const [format, usual] = FLOAT_VERBS.get(verb) ?? [];
    if (format === undefined || usual === undefined) {
      if (/^[bxX]$/.test(verb)) throw refused(`the verb %${verb} for a float`);
      this.#badVerb(value, verb);
      return;
    }
    const { precision = usual, sharp, zero, minus, width = 0 } = this.flags;
    if (precision > MAX_DIGITS) throw new Halt('Limit', `a float has more than ${MAX_DIGITS} digits`);
    if (sharp) throw refused('the flag # for a float');
    const text = formatFloat(value, format, precision);
    const isNegative = text.startsWith('-');
    const sign = this.#signOf(isNegative);
    const number = isNegative ? text.slice(1) : text;
    // Zeros stand between the sign and the digits.
    if (sign !== '' && zero && !minus && width > sign.length + number.length) {
      this.write(sign);
      this.#out.repeat('0', width - sign.length - number.length);
      this.write(number);
      return;
    }
    this.#pad(sign + number);
  }

  #pad(text: Bytes, isZeroAllowed = true): void {
    const { width = 0, minus, zero } = this.flags;
    const missing = width - runeCountOf(text);
    if (minus) this.write(text);
    this.#out.repeat(isZeroAllowed && zero && !minus ? '0' : ' ', missing);
    if (!minus) this.write(text);
  }
}

function prefixOf(digits: string, radix: 2 | 8 | 10 | 16, verb: Bytes): string {
  if (radix === 2) return '0b';
  if (radix === 8) return digits.startsWith('0') ? '' : '0';
  if (radix === 16) return verb === 'X' ? '0X' : '0x';
  return '';
}

function hexOf(byte: number, verb: 'x' | 'X'): string {
  const pair = byte.toString(16).padStart(2, '0');
  return verb === 'X' ? pair.toUpperCase() : pair;
}
