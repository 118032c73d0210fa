import { type Bytes, bytesOf, isAscii, lossyTextOf, runesOf } from './bytes.ts';
import { type Budget, failed, refused, Writer } from './fault.ts';
import { Dict, Int, List, sortedEntriesOf, type Value } from './value.ts';

/** JSON of a value by `json.Marshal`: keys in order, and `<`, `>` and `&` as escape sequences. */
export function toJson(budget: Budget, value: Value): Bytes {
  const out = new Writer(budget);
  write(out, value, 0);
  return out.text;
}

function write(out: Writer, value: Value, depth: number): void {
  out.budget.checkDepth(depth);
  out.budget.spend();
  if (value instanceof List) {
    out.write('[');
    for (const [index, item] of value.items.entries()) {
      if (index > 0) out.write(',');
      write(out, item, depth + 1);
    }
    out.write(']');
  } else if (value instanceof Dict) {
    out.write('{');
    for (const [index, [key, item]] of sortedEntriesOf(out.budget, value).entries()) {
      out.write(`${index > 0 ? ',' : ''}${jsonString(key)}:`);
      write(out, item, depth + 1);
    }
    out.write('}');
  } else {
    out.write(scalarOf(value));
  }
}

function scalarOf(value: Exclude<Value, List | Dict>): string {
  if (typeof value === 'string') return jsonString(value);
  if (value instanceof Int) return String(value.value);
  return typeof value === 'number' ? jsonNumber(value) : String(value);
}

export function jsonNumber(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

function jsonString(bytes: Bytes): Bytes {
  const escaped = marked(bytes)
    .replace(/["\\<>&]|[^ -\xff]/g, (unit) => ESCAPES[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .replaceAll('\xe2\x80\xa8', '\\u2028')
    .replaceAll('\xe2\x80\xa9', '\\u2029')
    .replaceAll(BROKEN, '\\ufffd');
  return `"${escaped}"`;
}

/** Each byte that is no UTF-8 becomes the same one. */
function marked(bytes: Bytes): Bytes {
  if (isAscii(bytes)) return bytes;
  let [text, at] = ['', 0];
  for (const { code, width } of runesOf(bytes)) {
    text += width === 1 && code >= 0x80 ? BROKEN : bytes.slice(at, at + width);
    at += width;
  }
  return text;
}

/** A byte that no UTF-8 has. */
const BROKEN = '\xff';

/** The value of JSON. Integers are `int64`, as those of the data. */
export function fromJson(budget: Budget, bytes: Bytes): Value {
  const text = lossyTextOf(bytes);
  checkDepthOf(budget, text);
  try {
    return goValueOf(budget, JSON.parse(text, withNumbers), 0);
  } catch (error) {
    if (error instanceof SyntaxError) throw refused('fromJson: the text is no JSON');
    throw error;
  }
}

/** Maps and lists around each other, before anything recursive reads them. */
function checkDepthOf(budget: Budget, text: string): void {
  let [depth, isInString] = [0, false];
  for (let at = 0; at < text.length; at++) {
    const unit = text[at];
    if (unit === '"') isInString = !isInString;
    else if (isInString) at += unit === '\\' ? 1 : 0;
    else if (unit === '[' || unit === '{') budget.checkDepth(++depth);
    else if (unit === ']' || unit === '}') depth--;
  }
}

/** Reviver of JSON: a number becomes the one that Go reads. `rest` has the text of a scalar. */
function withNumbers(_key: string, value: unknown, ...rest: { readonly source?: string }[]): unknown {
  return typeof value === 'number' ? numberOf(rest[0]?.source ?? String(value)) : value;
}

const [MIN_INT64, MAX_INT64] = [-(2n ** 63n), 2n ** 63n - 1n];

function numberOf(text: string): Int | number {
  if (/^-?[0-9]+$/.test(text)) {
    const integer = BigInt(text);
    if (integer >= MIN_INT64 && integer <= MAX_INT64) return new Int(integer, 'int64');
  }
  const number = Number(text);
  if (!Number.isFinite(number)) throw failed(`fromJson: the number ${text} is beyond all floats`);
  return number;
}

function goValueOf(budget: Budget, parsed: unknown, depth: number): Value {
  budget.spend();
  if (parsed === null || typeof parsed === 'boolean' || typeof parsed === 'number') return parsed;
  if (typeof parsed === 'string') return bytesOf(parsed);
  if (parsed instanceof Int) return parsed;
  if (Array.isArray(parsed)) return new List(parsed.map((item) => goValueOf(budget, item, depth + 1)));
  const entries = Object.entries(parsed as object);
  return new Dict(new Map(entries.map(([key, item]) => [bytesOf(key), goValueOf(budget, item, depth + 1)])));
}
