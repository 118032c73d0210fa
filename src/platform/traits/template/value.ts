import { type Bytes, bytesOf } from './bytes.ts';
import { type Budget, refused } from './fault.ts';

/** An integer of Go. Literals and lengths are `int`, integers of data are `int64`, bytes of a string are `uint8`. */
export class Int {
  readonly value: bigint;
  readonly type: 'int' | 'int64' | 'uint8';

  constructor(value: bigint, type: Int['type']) {
    this.value = value;
    this.type = type;
  }
}

/** A `[]interface {}` of Go. */
export class List {
  readonly items: readonly Value[];

  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/** A map of Go with strings as keys. */
export class Dict {
  readonly entries: ReadonlyMap<Bytes, Value>;
  /** Whether all its values are strings for Go. A key that is missing is then the empty string. */
  readonly hasStrings: boolean;

  constructor(entries: ReadonlyMap<Bytes, Value>, hasStrings = false) {
    this.entries = entries;
    this.hasStrings = hasStrings;
  }
}

/** A value of a template: a number is a `float64`, a string has the bytes of its UTF-8 form, null is `nil`. */
export type Value = null | boolean | number | Bytes | Int | List | Dict;

export function intOf(value: number | bigint): Int {
  return new Int(BigInt(value), 'int');
}

/** Name of Go's type. */
export function typeOf(value: Value): string {
  if (value === null) return '<nil>';
  if (value instanceof Int) return value.type;
  if (value instanceof List) return '[]interface {}';
  if (value instanceof Dict) return value.hasStrings ? 'map[string]string' : 'map[string]interface {}';
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'number' ? 'float64' : 'string';
}

/** Whether `if` takes a value for true. */
export function isTrue(value: Value): boolean {
  if (value instanceof Int) return value.value !== 0n;
  if (value instanceof List) return value.items.length > 0;
  if (value instanceof Dict) return value.entries.size > 0;
  return Boolean(value);
}

/** Entries in the order in which Go visits them. */
export function sortedEntriesOf(budget: Budget, { entries }: Dict): [Bytes, Value][] {
  budget.spend(entries.size);
  return [...entries].sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
}

/** Bounds of Go's int64 that a number of JavaScript reaches without loss. */
const [MIN_INT64, MAX_INT64] = [-(2 ** 63), 2 ** 63];

/**
 * The value of JSON that JavaScript has read. An integer is what the API server stores as one; it is refused if
 * JavaScript may have rounded it. Only own properties count.
 */
export function goValueOf(data: unknown, budget: Budget, depth = 0): Value {
  budget.checkDepth(depth);
  if (data === null || data === undefined) return null;
  if (typeof data === 'string') return bytesOf(data);
  if (typeof data === 'boolean') return data;
  if (typeof data === 'number') return numberOf(data);
  if (Array.isArray(data)) return new List(data.map((item) => goValueOf(item, budget, depth + 1)));
  if (typeof data !== 'object') throw refused(`the data has a ${typeof data}, which JSON does not have`);
  const entries = Object.entries(data).filter(([, item]) => item !== undefined);
  return new Dict(new Map(entries.map(([key, item]) => [bytesOf(key), goValueOf(item, budget, depth + 1)])));
}

function numberOf(data: number): Value {
  if (!Number.isFinite(data)) throw refused(`the data has the number ${data}, which JSON does not have`);
  if (!Number.isInteger(data) || data < MIN_INT64 || data >= MAX_INT64) return data;
  if (!Number.isSafeInteger(data)) throw refused(`the integer ${data} of the data is beyond 2^53 and may be rounded`);
  return new Int(BigInt(data), 'int64');
}
