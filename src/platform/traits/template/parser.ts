import type { Bytes } from './bytes.ts';
import { Halt } from './fault.ts';
import { isFunction } from './functions.ts';
import { type Token, type TokenKind, TokenReader } from './lexer.ts';
import { parseCharacter, parseNumber, unquote } from './literals.ts';
import {
  type Block,
  type Branch,
  type Command,
  isEmpty,
  type Literal,
  type Node,
  type NumberTerm,
  type Pipeline,
  type Term,
} from './tree.ts';

/** Kinds of tokens that a command begins with. */
const FIRST: ReadonlySet<TokenKind> = new Set<TokenKind>([
  'bool',
  'char constant',
  'complex',
  'dot',
  'field',
  'identifier',
  'number',
  'nil',
  'raw string',
  'string',
  'variable',
  '(',
]);
const NOT_EXECUTABLE: ReadonlySet<Term['kind']> = new Set<Term['kind']>(['bool', 'dot', 'nil', 'number', 'string']);

/** What stands while one template, and not those that are defined within it, is read. */
interface Scope {
  variables: Bytes[];
  ranges: number;
}

/** The end of a block, and the token behind an `else`. */
interface BlockEnd {
  readonly kind: 'end' | 'else';
  readonly at: number;
}

interface ReadBlock {
  readonly block: Block;
  readonly end: BlockEnd;
}

type Item = { readonly node: Node } | { readonly end: BlockEnd };

/** Trees of a template and of those that it defines, by their names. Throws a Halt. */
export function parseTrees(name: Bytes, text: Bytes, depth: number): ReadonlyMap<Bytes, Block> {
  return new Parser(text, depth).parse(name);
}

class Parser {
  readonly #tokens: TokenReader;
  readonly #maxDepth: number;
  readonly #trees = new Map<Bytes, Block>();
  #scope: Scope = { variables: ['$'], ranges: 0 };
  #depth = 0;

  constructor(text: Bytes, maxDepth: number) {
    this.#tokens = new TokenReader(text);
    this.#maxDepth = maxDepth;
  }

  parse(name: Bytes): ReadonlyMap<Bytes, Block> {
    try {
      this.#add(name, this.#root());
      return this.#trees;
    } catch (error) {
      throw error instanceof Halt && error.offset === undefined
        ? new Halt(error.code, error.message, this.#tokens.at)
        : error;
    }
  }

  #root(): Block {
    const root: Node[] = [];
    for (let token = this.#tokens.next(); token.kind !== 'end of file'; token = this.#tokens.next()) {
      if (token.kind === 'left') {
        const first = this.#tokens.nextNonSpace();
        if (first.kind === 'define') {
          this.#definition();
          continue;
        }
        this.#tokens.unread(first);
      }
      this.#tokens.unread(token);
      const item = this.#textOrAction();
      if ('end' in item) throw this.#wrong(`unexpected {{${item.end.kind}}}`, item.end.at);
      root.push(item.node);
    }
    return root;
  }

  #definition(): void {
    const token = this.#tokens.nextNonSpace();
    if (token.kind !== 'string' && token.kind !== 'raw string') throw this.#unexpected(token, 'define clause');
    const name = unquote(token.text);
    this.#expectRight('define clause');
    this.#add(name, this.#separately('define clause'));
  }

  /** A block with variables of its own, up to its end. */
  #separately(context: string): Block {
    const outer = this.#scope;
    this.#scope = { variables: ['$'], ranges: 0 };
    const { block, end } = this.#block();
    if (end.kind !== 'end') throw this.#wrong(`unexpected {{else}} in ${context}`, end.at);
    this.#scope = outer;
    return block;
  }

  #add(name: Bytes, tree: Block): void {
    const former = this.#trees.get(name);
    if (former === undefined || isEmpty(former)) this.#trees.set(name, tree);
    else if (!isEmpty(tree)) throw this.#wrong(`multiple definition of template "${name}"`);
  }

  #block(): ReadBlock {
    const block: Node[] = [];
    for (;;) {
      const token = this.#tokens.peekNonSpace();
      if (token.kind === 'end of file') throw this.#wrong('unexpected EOF', token.at);
      const item = this.#textOrAction();
      if ('end' in item) return { block, end: item.end };
      block.push(item.node);
    }
  }

  #textOrAction(): Item {
    const token = this.#tokens.nextNonSpace();
    if (token.kind === 'text') return { node: { kind: 'text', at: token.at, text: token.text } };
    if (token.kind !== 'left') throw this.#unexpected(token, 'input');
    return this.#action();
  }

  #action(): Item {
    const token = this.#tokens.nextNonSpace();
    const { kind, at } = token;
    switch (kind) {
      case 'block':
        return { node: this.#blockAction() };
      case 'break':
      case 'continue':
        return { node: this.#jump(kind, at) };
      case 'else':
        return { end: this.#elseAction(at) };
      case 'end':
        this.#expectRight('end');
        return { end: { kind, at } };
      case 'if':
      case 'range':
      case 'with':
        return { node: this.#branch(kind, at) };
      case 'template':
        return { node: this.#templateAction() };
      default:
        this.#tokens.unread(token);
        return { node: { kind: 'action', at, pipeline: this.#pipeline('command', 'right') } };
    }
  }

  #jump(kind: 'break' | 'continue', at: number): Node {
    this.#expectRight(`{{${kind}}}`);
    if (this.#scope.ranges === 0) throw this.#wrong(`{{${kind}}} outside {{range}}`, at);
    return { kind, at };
  }

  /** In `{{else if …}}` and `{{else with …}}` the second word is left for the branch that has the else. */
  #elseAction(at: number): BlockEnd {
    const next = this.#tokens.peekNonSpace();
    if (next.kind !== 'if' && next.kind !== 'with') this.#expectRight('else');
    return { kind: 'else', at };
  }

  #branch(kind: Branch['kind'], at: number): Branch {
    this.#deeper(at);
    const outer = this.#scope.variables.length;
    const pipeline = this.#pipeline(kind, 'right');
    this.#scope.ranges += kind === 'range' ? 1 : 0;
    const { block: body, end } = this.#block();
    this.#scope.ranges -= kind === 'range' ? 1 : 0;
    const otherwise = end.kind === 'else' ? this.#otherwise(kind) : undefined;
    this.#scope.variables.length = outer;
    this.#depth--;
    return { kind, at, pipeline, body, otherwise };
  }

  #otherwise(kind: Branch['kind']): Block {
    const next = this.#tokens.peek();
    if (next.kind === kind && (kind === 'if' || kind === 'with')) {
      this.#tokens.next();
      return [this.#branch(kind, next.at)];
    }
    const { block, end } = this.#block();
    if (end.kind !== 'end') throw this.#wrong('expected end; found {{else}}', end.at);
    return block;
  }

  #blockAction(): Node {
    const token = this.#tokens.nextNonSpace();
    const name = this.#templateName(token, 'block clause');
    const pipeline = this.#pipeline('block clause', 'right');
    this.#deeper(token.at);
    this.#add(name, this.#separately('block clause'));
    this.#depth--;
    return { kind: 'template', at: token.at, name, pipeline };
  }

  #templateAction(): Node {
    const token = this.#tokens.nextNonSpace();
    const name = this.#templateName(token, 'template clause');
    const next = this.#tokens.nextNonSpace();
    if (next.kind === 'right') return { kind: 'template', at: token.at, name, pipeline: undefined };
    this.#tokens.unread(next);
    return { kind: 'template', at: token.at, name, pipeline: this.#pipeline('template clause', 'right') };
  }

  #templateName(token: Token, context: string): Bytes {
    if (token.kind !== 'string' && token.kind !== 'raw string') throw this.#unexpected(token, context);
    return unquote(token.text);
  }

  #pipeline(context: string, end: 'right' | ')'): Pipeline {
    const { at } = this.#tokens.peekNonSpace();
    const { variables, isAssignment } = this.#declarations(context);
    const commands: Command[] = [];
    for (let token = this.#tokens.nextNonSpace(); token.kind !== end; token = this.#tokens.nextNonSpace()) {
      if (!FIRST.has(token.kind)) throw this.#unexpected(token, context);
      this.#tokens.unread(token);
      commands.push(this.#command());
    }
    if (commands.length === 0) throw this.#wrong(`missing value for ${context}`, at);
    for (const [index, { at, terms }] of commands.entries()) {
      if (index > 0 && NOT_EXECUTABLE.has(terms[0].kind)) {
        throw this.#wrong(`non executable command in pipeline stage ${index + 1}`, at);
      }
    }
    return { kind: 'pipeline', at, variables, isAssignment, commands };
  }

  #declarations(context: string): { variables: Bytes[]; isAssignment: boolean } {
    const variables: Bytes[] = [];
    for (;;) {
      const variable = this.#tokens.peekNonSpace();
      if (variable.kind !== 'variable') return { variables, isAssignment: false };
      this.#tokens.next();
      const after = this.#tokens.peek();
      const next = this.#tokens.peekNonSpace();
      const isComma = next.kind === 'character' && next.text === ',';
      if (!isComma && next.kind !== 'assign' && next.kind !== 'declare') {
        if (after.kind === 'space') this.#tokens.unread(after);
        this.#tokens.unread(variable);
        return { variables, isAssignment: false };
      }
      this.#tokens.nextNonSpace();
      variables.push(variable.text);
      this.#scope.variables.push(variable.text);
      if (!isComma) return { variables, isAssignment: next.kind === 'assign' };
      this.#checkSecond(context, variables.length, next.at);
    }
  }

  /** A range has a comma and a second variable. */
  #checkSecond(context: string, count: number, at: number): void {
    if (context !== 'range' || count > 1) throw this.#wrong(`too many declarations in ${context}`, at);
    const { kind } = this.#tokens.peekNonSpace();
    if (kind !== 'variable' && kind !== 'right' && kind !== ')') {
      throw this.#wrong('range can only initialize variables', at);
    }
  }

  #command(): Command {
    const { at } = this.#tokens.peekNonSpace();
    const terms: Term[] = [];
    for (;;) {
      this.#tokens.peekNonSpace();
      const operand = this.#operand();
      if (operand !== undefined) terms.push(operand);
      const token = this.#tokens.next();
      if (token.kind === 'space') continue;
      if (token.kind === 'right' || token.kind === ')') this.#tokens.unread(token);
      else if (token.kind !== 'pipe') throw this.#unexpected(token, 'operand');
      break;
    }
    const [first, ...rest] = terms;
    if (first === undefined) throw this.#wrong('empty command', at);
    return { at, terms: [first, ...rest] };
  }

  #operand(): Term | undefined {
    const term = this.#term();
    const next = this.#tokens.peek();
    if (term === undefined || next.kind !== 'field') return term;
    const fields: Bytes[] = [];
    while (this.#tokens.peek().kind === 'field') fields.push(this.#tokens.next().text.slice(1));
    switch (term.kind) {
      case 'field':
        return { ...term, names: [...term.names, ...fields] };
      case 'variable':
        return { ...term, fields: [...term.fields, ...fields] };
      case 'function':
      case 'pipeline':
        return { kind: 'chain', at: next.at, of: term, fields };
      default:
        throw this.#wrong('unexpected . after a value', next.at);
    }
  }

  #term(): Term | undefined {
    const token = this.#tokens.nextNonSpace();
    const { kind, at, text } = token;
    switch (kind) {
      case 'identifier':
        if (!isFunction(text)) throw this.#wrong(`function "${text}" not defined`, at);
        return { kind: 'function', at, name: text };
      case 'variable':
        if (!this.#scope.variables.includes(text)) throw this.#wrong(`undefined variable "${text}"`, at);
        return { kind: 'variable', at, name: text, fields: [] };
      case 'field':
        return { kind: 'field', at, names: [text.slice(1)] };
      case '(':
        return this.#parentheses(at);
      default: {
        const literal = literalOf(token);
        if (literal === undefined) this.#tokens.unread(token);
        return literal;
      }
    }
  }

  #parentheses(at: number): Pipeline {
    this.#deeper(at);
    const pipeline = this.#pipeline('parenthesized pipeline', ')');
    this.#depth--;
    return pipeline;
  }

  #deeper(at: number): void {
    if (++this.#depth > this.#maxDepth) {
      throw new Halt('Limit', `blocks and parentheses are nested deeper than ${this.#maxDepth}`, at);
    }
  }

  #expectRight(context: string): void {
    const token = this.#tokens.nextNonSpace();
    if (token.kind !== 'right') throw this.#unexpected(token, context);
  }

  #unexpected({ kind, at, text }: Token, context: string): Halt {
    const what = kind === 'end of file' ? 'EOF' : JSON.stringify(text);
    return this.#wrong(`unexpected ${what} in ${context}`, at);
  }

  #wrong(message: string, at = this.#tokens.at): Halt {
    return new Halt('Syntax', message, at);
  }
}

/** Undefined: the token is no literal. */
function literalOf({ kind, at, text }: Token): Literal | undefined {
  switch (kind) {
    case 'dot':
    case 'nil':
      return { kind, at };
    case 'bool':
      return { kind, at, value: text === 'true' };
    case 'string':
    case 'raw string':
      return { kind: 'string', at, value: unquote(text) };
    case 'char constant':
      return numberTerm(at, text, parseCharacter);
    case 'complex':
    case 'number':
      return numberTerm(at, text, parseNumber);
    default:
      return undefined;
  }
}

function numberTerm(at: number, text: Bytes, parse: typeof parseNumber): NumberTerm {
  return { kind: 'number', at, text, ...parse(text) };
}
