import { type ConfigValue, isList, isMap, Literal } from './format/value.ts';
import { type ConfigFormat, parseContent } from './formats.ts';

/** Properties by their names, as Spring Boot has them. */
export type SpringProperties = ReadonlyMap<string, string | number | boolean>;
export type Flattened = { readonly properties: SpringProperties } | { readonly fault: string };

/** Formats with properties. */
export const FLAT_FORMATS: readonly ConfigFormat[] = ['yaml', 'properties', 'json'];
/** Keys of a YAML file that are no strings for Spring. */
const NO_STRING = /^(0|[1-9][0-9]*|true|false)$/;

/**
 * Properties of a file: `a.b[0].c`, by the rules of Spring Boot. A key in brackets, `"[a.b]"`, is one key of a map. A null
 * and an empty map or list are empty text.
 */
export function flatten(format: ConfigFormat, content: string): Flattened {
  if (!FLAT_FORMATS.includes(format)) return { fault: notFlat(format) };
  const parsed = parseContent(format, content);
  if ('fault' in parsed) {
    const { line, column, message } = parsed.fault;
    return { fault: `line ${line}, column ${column}: ${message}` };
  }
  if (!isMap(parsed.value)) return { fault: 'the file must have keys at its top, no list and no single value' };
  const properties = new Map<string, string | number | boolean>();
  add(properties, '', parsed.value, format === 'yaml');
  properties.delete('');
  return { properties };
}

/** Why a file of another format has no properties. */
export function notFlat(format: ConfigFormat): string {
  return `a file of the format ${format} has no properties: use ${FLAT_FORMATS.join(', ')}`;
}

type Properties = Map<string, string | number | boolean>;

function add(properties: Properties, path: string, value: ConfigValue, isYaml: boolean): void {
  if (!isMap(value) && !isList(value)) {
    properties.set(path, value instanceof Literal ? springValueOf(value) : value);
    return;
  }
  const entries = isMap(value)
    ? [...value].map(([key, item]) => [joined(path, isYaml && NO_STRING.test(key) ? `[${key}]` : key), item] as const)
    : value.map((item, index) => [`${path}[${index}]`, item] as const);
  if (entries.length === 0) properties.set(path, '');
  for (const [key, item] of entries) add(properties, key, item, isYaml);
}

function joined(path: string, key: string): string {
  return path === '' || key.startsWith('[') ? `${path}${key}` : `${path}.${key}`;
}

/** Decimals that JSON would change are text: `1.10` stays `1.10`. */
function springValueOf({ value, text }: Literal): string | number | boolean {
  if (value === null) return '';
  if (typeof value === 'boolean') return value;
  if (typeof value === 'bigint' || !Number.isFinite(value)) return String(value);
  return /^[-+]?[0-9]*[.eE][-+.eE0-9]*$/.test(text) && String(value) !== text ? text : value;
}
