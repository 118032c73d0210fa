import { type Bytes, encodeRune, isAscii, runesOf } from './bytes.ts';
import { type Budget, Writer } from './fault.ts';
import { isPrint } from './unicode.ts';

const ESCAPES: ReadonlyMap<number, string> = new Map([
  [7, '\\a'],
  [8, '\\b'],
  [9, '\\t'],
  [10, '\\n'],
  [11, '\\v'],
  [12, '\\f'],
  [13, '\\r'],
]);

/** A string of Go's source code, as `strconv.Quote` and `QuoteToASCII` write it. */
export function quoted(budget: Budget, text: Bytes, quote: '"' | "'", isAsciiOnly: boolean): Bytes {
  const out = new Writer(budget);
  out.write(quote);
  if (/^[ !#-&(-[\]-~]*$/.test(text)) {
    out.write(text);
  } else {
    let at = 0;
    for (const { code, width } of runesOf(text)) {
      const isBroken = width === 1 && code >= 0x80;
      out.write(isBroken ? hex('\\x', text.charCodeAt(at), 2) : escaped(code, quote, isAsciiOnly));
      at += width;
    }
  }
  out.write(quote);
  return out.text;
}

function escaped(code: number, quote: '"' | "'", isAsciiOnly: boolean): Bytes {
  const character = encodeRune(code);
  if (character === quote || character === '\\') return `\\${character}`;
  if ((!isAsciiOnly || code < 0x80) && isPrint(code)) return character;
  const named = ESCAPES.get(code);
  if (named !== undefined) return named;
  if (code < 0x20 || code === 0x7f) return hex('\\x', code, 2);
  return code < 0x10000 ? hex('\\u', code, 4) : hex('\\U', code, 8);
}

function hex(prefix: string, code: number, length: number): string {
  return prefix + code.toString(16).padStart(length, '0');
}

/** Whether `%#q` writes a string in back quotes. */
export function canBackquote(text: Bytes): boolean {
  if (/[`\x7f]|[^\t -\xff]/.test(text) || text.includes('\xef\xbb\xbf')) return false;
  if (isAscii(text)) return true;
  for (const { code, width } of runesOf(text)) if (width === 1 && code >= 0x80) return false;
  return true;
}
