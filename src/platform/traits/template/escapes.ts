import { type Bytes, isAscii, runesOf } from './bytes.ts';
import { type Budget, Writer } from './fault.ts';
import { isPrint } from './unicode.ts';

const HTML: Readonly<Record<string, Bytes>> = {
  '\0': '\xef\xbf\xbd',
  '"': '&#34;',
  "'": '&#39;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
};

/** Text for HTML, by `template.HTMLEscapeString`. */
export function htmlEscaped(budget: Budget, text: Bytes): Bytes {
  return replaced(budget, text, /[\0"'&<>]/g, (unit) => HTML[unit] ?? unit);
}

/** Text for a query, by `url.QueryEscape`. */
export function queryEscaped(budget: Budget, text: Bytes): Bytes {
  return replaced(budget, text, /[^-A-Za-z0-9_.~]/g, (unit) =>
    unit === ' ' ? '+' : `%${hexOf(unit.charCodeAt(0), 2)}`,
  );
}

function hexOf(code: number, length: number): string {
  return code.toString(16).toUpperCase().padStart(length, '0');
}

/** A replacement has at most six times the length. */
function replaced(budget: Budget, text: Bytes, pattern: RegExp, by: (unit: string) => Bytes): Bytes {
  const out = new Writer(budget);
  out.write(text.replace(pattern, by));
  return out.text;
}

const SPECIAL: Readonly<Record<string, Bytes>> = { '\\': '\\\\', "'": "\\'", '"': '\\"' };

/** Text for a string of JavaScript, by `template.JSEscapeString`. */
export function jsEscaped(budget: Budget, text: Bytes): Bytes {
  const ascii = (part: Bytes) =>
    part.replace(/[\\'"<>&=]|[^ -\xff]/g, (unit) => SPECIAL[unit] ?? `\\u00${hexOf(unit.charCodeAt(0), 2)}`);
  const out = new Writer(budget);
  if (isAscii(text)) out.write(ascii(text));
  else writeRunes(out, text, ascii);
  return out.text;
}

function writeRunes(out: Writer, text: Bytes, ascii: (part: Bytes) => Bytes): void {
  let at = 0;
  for (const { code, width } of runesOf(text)) {
    const part = text.slice(at, at + width);
    out.write(code < 0x80 ? ascii(part) : isPrint(code) ? part : `\\u${hexOf(code, 4)}`);
    at += width;
  }
}
