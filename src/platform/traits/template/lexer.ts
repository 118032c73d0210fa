import { type Bytes, encodeRune, runeAt } from './bytes.ts';
import { Halt } from './fault.ts';
import { isDigit, isLetter } from './unicode.ts';

export type TokenKind =
  | 'text'
  | 'left'
  | 'right'
  | 'end of file'
  | 'space'
  | 'assign'
  | 'declare'
  | 'pipe'
  | '('
  | ')'
  | 'character'
  | 'char constant'
  | 'complex'
  | 'number'
  | 'string'
  | 'raw string'
  | 'bool'
  | 'identifier'
  | 'field'
  | 'variable'
  | 'dot'
  | 'nil'
  | Keyword;

export type Keyword = 'block' | 'break' | 'continue' | 'define' | 'else' | 'end' | 'if' | 'range' | 'template' | 'with';

const WORDS: ReadonlyMap<Bytes, TokenKind> = new Map<Bytes, TokenKind>([
  ...(['block', 'break', 'continue', 'define', 'else', 'end', 'if', 'range', 'template', 'with'] as const).map(
    (word) => [word, word] as const,
  ),
  ['nil', 'nil'],
  ['true', 'bool'],
  ['false', 'bool'],
]);

export interface Token {
  readonly kind: TokenKind;
  /** Place in the template, in bytes. */
  readonly at: number;
  readonly text: Bytes;
}

const [LEFT, RIGHT] = ['{{', '}}'];
const [COMMENT, COMMENT_END] = ['/*', '*/'];
/** A blank and a `-`. */
const TRIM_MARKER = 2;
const SPACE = /[ \t\r\n]/;
const TRIMMED_AHEAD = /[ \t\r\n]*/y;
/** Signs that are a token by themselves. */
const SIGNS: ReadonlyMap<string, TokenKind> = new Map([
  ['=', 'assign'],
  ['|', 'pipe'],
]);

/** Splits a template into tokens, as `text/template/parse` does. Throws a Halt at the first character that is wrong. */
class Lexer {
  readonly #input: Bytes;
  #at = 0;
  #isInAction = false;
  #parentheses = 0;

  constructor(input: Bytes) {
    this.#input = input;
  }

  next(): Token {
    if (this.#isInAction) return this.#inAction();
    for (;;) {
      const token = this.#text();
      if (token !== undefined) return token;
    }
  }

  /** Undefined: the next thing is a comment, which is left out. */
  #text(): Token | undefined {
    const start = this.#at;
    const action = this.#input.indexOf(LEFT, start);
    const end = action < 0 ? this.#input.length : action;
    this.#at = end;
    const isTrimmed = action >= 0 && this.#hasLeftMarker(action + LEFT.length);
    const length = (isTrimmed ? trimmedEndOf(this.#input, start, end) : end) - start;
    if (length > 0) return { kind: 'text', at: start, text: this.#input.slice(start, start + length) };
    return action < 0 ? { kind: 'end of file', at: end, text: '' } : this.#leftDelimiter();
  }

  #leftDelimiter(): Token | undefined {
    const at = this.#at;
    const inner = at + LEFT.length + (this.#hasLeftMarker(at + LEFT.length) ? TRIM_MARKER : 0);
    this.#at = inner;
    if (this.#input.startsWith(COMMENT, inner)) {
      this.#skipComment();
      return undefined;
    }
    this.#isInAction = true;
    return { kind: 'left', at, text: LEFT };
  }

  #skipComment(): void {
    const start = this.#at;
    const end = this.#input.indexOf(COMMENT_END, start + COMMENT.length);
    if (end < 0) throw this.#wrong(start, 'unclosed comment');
    this.#at = end + COMMENT_END.length;
    if (!this.#isAtRight()) throw this.#wrong(this.#at, 'comment ends before closing delimiter');
    this.#skipRight();
  }

  /** Steps over the right delimiter, and over the blanks that it trims. */
  #skipRight(): void {
    const isTrimmed = this.#hasRightMarker(this.#at);
    this.#at += RIGHT.length + (isTrimmed ? TRIM_MARKER : 0);
    if (!isTrimmed) return;
    TRIMMED_AHEAD.lastIndex = this.#at;
    this.#at += TRIMMED_AHEAD.exec(this.#input)?.[0].length ?? 0;
  }

  #inAction(): Token {
    const at = this.#at;
    if (this.#isAtRight()) {
      if (this.#parentheses > 0) throw this.#wrong(at, 'unclosed left paren');
      this.#skipRight();
      this.#isInAction = false;
      return { kind: 'right', at, text: RIGHT };
    }
    const next = this.#input[at];
    if (next === undefined) throw this.#wrong(at, 'unclosed action');
    if (SPACE.test(next)) return this.#space();
    const sign = SIGNS.get(next);
    if (sign !== undefined) return this.#take(sign, 1);
    return this.#quoted(next) ?? this.#word(next);
  }

  #quoted(next: string): Token | undefined {
    if (next === '"') return this.#delimited('string', '"', 'unterminated quoted string');
    if (next === "'") return this.#delimited('char constant', "'", 'unterminated character constant');
    if (next !== '`') return undefined;
    const end = this.#input.indexOf('`', this.#at + 1);
    if (end < 0) throw this.#wrong(this.#at, 'unterminated raw quoted string');
    return this.#take('raw string', end + 1 - this.#at);
  }

  #word(next: string): Token {
    const at = this.#at;
    const after = this.#input[at + 1];
    if (next === ':') {
      if (after !== '=') throw this.#wrong(at, 'expected :=');
      return this.#take('declare', 2);
    }
    if (next === '$') return this.#name('variable');
    if (next === '.' && after !== undefined && !/[0-9]/.test(after)) return this.#name('field');
    if (/[-+.0-9]/.test(next)) return this.#number();
    if (this.#isAlphaNumeric(at)) return this.#identifier();
    if (next === '(' || next === ')') return this.#parenthesis(next);
    if (/[!-~]/.test(next)) return this.#take('character', 1);
    throw this.#wrong(at, `unrecognized character in action: ${this.#shown(at)}`);
  }

  #parenthesis(next: '(' | ')'): Token {
    this.#parentheses += next === '(' ? 1 : -1;
    if (this.#parentheses < 0) throw this.#wrong(this.#at, 'unexpected right paren');
    return this.#take(next, 1);
  }

  /** A run of blanks, without the last one if that belongs to a trim marker. */
  #space(): Token {
    let end = this.#at;
    while (SPACE.test(this.#input[end] ?? '')) end++;
    if (this.#hasRightMarker(end - 1)) end--;
    return this.#take('space', end - this.#at);
  }

  #delimited(kind: TokenKind, quote: string, message: string): Token {
    for (let at = this.#at + 1; at < this.#input.length; at++) {
      const next = this.#input[at];
      if (next === quote) return this.#take(kind, at + 1 - this.#at);
      if (next === '\\') at++;
      if (this.#input[at] === '\n') break;
    }
    throw this.#wrong(this.#at, message);
  }

  #identifier(): Token {
    const end = this.#endOfName(this.#at);
    const word = this.#input.slice(this.#at, end);
    this.#checkTerminator(end);
    return this.#take(WORDS.get(word) ?? 'identifier', end - this.#at);
  }

  /** A field or a variable, whose sign is at the place. */
  #name(kind: 'field' | 'variable'): Token {
    const start = this.#at + 1;
    if (this.#isTerminator(start)) return this.#take(kind === 'field' ? 'dot' : kind, 1);
    const end = this.#endOfName(start);
    this.#checkTerminator(end);
    return this.#take(kind, end - this.#at);
  }

  #number(): Token {
    const at = this.#at;
    const end = this.#endOfNumber(at);
    if (!/[-+]/.test(this.#input[end] ?? '')) return this.#take('number', end - at);
    const endOfPair = this.#endOfNumber(end);
    if (this.#input[endOfPair - 1] !== 'i') throw this.#badNumber(at, endOfPair);
    return this.#take('complex', endOfPair - at);
  }

  #endOfNumber(at: number): number {
    const pattern =
      /[-+]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][-+]?[0-9_]*)?|0[oO][0-7_]*(?:\.[0-7_]*)?|0[bB][01_]*(?:\.[01_]*)?|[0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9_]*)?)i?/y;
    pattern.lastIndex = at;
    const end = at + (pattern.exec(this.#input)?.[0].length ?? 0);
    if (this.#isAlphaNumeric(end)) throw this.#badNumber(at, end + 1);
    return end;
  }

  #badNumber(at: number, end: number): Halt {
    return this.#wrong(at, `bad number syntax: ${this.#input.slice(at, end)}`);
  }

  #endOfName(start: number): number {
    let end = start;
    while (this.#isAlphaNumeric(end)) end += runeAt(this.#input, end).width;
    return end;
  }

  #isAlphaNumeric(at: number): boolean {
    if (at >= this.#input.length) return false;
    const { code } = runeAt(this.#input, at);
    return code === 0x5f || isLetter(code) || isDigit(code);
  }

  /** Whether a name may end in front of the place. */
  #isTerminator(at: number): boolean {
    const next = this.#input[at];
    return next === undefined || /[ \t\r\n.,|:()]/.test(next) || this.#input.startsWith(RIGHT, at);
  }

  #checkTerminator(at: number): void {
    if (!this.#isTerminator(at)) throw this.#wrong(at, `bad character ${this.#shown(at)}`);
  }

  #isAtRight(): boolean {
    return this.#input.startsWith(RIGHT, this.#at) || this.#hasRightMarker(this.#at);
  }

  #hasLeftMarker(at: number): boolean {
    return this.#input[at] === '-' && SPACE.test(this.#input[at + 1] ?? '');
  }

  /** Whether a trim marker and a right delimiter begin at the place. */
  #hasRightMarker(at: number): boolean {
    return SPACE.test(this.#input[at] ?? '') && this.#input.startsWith(`-${RIGHT}`, at + 1);
  }

  #take(kind: TokenKind, length: number): Token {
    const at = this.#at;
    this.#at += length;
    return { kind, at, text: this.#input.slice(at, at + length) };
  }

  #shown(at: number): string {
    const { code } = runeAt(this.#input, at);
    return `U+${code.toString(16).toUpperCase().padStart(4, '0')} '${encodeRune(code)}'`;
  }

  #wrong(at: number, message: string): Halt {
    return new Halt('Syntax', message, at);
  }
}

function trimmedEndOf(input: Bytes, start: number, end: number): number {
  let trimmed = end;
  while (trimmed > start && SPACE.test(input[trimmed - 1] ?? '')) trimmed--;
  return trimmed;
}

/** Gives the tokens of a template, and takes some back. */
export class TokenReader {
  readonly #lexer: Lexer;
  /** Tokens that were read and given back; the last one is the next one. */
  readonly #ahead: Token[] = [];
  /** Place of the last token. */
  #at = 0;

  constructor(text: Bytes) {
    this.#lexer = new Lexer(text);
  }

  get at(): number {
    return this.#at;
  }

  next(): Token {
    const token = this.#ahead.pop() ?? this.#lexer.next();
    this.#at = token.at;
    return token;
  }

  unread(token: Token): void {
    this.#ahead.push(token);
  }

  peek(): Token {
    const token = this.next();
    this.unread(token);
    return token;
  }

  nextNonSpace(): Token {
    let token = this.next();
    while (token.kind === 'space') token = this.next();
    return token;
  }

  peekNonSpace(): Token {
    const token = this.nextNonSpace();
    this.unread(token);
    return token;
  }
}
