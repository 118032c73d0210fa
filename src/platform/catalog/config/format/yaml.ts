import {
  Composer,
  CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  type Node,
  type ParsedNode,
  Parser,
  type Scalar,
} from 'yaml';
import {
  addKey,
  Budget,
  type ConfigMap,
  type ConfigValue,
  FormatError,
  isList,
  isMap as isTree,
  Literal,
} from './value.ts';
import { literalOf } from './yaml-literal.ts';

/** Tags that say what a value is anyway. */
const KNOWN_TAGS = ['!', 'tag:yaml.org,2002:str', 'tag:yaml.org,2002:map', 'tag:yaml.org,2002:seq'];
const MERGE_KEY = '<<';

/**
 * Content of a YAML file with one document, read as Spring Boot reads it: scalars by the rules of YAML 1.1, dates as
 * text, and `<<` as a merge. Throws a FormatError.
 */
export function parseYaml(text: string): ConfigValue {
  const tokens = [...tokensOf(text)];
  // Composing is recursive, reading tokens is not.
  for (const token of tokens) if (token.type === 'document') checkDepth(token);
  const composer = new Composer<ParsedNode>({
    schema: 'failsafe',
    version: '1.1',
    prettyErrors: false,
    uniqueKeys: false,
  });
  const [document, second] = composer.compose(tokens, true, text.length);
  const error = document?.errors[0] ?? document?.warnings[0];
  if (error !== undefined) throw new FormatError(error.pos[0], error.message);
  if (second !== undefined) throw new FormatError(second.range[0], 'the file has a second document: a file has one');
  return document?.contents ? new YamlReader().read(document.contents, 0).value : new Map();
}

/** Changes of the number of flow collections around a token. */
const LEVELS = new Map([
  ['flow-seq-start', 1],
  ['flow-map-start', 1],
  ['flow-seq-end', -1],
  ['flow-map-end', -1],
]);
/** Each key and item of a block has between one and two of these, and may nest all that follows in its line. */
const BLOCK_INDICATORS = ['map-value-ind', 'explicit-key-ind', 'seq-item-ind'];
const INDICATORS = [...BLOCK_INDICATORS, 'comma'];
/** Most indicators of a key or item, in blocks and flow collections. */
const INDICATORS_OF_KEY = 3;

/** Tokens of a file. A file that is beyond the limits ends early: reading all of it would take seconds. */
function* tokensOf(text: string): Generator<CST.Token> {
  const parser = new Parser();
  const budget = new Budget();
  let [indicators, levels, inLine, former] = [0, 0, 0, ''];
  for (const lexeme of new Lexer().lex(text)) {
    const type = (former === CST.SCALAR ? null : CST.tokenType(lexeme)) ?? 'scalar';
    former = lexeme;
    levels += LEVELS.get(type) ?? 0;
    if (type === 'newline') inLine = 0;
    if (levels === 0 && BLOCK_INDICATORS.includes(type)) inLine++;
    if (INDICATORS.includes(type) && ++indicators % INDICATORS_OF_KEY === 0) budget.add(parser.offset);
    budget.check(parser.offset, Math.max(levels, inLine));
    yield* parser.next(lexeme);
  }
  yield* parser.end();
}

type Token = CST.Token | null | undefined;

function checkDepth(document: CST.Document): void {
  const budget = new Budget();
  const rest: [Token, number][] = [[document.value, 0]];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const [token, depth] = next;
    if (!token || !('items' in token)) continue;
    budget.check(token.offset, depth + 1);
    for (const { key, value } of token.items as CST.CollectionItem[]) rest.push([key, depth + 1], [value, depth + 1]);
  }
}

/** A value with the number of its keys and items, and of the maps and lists in it. */
interface Counted {
  readonly value: ConfigValue;
  readonly keys: number;
  readonly height: number;
}

class YamlReader {
  readonly #budget = new Budget();
  /** Values with an anchor that are complete. */
  readonly #anchored = new Map<string, Counted>();

  read(node: Node, depth: number): Counted {
    const at = node.range?.[0] ?? 0;
    if (isAlias(node)) return this.#aliased(node.source, at, depth);
    const tag = (node as Scalar).tag;
    if (tag !== undefined && !KNOWN_TAGS.includes(tag)) throw new FormatError(at, `the tag ${tag} is refused`);
    const counted = this.#plain(node, at, depth);
    const { anchor } = node as Scalar;
    if (anchor !== undefined) this.#anchored.set(anchor, counted);
    return counted;
  }

  #plain(node: Node, at: number, depth: number): Counted {
    if (isMap<Node, Node | null>(node)) return this.#map(node.items, at, depth + 1);
    if (isSeq<Node>(node)) return this.#list(node.items, at, depth + 1);
    return { value: isScalar(node) ? scalarOf(node) : '', keys: 0, height: 0 };
  }

  #aliased(name: string, at: number, depth: number): Counted {
    const found = this.#anchored.get(name);
    if (found === undefined)
      throw new FormatError(at, `no complete value in front of the alias has the anchor ${name}`);
    this.#budget.add(at, found.keys);
    this.#budget.check(at, depth + found.height);
    return found;
  }

  #list(items: readonly Node[], at: number, depth: number): Counted {
    this.#budget.check(at, depth);
    let [keys, height] = [0, 0];
    const list = items.map((item) => {
      this.#budget.add(item.range?.[0] ?? at);
      const counted = this.read(item, depth);
      keys += 1 + counted.keys;
      height = Math.max(height, counted.height);
      return counted.value;
    });
    return { value: list, keys, height: height + 1 };
  }

  #map(items: readonly { key: Node; value: Node | null }[], start: number, depth: number): Counted {
    this.#budget.check(start, depth);
    const own = new Map<string, ConfigValue>();
    const merged: ConfigMap[] = [];
    let [keys, height] = [0, 0];
    for (const { key, value } of items) {
      const at = key.range?.[0] ?? start;
      this.#budget.add(at);
      if (!isScalar(key)) throw new FormatError(at, 'a key must be text, no map, list or alias');
      const counted = value === null ? NOTHING : this.read(value, depth);
      keys += 1 + counted.keys;
      height = Math.max(height, counted.height);
      if (key.type === 'PLAIN' && key.value === MERGE_KEY) merged.push(...mapsOf(counted.value, at));
      else addKey(own, String(key.value), counted.value, at);
    }
    for (const map of merged) addMissing(own, map);
    return { value: own, keys, height: height + 1 };
  }
}

const NOTHING: Counted = { value: new Literal(null, 'null'), keys: 0, height: 0 };

function addMissing(own: Map<string, ConfigValue>, map: ConfigMap): void {
  for (const [key, value] of map) if (!own.has(key)) own.set(key, value);
}

/** Maps that a merge key names. */
function mapsOf(value: ConfigValue, at: number): ConfigMap[] {
  const maps = isList(value) ? value : [value];
  return maps.map((map) => {
    if (!isTree(map)) throw new FormatError(at, `${MERGE_KEY} needs a map, or a list of maps`);
    return map;
  });
}

function scalarOf({ type, tag, value, source }: Scalar): ConfigValue {
  const text = String(value ?? '');
  return (type === 'PLAIN' && tag === undefined ? literalOf(source ?? text) : undefined) ?? text;
}

/** A YAML file in block style. */
export function writeYaml(value: ConfigValue): string {
  return `${blockOf(value, '').replace(/^\n/, '').trimStart()}\n`;
}

/** The text behind `key:` or `-`, with the blank or the line end in front. */
function blockOf(value: ConfigValue, indent: string): string {
  if (value instanceof Literal) return ` ${value.text}`;
  if (isTree(value)) {
    if (value.size === 0) return ' {}';
    return [...value].map(([key, item]) => `\n${indent}${quoted(key)}:${blockOf(item, `${indent}  `)}`).join('');
  }
  if (isList(value)) {
    if (value.length === 0) return ' []';
    return value.map((item) => `\n${indent}-${blockOf(item, `${indent}  `)}`).join('');
  }
  return ` ${quoted(value)}`;
}

/** A string without quotes where no reader takes it for something else. A JSON string is a string of YAML too. */
function quoted(text: string): string {
  const isPlain = /^[A-Za-z/][-A-Za-z0-9_./]*$/.test(text) && literalOf(text) === undefined && !/^[yn]$/i.test(text);
  return isPlain ? text : JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, escapeOf);
}

function escapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
