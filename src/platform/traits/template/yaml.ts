import { type Bytes, encodeRune, isAscii, runeAt, runesOf } from './bytes.ts';
import { type Budget, refused, Writer } from './fault.ts';
import { formatFloat } from './float.ts';
import { jsonNumber } from './json.ts';
import { Dict, Int, List, type Value } from './value.ts';
import { sortedKeysOf } from './yaml-keys.ts';
import { isPlainString } from './yaml-plain.ts';

/**
 * A value as `sigs.k8s.io/yaml` writes it, without the line end: what Helm's `toYaml` gives. Refuses strings that this
 * library does not read or not keep, for which Helm writes nothing at all.
 */
export function toYaml(budget: Budget, value: Value): Bytes {
  const writer = new YamlWriter(budget);
  writer.document(value);
  return writer.text.replace(/\n$/, '');
}

const INDENT = 2;
const WIDTH = 80;
const MAX_SIMPLE_KEY = 128;

interface Context {
  readonly isRoot?: boolean;
  readonly isInMapping?: boolean;
  readonly isSimpleKey?: boolean;
}

type Style = 'plain' | 'single' | 'double' | 'literal';

/** The emitter of the YAML library: its blanks, its folding and its quotes. */
class YamlWriter {
  readonly #out: Writer;
  #column = 0;
  #indent = -1;
  /** Whether the last thing was a blank, or the indentation. */
  #isAfterSpace = true;
  #isIndentation = true;

  constructor(budget: Budget) {
    this.#out = new Writer(budget);
  }

  get text(): Bytes {
    return this.#out.text;
  }

  document(value: Value): void {
    this.#node(value, { isRoot: true }, 0);
    this.#writeIndent();
  }

  #node(value: Value, context: Context, depth: number): void {
    this.#out.budget.checkDepth(depth);
    this.#out.budget.spend();
    if (value instanceof List) this.#list(value, context, depth);
    else if (value instanceof Dict) this.#dict(value, depth);
    else if (typeof value === 'string') this.#string(readable(value), context);
    else this.#indented(() => this.#plain(scalarOf(value), context));
  }

  #list({ items }: List, { isInMapping = false }: Context, depth: number): void {
    if (items.length === 0) {
      this.#indicator('[]', { needsSpace: true });
      return;
    }
    const outer = this.#deeper({ isSame: isInMapping && !this.#isIndentation });
    for (const item of items) {
      this.#writeIndent();
      this.#indicator('-', { needsSpace: true, isIndentation: true });
      this.#node(item, {}, depth + 1);
    }
    this.#indent = outer;
  }

  #dict({ entries }: Dict, depth: number): void {
    if (entries.size === 0) {
      this.#indicator('{}', { needsSpace: true });
      return;
    }
    const outer = this.#deeper({ isSame: false });
    for (const key of sortedKeysOf(this.#out.budget, [...entries.keys()])) {
      const item = entries.get(key) ?? null;
      this.#writeIndent();
      const text = readable(key);
      if (text.length <= MAX_SIMPLE_KEY && !/[\n\r]/.test(text)) {
        this.#string(text, { isInMapping: true, isSimpleKey: true });
        this.#indicator(':');
      } else {
        this.#indicator('?', { needsSpace: true, isIndentation: true });
        this.#string(text, { isInMapping: true });
        this.#writeIndent();
        this.#indicator(':', { needsSpace: true, isIndentation: true });
      }
      this.#node(item, { isInMapping: true }, depth + 1);
    }
    this.#indent = outer;
  }

  /** Goes one level in, and gives the level before. */
  #deeper({ isSame }: { isSame: boolean }): number {
    const outer = this.#indent;
    if (outer < 0) this.#indent = 0;
    else if (!isSame) this.#indent += INDENT;
    return outer;
  }

  #indented(write: () => void): void {
    const outer = this.#indent;
    this.#indent = outer < 0 ? INDENT : outer + INDENT;
    write();
    this.#indent = outer;
  }

  #string(text: Bytes, context: Context): void {
    const style = styleOf(text, context);
    this.#indented(() => {
      if (style === 'plain') this.#plain(text, context);
      else if (style === 'single') this.#single(text, context);
      else if (style === 'double') this.#double(text, context);
      else this.#literal(text);
    });
  }

  #plain(text: Bytes, { isSimpleKey = false }: Context): void {
    if (!this.#isAfterSpace) this.#put(' ');
    this.#folded(text, '', (at) => !isSimpleKey && text[at + 1] !== ' ');
    this.#isAfterSpace = false;
    this.#isIndentation = false;
  }

  #single(text: Bytes, { isSimpleKey = false }: Context): void {
    this.#indicator("'", { needsSpace: true });
    const isWithin = (at: number) => at > 0 && at < text.length - 1;
    this.#folded(text, "'", (at) => !isSimpleKey && isWithin(at) && text[at + 1] !== ' ');
    this.#indicator("'");
    this.#isAfterSpace = false;
    this.#isIndentation = false;
  }

  /** Text with a line end instead of a blank where the line is too long and `mayFold` allows it. Doubles `quote`. */
  #folded(text: Bytes, quote: string, mayFold: (at: number) => boolean): void {
    let isAfterBlank = false;
    for (let at = 0; at < text.length; ) {
      const { width } = runeAt(text, at);
      const isBlank = text[at] === ' ';
      if (isBlank && !isAfterBlank && this.#column > WIDTH && mayFold(at)) {
        this.#writeIndent();
      } else {
        if (text[at] === quote) this.#put(quote);
        this.#put(text.slice(at, at + width));
        if (!isBlank) this.#isIndentation = false;
      }
      isAfterBlank = isBlank;
      at += width;
    }
  }

  #double(text: Bytes, { isSimpleKey = false }: Context): void {
    this.#indicator('"', { needsSpace: true });
    const isMarked = text.startsWith(BYTE_ORDER_MARK);
    let isAfterBlank = false;
    for (let at = 0; at < text.length; ) {
      const { code, width } = runeAt(text, at);
      const isBlank = code === 0x20 && !isMarked;
      const isFold = isBlank && !isSimpleKey && !isAfterBlank && this.#column > WIDTH;
      if (isFold && at > 0 && at < text.length - 1) {
        this.#writeIndent();
        if (text[at + 1] === ' ') this.#put('\\');
      } else if (isMarked || !isPrintable(text, at) || /[\n"\\]/.test(text[at] ?? '')) {
        this.#write(escapeOf(code));
      } else {
        this.#put(text.slice(at, at + width));
      }
      isAfterBlank = isBlank;
      at += width;
    }
    this.#indicator('"');
    this.#isAfterSpace = false;
    this.#isIndentation = false;
  }

  #literal(text: Bytes): void {
    const hint = /^[ \n]/.test(text) ? String(INDENT) : '';
    const chomping = text.endsWith('\n') ? (text === '\n' || text.endsWith('\n\n') ? '+' : '') : '-';
    this.#indicator('|', { needsSpace: true });
    this.#write(hint + chomping);
    this.#putBreak();
    this.#isIndentation = true;
    this.#isAfterSpace = true;
    for (const [index, line] of text.split('\n').entries()) {
      if (index > 0) {
        this.#putBreak();
        this.#isIndentation = true;
      }
      if (line === '') continue;
      this.#writeIndent();
      this.#write(line);
      this.#isIndentation = false;
    }
  }

  #writeIndent(): void {
    const indent = Math.max(this.#indent, 0);
    const isBeyond = this.#column > indent || (this.#column === indent && !this.#isAfterSpace);
    if (!this.#isIndentation || isBeyond) this.#putBreak();
    if (this.#column < indent) this.#write(' '.repeat(indent - this.#column));
    this.#isAfterSpace = true;
    this.#isIndentation = true;
  }

  #indicator(sign: string, { needsSpace = false, isIndentation = false } = {}): void {
    if (needsSpace && !this.#isAfterSpace) this.#put(' ');
    this.#write(sign);
    this.#isAfterSpace = false;
    this.#isIndentation &&= isIndentation;
  }

  /** One character. */
  #put(character: Bytes): void {
    this.#out.write(character);
    this.#column++;
  }

  #write(text: Bytes): void {
    this.#out.write(text);
    for (const _ of runesOf(text)) this.#column++;
  }

  #putBreak(): void {
    this.#out.write('\n');
    this.#column = 0;
  }
}

const BYTE_ORDER_MARK = '\xef\xbb\xbf';

function scalarOf(value: null | boolean | number | Int): string {
  if (value === null) return 'null';
  if (typeof value !== 'number') return String(value instanceof Int ? value.value : value);
  const json = jsonNumber(value);
  const isInteger = /^-?[0-9]+$/.test(json) && value >= -(2 ** 63) && value < 2 ** 64;
  return isInteger ? String(BigInt(json)) : formatFloat(value, 'g', -1);
}

/** Characters that the library does not read, or takes for a line end. */
const UNREADABLE = /\x7f|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]|\xe2\x80[\xa8\xa9]/;

/** The string that the library reads in the JSON of a value. */
function readable(bytes: Bytes): Bytes {
  let text = '';
  if (isAscii(bytes)) text = bytes;
  else for (const { code } of runesOf(bytes)) text += encodeRune(code);
  if (UNREADABLE.test(text)) throw refused('toYaml: a string has a character that YAML does not keep');
  return text;
}

function isPrintable(text: Bytes, at: number): boolean {
  const { code } = runeAt(text, at);
  if (code < 0x80) return code === 0x0a || (code >= 0x20 && code <= 0x7e);
  return code >= 0xa0 && code < 0x10000 && code !== 0xfeff && code < 0xfffe;
}

interface Analysis {
  readonly isPlainAllowed: boolean;
  readonly isSingleAllowed: boolean;
  readonly isLiteralAllowed: boolean;
}

function styleOf(text: Bytes, { isSimpleKey = false }: Context): Style {
  const { isPlainAllowed, isSingleAllowed, isLiteralAllowed } = analysisOf(text);
  if (text.includes('\n')) return isLiteralAllowed && !isSimpleKey ? 'literal' : 'double';
  if (!isPlainString(text)) return 'double';
  if (isPlainAllowed) return 'plain';
  return isSingleAllowed ? 'single' : 'double';
}

/** Signs that mean something where a plain scalar begins, and within it. */
const INDICATOR_AT_START = /^(?:[#,[\]{}&*!|>'"%@`]|[?:](?:[ \t]|$)|-(?:[ \t]|$)|---|\.\.\.)/;
const INDICATOR_WITHIN = /.:(?:[ \t]|$)|[ \t\n]#/s;

function analysisOf(text: Bytes): Analysis {
  const hasIndicator = INDICATOR_AT_START.test(text) || INDICATOR_WITHIN.test(text);
  const hasSpecial = hasUnprintable(text);
  const hasBreak = text.includes('\n');
  const [isBreakSpace, isSpaceBreak] = [text.includes('\n '), text.includes(' \n')];
  const hasBlankEnds = /^[ \n]|[ \n]$/.test(text);
  return {
    isPlainAllowed: !hasIndicator && !hasSpecial && !hasBreak && !hasBlankEnds,
    isSingleAllowed: !hasSpecial && !isBreakSpace && !isSpaceBreak,
    isLiteralAllowed: !hasSpecial && !isSpaceBreak && !text.endsWith(' '),
  };
}

function hasUnprintable(text: Bytes): boolean {
  for (let at = 0; at < text.length; at += runeAt(text, at).width) if (!isPrintable(text, at)) return true;
  return false;
}

const ESCAPES: ReadonlyMap<number, string> = new Map([
  [0, '\\0'],
  [7, '\\a'],
  [8, '\\b'],
  [9, '\\t'],
  [10, '\\n'],
  [11, '\\v'],
  [12, '\\f'],
  [13, '\\r'],
  [0x1b, '\\e'],
  [0x22, '\\"'],
  [0x5c, '\\\\'],
  [0xa0, '\\_'],
]);

function escapeOf(code: number): string {
  const digits = code.toString(16).toUpperCase();
  if (code <= 0xff) return ESCAPES.get(code) ?? `\\x${digits.padStart(2, '0')}`;
  return code <= 0xffff ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`;
}
