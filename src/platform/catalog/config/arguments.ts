import { APPLICATION_JSON, PINNED_PROPERTIES } from '../compose/compose.ts';
import { FLAT_FORMATS, flatten, notFlat, type SpringProperties } from './flatten.ts';
import type { ConfigFormat } from './formats.ts';

/** Maximum size of all arguments that carry configuration, in bytes. */
export const MAX_ARGUMENT_BYTES = 8 * 1024;

/** A configuration that a Module runs with. */
export interface ModuleConfigInForce {
  readonly name: string;
  readonly format: ConfigFormat;
  /** Content of the version. */
  readonly content: string;
}

/** A configuration that a Module reads over HTTP. */
export interface HttpConfigInForce {
  readonly name: string;
  readonly format: ConfigFormat;
  /** Id of the version. */
  readonly version: string;
}

export type ConfigArguments = { readonly args: readonly string[] } | { readonly fault: string };

/** Environment variables of a base, which its modules read their configuration with. */
const URL_VARIABLE = 'MODULE_CONFIG_URL';
const TOKEN_VARIABLE = 'MODULE_CONFIG_TOKEN';
/** Between ids of versions: Spring takes what commas separate as alternatives. */
export const VERSION_SEPARATOR = '.';
/**
 * Arguments of the container of a module with its configuration: one `--spring.application.json=` with all properties,
 * those of later configurations first.
 */
export function argumentsOf(
  namespace: string,
  configs: readonly ModuleConfigInForce[],
  overHttp: readonly HttpConfigInForce[] = [],
): ConfigArguments {
  const all = new Map<string, string | number | boolean>();
  for (const { name, format, content } of configs) {
    const flat = flatten(format, content);
    if ('fault' in flat) return { fault: `configs: ModuleConfig ${name}: ${flat.fault}` };
    override(all, flat.properties);
  }
  if (overHttp.length > 0) {
    const fault = httpFault(overHttp, all);
    if (fault !== undefined) return { fault };
    override(all, clientProperties(namespace, overHttp));
  }
  if (all.size === 0) return { args: [] };
  const arg = `${APPLICATION_JSON}=${jsonOf(all)}`;
  const size = Buffer.byteLength(arg);
  if (size <= MAX_ARGUMENT_BYTES) return { args: [arg] };
  const names = [...configs, ...overHttp].map(({ name }) => name).join(', ');
  return {
    fault: `configs: ${names} need ${size} bytes of arguments, at most ${MAX_ARGUMENT_BYTES} are possible: use \`as: Http\``,
  };
}

function httpFault(
  overHttp: readonly HttpConfigInForce[],
  properties: ReadonlyMap<string, unknown>,
): string | undefined {
  const other = overHttp.find(({ format }) => !FLAT_FORMATS.includes(format));
  if (other !== undefined) return `configs: ModuleConfig ${other.name}: ${notFlat(other.format)}`;
  const own = [...properties.keys()].find((key) =>
    PINNED_PROPERTIES.some((pinned) => key === pinned || listOf(key) === pinned),
  );
  return own === undefined ? undefined : `configs: ${own} belongs to \`as: Http\`: remove it from the content`;
}

/**
 * Properties for the client of Spring Cloud Config. Of one key that several configurations have, the last one counts.
 * The base knows the address and the token: both are secrets of its place, and not of the Module's.
 */
function clientProperties(namespace: string, overHttp: readonly HttpConfigInForce[]): SpringProperties {
  return new Map([
    ['spring.config.import', `configserver:\${${URL_VARIABLE}}/config/${namespace}`],
    ['spring.cloud.config.name', overHttp.map(({ name }) => name).join(',')],
    ['spring.cloud.config.profile', 'default'],
    ['spring.cloud.config.label', overHttp.map(({ version }) => version).join(VERSION_SEPARATOR)],
    ['spring.cloud.config.headers.Authorization', `Bearer \${${TOKEN_VARIABLE}:}`],
  ]);
}

/** Later properties win. A list replaces a list of the same name as a whole, as Spring has it of two sources. */
function override(all: Map<string, string | number | boolean>, later: SpringProperties): void {
  const lists = new Set([...later.keys()].map((key) => listOf(key) ?? key));
  for (const key of all.keys()) if (lists.has(listOf(key) ?? key)) all.delete(key);
  for (const [key, value] of later) all.set(key, value);
}

/** Name of the outermost list that a property is in. */
function listOf(key: string): string | undefined {
  return /^(.*?)\[[0-9]+\]/.exec(key)?.[1];
}

/** Properties may be named as those that every object has, or like numbers: the order stays. */
function jsonOf(properties: SpringProperties): string {
  return objectText([...properties]);
}

/** A JSON object with its keys in this order. */
export function objectText(pairs: readonly (readonly [key: string, value: string | number | boolean])[]): string {
  return `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`;
}
