import { isObject, type Json, type JsonObject } from './json.ts';
import type { Shape } from './shape.ts';

/** A step into a value: the name of a field, a key of a map, or the key of an item in a list. */
export type Step = string | { readonly item: string };
export type Path = readonly Step[];

/** `spec.template.spec.containers["shop"].image`. */
export function pathText(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'string') return text === '' ? step : `${text}.${step}`;
    return `${text}[${keyWords(step.item)}]`;
  }, '');
}

/** Text by which paths are equal. */
export function pathKey(path: Path): string {
  return JSON.stringify(path);
}

export function isWithin(path: Path, outer: Path): boolean {
  return outer.length <= path.length && outer.every((step, index) => isSameStep(step, path[index]));
}

function isSameStep(a: Step, b: Step | undefined): boolean {
  return typeof a === 'string' || typeof b === 'string' || b === undefined ? a === b : a.item === b.item;
}

/** The key of an item for people: `["shop"]` is `"shop"`, and an object stays as it is. */
function keyWords(item: string): string {
  return item.startsWith('[') ? item.slice(1, -1) : item;
}

/** The value at a path, in an object of a shape; undefined: there is none. */
export function valueAt(value: Json | undefined, shape: Shape | undefined, path: Path): Json | undefined {
  const [step, ...rest] = path;
  if (step === undefined || value === undefined || shape === undefined) return path.length === 0 ? value : undefined;
  if (typeof step === 'string') {
    if (!isObject(value) || !Object.hasOwn(value, step)) return undefined;
    return valueAt(value[step], childShape(shape, step), rest);
  }
  const index = indexIn(value, shape, step);
  return index === -1 ? undefined : valueAt((value as readonly Json[])[index], itemShape(shape), rest);
}

/**
 * The value with another one at a path; `undefined` removes it. Only the values on the way to it are copied. A path that
 * leads nowhere changes nothing.
 */
export function withValueAt(value: Json, shape: Shape | undefined, path: Path, to: Json | undefined): Json {
  const [step, ...rest] = path;
  if (step === undefined || shape === undefined) return value;
  const inner = (before: Json | undefined, child: Shape | undefined): Json | undefined =>
    rest.length === 0 || before === undefined
      ? rest.length === 0
        ? to
        : undefined
      : withValueAt(before, child, rest, to);
  if (typeof step === 'string') {
    if (!isObject(value)) return value;
    const before = Object.hasOwn(value, step) ? value[step] : undefined;
    return withField(value, step, inner(before, childShape(shape, step)));
  }
  const index = indexIn(value, shape, step);
  if (index === -1) return value;
  const items = value as readonly Json[];
  const after = inner(items[index], itemShape(shape));
  return after === undefined ? items.toSpliced(index, 1) : items.with(index, after);
}

/** The order of keys stays. */
function withField(object: JsonObject, key: string, value: Json | undefined): JsonObject {
  const entries = Object.entries(object).filter(([one]) => one !== key || value !== undefined);
  const isNew = !Object.hasOwn(object, key) && value !== undefined;
  const changed = entries.map(([one, was]) => [one, one === key ? (value as Json) : was] as const);
  return Object.fromEntries(isNew ? [...changed, [key, value]] : changed);
}

function indexIn(value: Json, shape: Shape, { item }: { readonly item: string }): number {
  if (!Array.isArray(value) || shape.form !== 'list') return -1;
  return value.findIndex((one: Json) => shape.keyOf(one) === item);
}

export function childShape(shape: Shape | undefined, name: string): Shape | undefined {
  if (shape?.form === 'object') return shape.field(name);
  return shape?.form === 'map' ? ENTRY : undefined;
}

function itemShape(shape: Shape): Shape | undefined {
  return shape.form === 'list' ? (shape.of ?? { form: 'value', normal: shape.item, unset: undefined }) : undefined;
}

/** A value of a map. */
const ENTRY: Shape = { form: 'value', normal: (value) => JSON.stringify(value), unset: undefined };
