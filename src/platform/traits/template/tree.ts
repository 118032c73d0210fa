import type { Bytes } from './bytes.ts';

/** A number, as the text of the template has it. */
export interface NumberTerm {
  readonly kind: 'number';
  readonly at: number;
  readonly text: Bytes;
  /** Value for a parameter that is an integer. Undefined: the number is none. */
  readonly integer: bigint | undefined;
  /** Value for a parameter of any type. `overflow`: an integer above those of Go's int. */
  readonly constant: bigint | number | 'overflow';
}

export interface FieldTerm {
  readonly kind: 'field';
  readonly at: number;
  readonly names: readonly Bytes[];
}

export interface VariableTerm {
  readonly kind: 'variable';
  readonly at: number;
  /** With its `$`. */
  readonly name: Bytes;
  readonly fields: readonly Bytes[];
}

/** Fields of a function's result or of a pipeline in parentheses. */
export interface ChainTerm {
  readonly kind: 'chain';
  readonly at: number;
  readonly of: FunctionTerm | Pipeline;
  readonly fields: readonly Bytes[];
}

export interface FunctionTerm {
  readonly kind: 'function';
  readonly at: number;
  readonly name: Bytes;
}

export type Literal =
  | { readonly kind: 'nil' | 'dot'; readonly at: number }
  | { readonly kind: 'bool'; readonly at: number; readonly value: boolean }
  | { readonly kind: 'string'; readonly at: number; readonly value: Bytes }
  | NumberTerm;

export type Term = FieldTerm | VariableTerm | ChainTerm | FunctionTerm | Pipeline | Literal;

export interface Command {
  readonly at: number;
  readonly terms: readonly [Term, ...Term[]];
}

export interface Pipeline {
  readonly kind: 'pipeline';
  readonly at: number;
  /** Names of the variables that it declares or assigns. */
  readonly variables: readonly Bytes[];
  readonly isAssignment: boolean;
  readonly commands: readonly Command[];
}

export interface Branch {
  readonly kind: 'if' | 'with' | 'range';
  readonly at: number;
  readonly pipeline: Pipeline;
  readonly body: Block;
  readonly otherwise: Block | undefined;
}

export type Node =
  | { readonly kind: 'text'; readonly at: number; readonly text: Bytes }
  | { readonly kind: 'action'; readonly at: number; readonly pipeline: Pipeline }
  | { readonly kind: 'template'; readonly at: number; readonly name: Bytes; readonly pipeline: Pipeline | undefined }
  | { readonly kind: 'break' | 'continue'; readonly at: number }
  | Branch;

export type Block = readonly Node[];

/** Whether a block has nothing but space: Go lets such a definition be replaced. */
export function isEmpty(block: Block): boolean {
  return block.every((node) => node.kind === 'text' && isSpace(node.text));
}

/** Space of Go's `bytes.TrimSpace`. */
const SPACE = /^(?:[\t-\r ]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80)*/;

export function leadingSpaceOf(text: Bytes): Bytes {
  return SPACE.exec(text)?.[0] ?? '';
}

export function isSpace(text: Bytes): boolean {
  return leadingSpaceOf(text).length === text.length;
}
