import { addKey, Budget, type ConfigValue, FormatError, isList, isMap, Literal } from './value.ts';

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const WORD = /[A-Za-z_]+/y;
const WORDS: Readonly<Record<string, boolean | null>> = { true: true, false: false, null: null };

/** Content of a JSON file. Throws a FormatError. */
export function parseJson(text: string): ConfigValue {
  return new JsonReader(text).read();
}

class JsonReader {
  readonly #text: string;
  readonly #budget = new Budget();
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): ConfigValue {
    const value = this.#value(0);
    this.#match(SPACE);
    if (this.#at < this.#text.length) throw this.#unexpected('nothing more');
    return value;
  }

  #value(depth: number): ConfigValue {
    this.#match(SPACE);
    const next = this.#text[this.#at];
    if (next === '{') return this.#map(depth + 1);
    if (next === '[') return this.#list(depth + 1);
    if (next === '"') return this.#string();
    const number = this.#match(NUMBER);
    if (number !== undefined) return new Literal(numberOf(number), number);
    const start = this.#at;
    const word = this.#match(WORD);
    if (word !== undefined && Object.hasOwn(WORDS, word)) return new Literal(WORDS[word] ?? null, word);
    this.#at = start;
    throw this.#unexpected('a value');
  }

  #map(depth: number): ConfigValue {
    this.#budget.check(this.#at, depth);
    const map = new Map<string, ConfigValue>();
    this.#at++;
    if (this.#isNext('}')) return map;
    do {
      this.#match(SPACE);
      const start = this.#at;
      if (this.#text[start] !== '"') throw this.#unexpected('a key in double quotes');
      const key = this.#string();
      this.#budget.add(start);
      if (!this.#isNext(':')) throw this.#unexpected('":" after the key');
      addKey(map, key, this.#value(depth), start);
    } while (this.#isNext(','));
    if (!this.#isNext('}')) throw this.#unexpected('"," or "}"');
    return map;
  }

  #list(depth: number): ConfigValue {
    this.#budget.check(this.#at, depth);
    const list: ConfigValue[] = [];
    this.#at++;
    if (this.#isNext(']')) return list;
    do {
      this.#budget.add(this.#at);
      list.push(this.#value(depth));
    } while (this.#isNext(','));
    if (!this.#isNext(']')) throw this.#unexpected('"," or "]"');
    return list;
  }

  #string(): string {
    const start = this.#at;
    let end = start + 1;
    while (end < this.#text.length && this.#text[end] !== '"') end += this.#text[end] === '\\' ? 2 : 1;
    this.#at = end + 1;
    try {
      return JSON.parse(this.#text.slice(start, this.#at));
    } catch {
      throw new FormatError(start, 'the string that starts here has no end, a line break, or a wrong escape sequence');
    }
  }

  /** Steps over the character, if it is the next one. */
  #isNext(character: string): boolean {
    this.#match(SPACE);
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #unexpected(wanted: string): FormatError {
    const found = this.#text.codePointAt(this.#at);
    const what = found === undefined ? 'the end of the file' : JSON.stringify(String.fromCodePoint(found));
    return new FormatError(this.#at, `found ${what} instead of ${wanted}`);
  }
}

function numberOf(text: string): number | bigint {
  const number = Number(text);
  return /^-?\d+$/.test(text) && !Number.isSafeInteger(number) ? BigInt(text) : number;
}

/** A JSON file with indentation. */
export function writeJson(value: ConfigValue): string {
  return `${textOf(value, '')}\n`;
}

function textOf(value: ConfigValue, indent: string): string {
  if (value instanceof Literal) return value.text;
  const inner = `${indent}  `;
  if (isMap(value)) {
    const entries = [...value].map(([key, item]) => `${inner}${JSON.stringify(key)}: ${textOf(item, inner)}`);
    return blockOf('{', entries, `${indent}}`);
  }
  if (isList(value)) {
    const items = value.map((item) => `${inner}${textOf(item, inner)}`);
    return blockOf('[', items, `${indent}]`);
  }
  return JSON.stringify(value);
}

function blockOf(start: string, lines: readonly string[], end: string): string {
  return lines.length === 0 ? `${start}${end.trim()}` : `${start}\n${lines.join(',\n')}\n${end}`;
}
