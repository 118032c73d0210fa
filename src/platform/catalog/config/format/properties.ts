import { addKey, Budget, type ConfigMap, type ConfigValue, FormatError } from './value.ts';

const ESCAPES: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', f: '\f' };
/** White space in front of a logical line, and around its separator. */
const BLANKS = /[ \t\f]*/y;
const SEPARATOR = /[ \t\f]*[=:]?[ \t\f]*/y;
/** The rest of a line with its end. */
const LINE = /[^\r\n]*(?:\r\n|\r|\n|$)/y;
const LINE_END = /\r\n|\r|\n/y;

/** Content of a properties file, by the rules of `java.util.Properties`. Throws a FormatError. */
export function parseProperties(text: string): ConfigValue {
  return new PropertiesReader(text).read();
}

class PropertiesReader {
  readonly #text: string;
  readonly #budget = new Budget();
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): ConfigMap {
    const map = new Map<string, ConfigValue>();
    for (;;) {
      this.#match(BLANKS);
      const next = this.#text[this.#at];
      if (next === undefined) return map;
      if (next === '#' || next === '!') this.#match(LINE);
      else if (this.#match(LINE_END) === '') this.#entry(map);
    }
  }

  #entry(map: Map<string, ConfigValue>): void {
    const start = this.#at;
    this.#budget.add(start);
    const key = this.#token(/[=: \t\f]/);
    this.#separator();
    const value = this.#token();
    this.#match(LINE_END);
    addKey(map, key, value, start);
  }

  /** Steps over blanks, one separator and blanks, on several lines where these are continued. */
  #separator(): void {
    this.#match(SEPARATOR);
    while (this.#skipContinuation()) this.#match(BLANKS);
  }

  /** Characters up to the end of the logical line, or up to one that `end` matches. */
  #token(end?: RegExp): string {
    let token = '';
    for (;;) {
      const next = this.#text[this.#at];
      if (next === undefined || next === '\r' || next === '\n' || end?.test(next)) return token;
      if (next !== '\\') {
        token += next;
        this.#at++;
      } else if (this.#skipContinuation()) this.#match(BLANKS);
      else token += this.#escape();
    }
  }

  /** Steps over a backslash at the end of a line. */
  #skipContinuation(): boolean {
    if (this.#text[this.#at] !== '\\') return false;
    this.#at++;
    if (this.#match(LINE_END) !== '') return true;
    this.#at--;
    return false;
  }

  #escape(): string {
    const start = this.#at;
    const escaped = this.#text[start + 1] ?? '';
    this.#at += 1 + escaped.length;
    if (escaped !== 'u') return ESCAPES[escaped] ?? escaped;
    const digits = this.#text.slice(this.#at, this.#at + 4);
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw new FormatError(start, '\\u needs four hexadecimal digits');
    this.#at += 4;
    return String.fromCharCode(Number.parseInt(digits, 16));
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }
}

/** A properties file in ASCII, which every reader understands, whichever encoding it expects. */
export function writeProperties(map: ConfigMap): string {
  return [...map].map(([key, value]) => `${escaped(key, /[ =:#!\\]/g)}=${escapedValue(value)}\n`).join('');
}

function escapedValue(value: ConfigValue): string {
  // Blanks in front belong to the separator, unless the first one is escaped.
  return escaped(String(value), /\\|^ /g);
}

function escaped(text: string, special: RegExp): string {
  return text
    .replace(special, (character) => `\\${character}`)
    .replace(/[\t\n\r\f]/g, (character) => `\\${NAMES[character]}`)
    .replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const NAMES: Readonly<Record<string, string>> = { '\t': 't', '\n': 'n', '\r': 'r', '\f': 'f' };
