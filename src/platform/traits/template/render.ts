import type { Bytes } from './bytes.ts';
import { type Budget, failed, Halt, refused, Writer } from './fault.ts';
import { textOfValue } from './format.ts';
import { functionOf, type GoFunction, NO_VALUE, type Parameter } from './functions.ts';
import type { Block, Branch, ChainTerm, Command, FieldTerm, FunctionTerm, Node, Pipeline, Term } from './tree.ts';
import { Dict, Int, intOf, isTrue, List, sortedEntriesOf, typeOf, type Value } from './value.ts';

/** The way on behind a node: to the next one, out of the loop, or to its next round. */
type Way = 'on' | 'break' | 'continue';

interface Variable {
  readonly name: Bytes;
  value: Value;
  /** Whether Go has the value within an `interface {}`: it is an item of a list or a map. */
  isBoxed: boolean;
}

/** The value of the command in front, or undefined for the first command of a pipeline. */
type Piped = Value | undefined;

/** Text of a template. Throws a Halt that has the place. */
export function renderTree(trees: ReadonlyMap<Bytes, Block>, name: Bytes, data: Value, budget: Budget): Bytes {
  return new Renderer(trees, budget).render(name, data);
}

/** Walks a tree as `text/template` does, with its rules for variables and for the types of arguments. */
class Renderer {
  readonly #trees: ReadonlyMap<Bytes, Block>;
  readonly #budget: Budget;
  readonly #out: Writer;
  /** Those of the template that runs; the last one with a name counts. */
  #variables: Variable[] = [];
  #depth = 0;
  /** Place of the node that is evaluated. */
  #at = 0;

  constructor(trees: ReadonlyMap<Bytes, Block>, budget: Budget) {
    this.#trees = trees;
    this.#budget = budget;
    this.#out = new Writer(budget);
  }

  render(name: Bytes, data: Value): Bytes {
    try {
      this.#template(name, data);
      return this.#out.text;
    } catch (error) {
      throw error instanceof Halt ? new Halt(error.code, error.message, error.offset ?? this.#at) : error;
    }
  }

  #template(name: Bytes, dot: Value): void {
    const tree = this.#trees.get(name);
    if (tree === undefined) throw failed(`template "${name}" not defined`);
    const outer = this.#variables;
    this.#variables = [{ name: '$', value: dot, isBoxed: false }];
    this.#block(tree, dot);
    this.#variables = outer;
  }

  #block(block: Block, dot: Value): Way {
    this.#budget.checkDepth(++this.#depth);
    let way: Way = 'on';
    for (const node of block) {
      way = this.#node(node, dot);
      if (way !== 'on') break;
    }
    this.#depth--;
    return way;
  }

  #node(node: Node, dot: Value): Way {
    this.#step(node.at);
    switch (node.kind) {
      case 'text':
        this.#out.write(node.text);
        return 'on';
      case 'action':
        this.#action(node.pipeline, dot);
        return 'on';
      case 'template': {
        // Go asks for the template before it evaluates the argument.
        if (!this.#trees.has(node.name)) throw failed(`template "${node.name}" not defined`);
        this.#template(node.name, node.pipeline === undefined ? null : this.#pipeline(node.pipeline, dot));
        return 'on';
      }
      case 'range':
        return this.#range(node, dot);
      case 'if':
      case 'with':
        return this.#branch(node, dot);
      default:
        return node.kind;
    }
  }

  #action(pipeline: Pipeline, dot: Value): void {
    const value = this.#pipeline(pipeline, dot);
    if (pipeline.variables.length > 0) return;
    this.#at = pipeline.at;
    this.#out.write(value === null ? NO_VALUE : textOfValue(this.#budget, value));
  }

  #branch({ kind, pipeline, body, otherwise }: Branch, dot: Value): Way {
    const mark = this.#variables.length;
    const value = this.#pipeline(pipeline, dot);
    let way: Way = 'on';
    if (isTrue(value)) way = this.#block(body, kind === 'with' ? value : dot);
    else if (otherwise !== undefined) way = this.#block(otherwise, dot);
    this.#variables.length = mark;
    return way;
  }

  #range(branch: Branch, dot: Value): Way {
    const mark = this.#variables.length;
    const value = this.#pipeline(branch.pipeline, dot);
    this.#at = branch.at;
    let [hasRun, way]: [boolean, Way] = [false, 'on'];
    const isBoxed = value instanceof List || (value instanceof Dict && !value.hasStrings);
    for (const [index, item] of roundsOf(this.#budget, value, branch.pipeline.variables.length)) {
      hasRun = true;
      way = this.#round(branch, index, item, isBoxed);
      if (way === 'break') break;
    }
    way = 'on';
    if (!hasRun && branch.otherwise !== undefined) way = this.#block(branch.otherwise, dot);
    this.#variables.length = mark;
    return way;
  }

  #round({ at, pipeline, body }: Branch, index: Value, item: Value, isBoxed: boolean): Way {
    this.#step(at);
    const [first, second] = pipeline.variables;
    const mark = this.#variables.length;
    if (pipeline.isAssignment) {
      if (first !== undefined && second !== undefined) this.#assign(first, index, false);
      const last = second ?? first;
      if (last !== undefined) this.#assign(last, item, isBoxed);
    } else {
      // The variables of the pipeline are on top: the value, and the index below it.
      if (first !== undefined) this.#setTop(1, item, isBoxed);
      if (second !== undefined) this.#setTop(2, index, false);
    }
    const way = this.#block(body, item);
    this.#variables.length = mark;
    return way;
  }

  #setTop(place: number, value: Value, isBoxed: boolean): void {
    const variable = this.#variables.at(-place);
    if (variable === undefined) return;
    this.#variables[this.#variables.length - place] = { name: variable.name, value, isBoxed };
  }

  #find(name: Bytes): Variable {
    for (let index = this.#variables.length - 1; index >= 0; index--) {
      const variable = this.#variables[index];
      if (variable?.name !== name) continue;
      this.#budget.spend((this.#variables.length - index) / 64);
      return variable;
    }
    throw failed(`undefined variable: ${name}`);
  }

  #assign(name: Bytes, value: Value, isBoxed: boolean): void {
    const variable = this.#find(name);
    variable.value = value;
    variable.isBoxed = isBoxed;
  }

  #pipeline(pipeline: Pipeline, dot: Value): Value {
    this.#budget.checkDepth(++this.#depth);
    this.#at = pipeline.at;
    let value: Piped;
    for (const command of pipeline.commands) value = this.#command(command, dot, value);
    const result = value ?? null;
    for (const name of pipeline.variables) {
      if (pipeline.isAssignment) this.#assign(name, result, false);
      else this.#variables.push({ name, value: result, isBoxed: false });
    }
    this.#depth--;
    return result;
  }

  #command({ at, terms }: Command, dot: Value, piped: Piped): Value {
    const [first, ...rest] = terms;
    this.#step(first.at);
    if (first.kind === 'function') return this.#call(first, rest, dot, piped);
    const hasArguments = rest.length > 0 || piped !== undefined;
    // Go evaluates the fields in front of the last one first; either way there is no text.
    if (hasArguments) throw new Halt('Execution', "can't give argument to non-function", at);
    if (first.kind === 'nil') throw failed('nil is not a command');
    return this.#value(first, dot);
  }

  #value(term: Term, dot: Value): Value {
    switch (term.kind) {
      case 'dot':
        return dot;
      case 'nil':
        return null;
      case 'bool':
      case 'string':
        return term.value;
      case 'number': {
        const { constant } = term;
        if (constant === 'overflow') throw failed(`${term.text} overflows int`);
        return typeof constant === 'bigint' ? intOf(constant) : constant;
      }
      case 'field':
        return this.#field(term, dot);
      case 'variable':
        return this.#fields(term, this.#find(term.name).value, term.fields, term.name);
      case 'chain':
        return this.#chain(term, dot);
      case 'function':
        return this.#call(term, [], dot, undefined);
      case 'pipeline':
        return this.#pipeline(term, dot);
    }
  }

  #field(term: FieldTerm, dot: Value): Value {
    return this.#fields(term, dot, term.names, '');
  }

  #chain(term: ChainTerm, dot: Value): Value {
    return this.#fields(term, this.#value(term.of, dot), term.fields, '(...)');
  }

  /** `path`: text of what the fields are taken from. */
  #fields({ at }: { at: number }, from: Value, names: readonly Bytes[], path: Bytes): Value {
    let value = from;
    for (const [index, name] of names.entries()) {
      this.#step(at);
      const field = value instanceof Dict ? value.entries.get(name) : undefined;
      if (field === undefined) throw new Halt('Execution', missing(value, path, names.slice(0, index + 1)), at);
      value = field;
    }
    return value;
  }

  #call(term: FunctionTerm, rest: readonly Term[], dot: Value, piped: Piped): Value {
    const called = functionOf(term.name);
    checkCount(term.name, called, rest.length + (piped === undefined ? 0 : 1));
    if (term.name === 'and' || term.name === 'or') return this.#shortCircuit(term.name, rest, dot, piped);
    const values = rest.map((argument, index) => this.#argument(argument, parameterOf(called, index), dot));
    this.#at = term.at;
    if (term.name === 'slice') for (const index of rest.slice(1)) this.#checkIndex(index);
    if (piped !== undefined) values.push(checked(piped, parameterOf(called, rest.length)));
    this.#budget.spend(1 + values.length / 4);
    for (const value of values) if (typeof value === 'string') this.#budget.spendBytes(value.length);
    const result = called.call(this.#budget, values);
    if (typeof result === 'string') {
      this.#budget.checkLength(result.length);
      this.#budget.spendBytes(result.length);
    }
    return result;
  }

  /** Go's `slice`, unlike `index`, takes no index out of an `interface {}`. */
  #checkIndex(term: Term): void {
    if (term.kind === 'dot') throw refused('slice: the dot as an index (write it in parentheses)');
    const isField = term.kind === 'field' || term.kind === 'chain';
    const isItem = term.kind === 'variable' && (term.fields.length > 0 || this.#find(term.name).isBoxed);
    if (isField || isItem) throw failed('cannot index slice/array with type interface {} (write it in parentheses)');
  }

  #shortCircuit(name: Bytes, rest: readonly Term[], dot: Value, piped: Piped): Value {
    let value: Value = null;
    for (const term of rest) {
      value = this.#argument(term, 'value', dot);
      if (isTrue(value) === (name === 'or')) return value;
    }
    return piped === undefined ? value : piped;
  }

  #argument(term: Term, parameter: Parameter, dot: Value): Value {
    this.#step(term.at);
    switch (term.kind) {
      case 'nil':
        if (parameter === 'dict') throw refused('nil for a map');
        if (parameter !== 'value') throw failed(`cannot assign nil to ${parameter}`);
        return null;
      case 'number':
        if (parameter !== 'int') return this.#literal(term, parameter === 'value', parameter, dot);
        if (term.integer === undefined) throw failed(`expected integer; found ${term.text}`);
        return intOf(term.integer);
      case 'string':
        return this.#literal(term, parameter === 'value' || parameter === 'string', parameter, dot);
      case 'bool':
        return this.#literal(term, parameter === 'value', parameter, dot);
      default: {
        const value = this.#value(term, dot);
        this.#at = term.at;
        return checked(value, parameter);
      }
    }
  }

  #literal(term: Term, isOfType: boolean, parameter: Parameter, dot: Value): Value {
    if (!isOfType) throw failed(`expected ${parameter}; found a ${term.kind}`);
    return this.#value(term, dot);
  }

  #step(at: number): void {
    this.#at = at;
    this.#budget.spend();
  }
}

function checkCount(name: Bytes, { fixed, rest }: GoFunction, count: number): void {
  if (rest === undefined ? count === fixed.length : count >= fixed.length) return;
  const wanted = `${rest === undefined ? '' : 'at least '}${fixed.length}`;
  throw failed(`wrong number of args for ${name}: want ${wanted} got ${count}`);
}

function parameterOf({ fixed, rest }: GoFunction, index: number): Parameter {
  return fixed[index] ?? rest ?? 'value';
}

/** The value, if Go can assign it to a parameter of the type. */
function checked(value: Value, parameter: Parameter): Value {
  if (parameter === 'dict' && value === null) throw refused('null for a map');
  if (isAssignable(value, parameter)) return value;
  throw failed(`wrong type for value; expected ${parameter}; got ${typeOf(value)}`);
}

function isAssignable(value: Value, parameter: Parameter): boolean {
  switch (parameter) {
    case 'value':
      return true;
    case 'string':
      return typeof value === 'string';
    case 'int':
      return value instanceof Int && value.type === 'int';
    case 'dict':
      return value instanceof Dict && !value.hasStrings;
  }
}

function missing(value: Value, path: Bytes, names: readonly Bytes[]): string {
  const name = names.at(-1) ?? '';
  const whole = `${path}.${names.join('.')}`;
  if (value instanceof Dict) return `${whole}: the map has no entry for key "${name}"`;
  if (value === null) return `${whole}: nil data; no entry for key "${name}"`;
  return `${whole}: can't evaluate field ${name} in type ${typeOf(value)}`;
}

/** Index and item of each round of a range. */
function* roundsOf(budget: Budget, value: Value, variables: number): Generator<[Value, Value]> {
  if (value === null) return;
  if (value instanceof List) {
    for (const [index, item] of value.items.entries()) yield [intOf(index), item];
  } else if (value instanceof Dict) {
    yield* sortedEntriesOf(budget, value);
  } else if (value instanceof Int) {
    if (variables > 1) throw failed("can't use an integer to iterate over more than one variable");
    for (let item = 0n; item < value.value; item++) yield [null, new Int(item, value.type)];
  } else {
    throw failed(`range can't iterate over a ${typeOf(value)}`);
  }
}
