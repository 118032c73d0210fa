import type { Bytes } from './bytes.ts';
import { equalsAny, isEqual, isLess, isLessOrEqual } from './compare.ts';
import { htmlEscaped, jsEscaped, queryEscaped } from './escapes.ts';
import { type Budget, failed, refused } from './fault.ts';
import { sprint, sprintln } from './format.ts';
import { fromJson, toJson } from './json.ts';
import {
  base64Decoded,
  base64Encoded,
  dictOf,
  indented,
  joinedBy,
  lowerCase,
  quotedValues,
  replacedIn,
  required,
  sha256Of,
  splitBy,
  trimmed,
  upperCase,
  withDefault,
} from './library.ts';
import { sprintf } from './printf.ts';
import { Dict, Int, intOf, isTrue, List, typeOf, type Value } from './value.ts';
import { toYaml } from './yaml.ts';

/** Type of a parameter in Go: `interface{}`, `string`, `int`, `map[string]interface{}`. */
export type Parameter = 'value' | 'string' | 'int' | 'dict';

export interface GoFunction {
  readonly fixed: readonly Parameter[];
  /** Type of further arguments. */
  readonly rest: Parameter | undefined;
  /** The arguments have the types of the parameters. */
  readonly call: (budget: Budget, values: readonly Value[]) => Value;
}

type Of<P extends Parameter> = { value: Value; string: Bytes; int: Int; dict: Dict }[P];
type Arguments<P extends readonly Parameter[]> = { -readonly [K in keyof P]: Of<P[K]> };

function fixed<const P extends readonly Parameter[]>(
  parameters: P,
  call: (budget: Budget, ...values: Arguments<P>) => Value,
): GoFunction {
  return { fixed: parameters, rest: undefined, call: (budget, values) => call(budget, ...(values as Arguments<P>)) };
}

function variadic<const P extends readonly Parameter[]>(
  parameters: P,
  call: (budget: Budget, values: Arguments<P>, rest: readonly Value[]) => Value,
): GoFunction {
  const count = parameters.length;
  return {
    fixed: parameters,
    rest: 'value',
    call: (budget, values) => call(budget, values.slice(0, count) as Arguments<P>, values.slice(count)),
  };
}

/** `and` and `or` are evaluated where their arguments are: they need not evaluate all. */
function shortCircuit(): GoFunction {
  return variadic(['value'], () => {
    throw failed('and, or');
  });
}

const FUNCTIONS: ReadonlyMap<Bytes, GoFunction> = new Map<Bytes, GoFunction>([
  ['and', shortCircuit()],
  ['or', shortCircuit()],
  ['not', fixed(['value'], (_, value) => !isTrue(value))],
  [
    'call',
    variadic(['value'], (_, [callee]) => {
      throw failed(`call of ${typeOf(callee)}, which is no function`);
    }),
  ],
  ['eq', variadic(['value'], (_, [first], others) => equalsAny(first, others))],
  ['ne', fixed(['value', 'value'], (_, a, b) => !isEqual(a, b))],
  ['lt', fixed(['value', 'value'], (_, a, b) => isLess(a, b))],
  ['le', fixed(['value', 'value'], (_, a, b) => isLessOrEqual(a, b))],
  ['gt', fixed(['value', 'value'], (_, a, b) => !isLessOrEqual(a, b))],
  ['ge', fixed(['value', 'value'], (_, a, b) => !isLess(a, b))],
  ['len', fixed(['value'], (_, value) => intOf(lengthOf(value)))],
  ['index', variadic(['value'], (_, [value], indexes) => indexed(value, indexes))],
  ['slice', variadic(['value'], (budget, [value], indexes) => sliced(budget, value, indexes))],
  ['print', variadic([], (budget, _, values) => sprint(budget, values))],
  ['println', variadic([], (budget, _, values) => sprintln(budget, values))],
  ['printf', variadic(['string'], (budget, [format], values) => sprintf(budget, format, values))],
  ['html', variadic([], (budget, _, values) => htmlEscaped(budget, shown(budget, values)))],
  ['js', variadic([], (budget, _, values) => jsEscaped(budget, shown(budget, values)))],
  ['urlquery', variadic([], (budget, _, values) => queryEscaped(budget, shown(budget, values)))],

  ['b64enc', fixed(['string'], (_, text) => base64Encoded(text))],
  ['b64dec', fixed(['string'], (_, text) => base64Decoded(text))],
  ['quote', variadic([], (budget, _, values) => quotedValues(budget, values))],
  ['default', variadic(['value'], (_, [usual], given) => withDefault(usual, given))],
  ['required', fixed(['string', 'value'], (_, message, value) => required(message, value))],
  ['toJson', fixed(['value'], toJson)],
  ['toYaml', fixed(['value'], toYaml)],
  ['fromJson', fixed(['string'], fromJson)],
  ['indent', fixed(['int', 'string'], (budget, { value }, text) => indented(budget, value, text))],
  ['nindent', fixed(['int', 'string'], (budget, { value }, text) => `\n${indented(budget, value, text)}`)],
  ['upper', fixed(['string'], (_, text) => upperCase(text))],
  ['lower', fixed(['string'], (_, text) => lowerCase(text))],
  ['trim', fixed(['string'], (_, text) => trimmed(text))],
  ['replace', fixed(['string', 'string', 'string'], replacedIn)],
  ['split', fixed(['string', 'string'], splitBy)],
  ['join', fixed(['string', 'value'], joinedBy)],
  ['list', variadic([], (_, __, values) => new List(values))],
  ['dict', variadic([], (budget, _, values) => dictOf(budget, values))],
  ['hasKey', fixed(['dict', 'string'], (_, { entries }, key) => entries.has(key))],
  ['sha256sum', fixed(['string'], (_, text) => sha256Of(text))],
]);

export const FUNCTION_NAMES: readonly string[] = [...FUNCTIONS.keys()];

export function isFunction(name: Bytes): boolean {
  return FUNCTIONS.has(name);
}

export function functionOf(name: Bytes): GoFunction {
  const found = FUNCTIONS.get(name);
  if (found === undefined) throw failed(`"${name}" is not a defined function`);
  return found;
}

/** The text of the arguments of `html`, `js` and `urlquery`, in which null is what an action writes for it. */
function shown(budget: Budget, values: readonly Value[]): Bytes {
  return sprint(
    budget,
    values.map((value) => value ?? NO_VALUE),
  );
}

/** Text that an action writes for null. */
export const NO_VALUE = '<no value>';

function lengthOf(value: Value): number {
  if (typeof value === 'string') return value.length;
  if (value instanceof List) return value.items.length;
  if (value instanceof Dict) return value.entries.size;
  throw failed(`len of type ${typeOf(value)}`);
}

function indexed(value: Value, indexes: readonly Value[]): Value {
  if (value === null) throw failed('index of untyped nil');
  return indexes.reduce(itemOf, value);
}

function itemOf(value: Value, index: Value): Value {
  if (value instanceof Dict) {
    if (typeof index !== 'string') throw failed(`value has type ${typeOf(index)}; should be string`);
    const found = value.entries.get(index);
    return found === undefined && value.hasStrings ? '' : (found ?? null);
  }
  if (value instanceof List) return value.items[placeOf(index, value.items.length - 1)] ?? null;
  if (typeof value !== 'string') throw failed(`can't index item of type ${typeOf(value)}`);
  return new Int(BigInt(value.charCodeAt(placeOf(index, value.length - 1))), 'uint8');
}

/** An index as a number, if it is not above `last`. */
function placeOf(index: Value, last: number): number {
  if (!(index instanceof Int)) throw failed(`cannot index slice/array with type ${typeOf(index)}`);
  if (index.value < 0n || index.value > BigInt(last)) throw failed(`index out of range: ${index.value}`);
  return Number(index.value);
}

function sliced(budget: Budget, value: Value, indexes: readonly Value[]): Value {
  if (indexes.length > 3) throw failed(`too many slice indexes: ${indexes.length}`);
  if (typeof value === 'string') {
    if (indexes.length === 3) throw failed('cannot 3-index slice a string');
    const [start, end] = boundsOf(indexes, value.length);
    return value.slice(start, end);
  }
  if (!(value instanceof List)) throw failed(`can't slice item of type ${typeOf(value)}`);
  const { length } = value.items;
  budget.spend(length / 64);
  // A slice of Go reaches up to its capacity, which depends on how the list came about.
  if (indexes.some((index) => index instanceof Int && index.value > BigInt(length))) {
    throw refused(`slice: an index is beyond the length ${length} of the list`);
  }
  const [start, end] = boundsOf(indexes, length);
  return new List(value.items.slice(start, end));
}

function boundsOf(indexes: readonly Value[], length: number): [start: number, end: number] {
  const [start = 0, end = length, most = length] = indexes.map((index) => placeOf(index, length));
  if (start > end) throw failed(`invalid slice index: ${start} > ${end}`);
  if (end > most) throw failed(`invalid slice index: ${end} > ${most}`);
  return [start, end];
}
