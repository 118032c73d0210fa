import { APPLICATION_JSON } from '../compose/compose.ts';
import { flatten } from './flatten.ts';
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

export type ConfigArguments = { readonly args: readonly string[] } | { readonly fault: string };

/**
 * Arguments of the container of a module with its configuration: one `--spring.application.json=` with all properties,
 * those of later configurations first.
 */
export function argumentsOf(configs: readonly ModuleConfigInForce[]): ConfigArguments {
  const all = new Map<string, string | number | boolean>();
  for (const { name, format, content } of configs) {
    const flat = flatten(format, content);
    if ('fault' in flat) return { fault: `configs: ModuleConfig ${name}: ${flat.fault}` };
    override(all, flat.properties);
  }
  if (all.size === 0) return { args: [] };
  const arg = `${APPLICATION_JSON}=${jsonOf(all)}`;
  const size = Buffer.byteLength(arg);
  if (size <= MAX_ARGUMENT_BYTES) return { args: [arg] };
  const names = configs.map(({ name }) => name).join(', ');
  return { fault: `configs: ${names} need ${size} bytes of arguments, at most ${MAX_ARGUMENT_BYTES} are possible` };
}

/** Later properties win. A list replaces a list of the same name as a whole, as Spring has it of two sources. */
function override(
  all: Map<string, string | number | boolean>,
  later: ReadonlyMap<string, string | number | boolean>,
): void {
  const lists = new Set([...later.keys()].map((key) => listOf(key) ?? key));
  for (const key of all.keys()) if (lists.has(listOf(key) ?? key)) all.delete(key);
  for (const [key, value] of later) all.set(key, value);
}

/** Name of the outermost list that a property is in. */
function listOf(key: string): string | undefined {
  return /^(.*?)\[[0-9]+\]/.exec(key)?.[1];
}

/** Properties may be named as those that every object has, or like numbers: the order stays. */
function jsonOf(properties: ReadonlyMap<string, string | number | boolean>): string {
  const pairs = [...properties].map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return `{${pairs.join(',')}}`;
}
