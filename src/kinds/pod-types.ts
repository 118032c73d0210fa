import podTypes from './pod-types.json' with { type: 'json' };

/**
 * Types of the API by name, and the types of their fields. `npm run pod-types` writes pod-types.json from the OpenAPI
 * document of the Kubernetes that the tests run on.
 *
 * A field is a value (`string`, `boolean`, `int32`, `int64`, `quantity`, `intOrString`; `openObject`: an object whose
 * fields are not checked), a type by its name, a list (`EnvVar[name]`: `name` is the key of its items; `string[]`: it
 * has no key and is changed as a whole) or a map (`map<string>`). `!` at the end: it is required. A type with
 * `@: atomic` is changed as a whole.
 */
export type PodTypes = Readonly<Record<string, Readonly<Record<string, string>>>>;

export const POD_TYPES: PodTypes = podTypes;

/** A field, or the items of a list or a map. */
export type FieldType =
  | { readonly form: 'value'; readonly of: string }
  | { readonly form: 'object'; readonly of: string }
  | { readonly form: 'list'; readonly of: FieldType; readonly keys: readonly string[] }
  | { readonly form: 'map'; readonly of: FieldType };

export interface Field {
  readonly name: string;
  /** `Toleration.effect`. */
  readonly id: string;
  readonly type: FieldType;
  readonly isRequired: boolean;
}

export interface PodType {
  readonly name: string;
  readonly isAtomic: boolean;
  readonly fields: ReadonlyMap<string, Field>;
}

const parsed = new Map<string, PodType>();

/** Throws RangeError for a type that is not part of a Pod. */
export function podTypeOf(name: string): PodType {
  const known = parsed.get(name);
  if (known) return known;
  if (POD_TYPES[name] === undefined) throw new RangeError(`a Pod has no type ${name}`);
  const { '@': atomic, ...texts } = POD_TYPES[name];
  const fields = Object.entries(texts).map(([field, text]): [string, Field] => {
    const isRequired = text.endsWith('!');
    const type = fieldTypeOf(isRequired ? text.slice(0, -1) : text);
    return [field, { name: field, id: `${name}.${field}`, type, isRequired }];
  });
  const type = { name, isAtomic: atomic !== undefined, fields: new Map(fields) };
  parsed.set(name, type);
  return type;
}

const LIST = /^(.*)\[([A-Za-z,]*)\]$/;
const MAP = /^map<(.*)>$/;

function fieldTypeOf(text: string): FieldType {
  const [, item, keys = ''] = LIST.exec(text) ?? [];
  if (item !== undefined) return { form: 'list', of: fieldTypeOf(item), keys: keys === '' ? [] : keys.split(',') };
  const value = MAP.exec(text)?.[1];
  if (value !== undefined) return { form: 'map', of: fieldTypeOf(value) };
  return { form: POD_TYPES[text] === undefined ? 'value' : 'object', of: text };
}
