import { shortened } from '../../../shortened.ts';
import { type Bytes, bytesOf, lossyTextOf, textOf } from './bytes.ts';
import { Budget, faultAt, Halt, LIMITS, type Limits, refused, type TemplateFault } from './fault.ts';
import { parseTrees } from './parser.ts';
import { fieldReferencesOf } from './references.ts';
import { renderTree } from './render.ts';
import type { Block } from './tree.ts';
import { goValueOf } from './value.ts';

export { type FaultCode, LIMITS, type Limits, type TemplateFault } from './fault.ts';
export { FUNCTION_NAMES } from './functions.ts';

/** Longest message of a fault: it stands in events and conditions. */
const MAX_MESSAGE = 300;

/** A template that was read. It can be rendered any number of times. */
export interface Template {
  readonly name: string;
  readonly text: Bytes;
  /** Trees of the template and of those that it defines. */
  readonly trees: ReadonlyMap<Bytes, Block>;
}

export type Parsed = { readonly template: Template } | { readonly fault: TemplateFault };
export type Rendered = { readonly text: string } | { readonly fault: TemplateFault };

/** Reads a template of Go's `text/template`. `name`: name of the trait, for its faults. */
export function parseTemplate(name: string, text: string, limits: Limits = LIMITS): Parsed {
  const bytes = bytesOf(text);
  try {
    if (bytes.length > limits.templateBytes) {
      throw new Halt('Limit', `the template has more than ${limits.templateBytes} bytes`);
    }
    return { template: { name, text: bytes, trees: parseTrees(bytesOf(name), bytes, limits.depth) } };
  } catch (error) {
    return { fault: faultOf(error, name, bytes) };
  }
}

/** Renders a template with data of JSON. A key that is missing is a fault. */
export function renderTemplate({ name, text, trees }: Template, data: unknown, limits: Limits = LIMITS): Rendered {
  const budget = new Budget(limits);
  try {
    const rendered = textOf(renderTree(trees, bytesOf(name), goValueOf(data, budget), budget));
    if (rendered === undefined) throw refused('the output is no UTF-8 text');
    return { text: rendered };
  } catch (error) {
    return { fault: faultOf(error, name, text) };
  }
}

/** A field of the data that a template reads, with its place. */
export interface Reference {
  readonly names: readonly string[];
  readonly line: number;
  readonly column: number;
}

/** Fields that a template surely reads from its data, such as `Params` and `NAME`. A check compares them with a list. */
export function referencesOf({ name, text, trees }: Template): Reference[] {
  return fieldReferencesOf(trees, bytesOf(name)).map(({ names, at }) => {
    const { line, column } = faultAt({ name, text }, { code: 'Syntax', message: '', offset: at });
    return { names: names.map(lossyTextOf), line, column };
  });
}

function faultOf(error: unknown, name: string, text: Bytes): TemplateFault {
  if (!(error instanceof Halt)) throw error;
  const { code, message, offset = 0 } = error;
  return faultAt({ name, text }, { code, message: shortened(lossyTextOf(message), MAX_MESSAGE), offset });
}
