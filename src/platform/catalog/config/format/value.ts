/** Most levels of maps and lists in a file. */
export const MAX_DEPTH = 64;
/** Most keys and items of lists in a file, those of aliases counted wherever they are used. */
export const MAX_KEYS = 10_000;

/** A scalar that is no string: its value, and how the file has it. */
export class Literal {
  readonly value: number | bigint | boolean | null;
  readonly text: string;

  constructor(value: number | bigint | boolean | null, text: string) {
    this.value = value;
    this.text = text;
  }
}

/** Content of a file. Keys have the order of the file. */
export type ConfigValue = string | Literal | ConfigList | ConfigMap;
export type ConfigList = readonly ConfigValue[];
export type ConfigMap = ReadonlyMap<string, ConfigValue>;

/** A place where a file cannot be read. Lines and columns count from 1. */
export interface Fault {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** Ends the reading of a file. It does not leave the functions that read files. */
export class FormatError extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.name = 'FormatError';
    this.offset = offset;
  }
}

/** Counts what a file has, and ends its reading at the first key or level too many. */
export class Budget {
  #keys = 0;

  add(offset: number, count = 1): void {
    this.#keys += count;
    if (this.#keys > MAX_KEYS) throw new FormatError(offset, `the file has more than ${MAX_KEYS} keys and items`);
  }

  /** `depth`: number of maps and lists around a value. */
  check(offset: number, depth: number): void {
    if (depth > MAX_DEPTH) throw new FormatError(offset, `maps and lists are nested deeper than ${MAX_DEPTH} levels`);
  }
}

/** Adds a key that must be new. */
export function addKey(map: Map<string, ConfigValue>, key: string, value: ConfigValue, offset: number): void {
  if (map.has(key)) throw new FormatError(offset, `the key ${JSON.stringify(key)} stands here a second time`);
  map.set(key, value);
}

/** Place of an offset. */
export function faultAt(text: string, offset: number, message: string): Fault {
  const before = text.slice(0, offset).split(/\r\n|\r|\n/);
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, message };
}

export function isMap(value: ConfigValue): value is ConfigMap {
  return value instanceof Map;
}

export function isList(value: ConfigValue): value is ConfigList {
  return Array.isArray(value);
}
