import { flatten } from './flatten.ts';
import type { ConfigFormat } from './formats.ts';

/** Maximum size of all arguments that carry configuration, in bytes. */
export const MAX_ARGUMENT_BYTES = 8 * 1024;

/** A configuration that a Module runs with. */
export interface ModuleConfigInForce {
  readonly name: string;
  readonly version: string;
  readonly as: 'Arguments' | 'Http';
  readonly format: ConfigFormat;
  /** Content of the version. */
  readonly content: string;
  readonly hasInstances: boolean;
}

/** Arguments by which a module fetches the versions of these configurations over HTTP. */
export type HttpArguments = (configs: readonly Pick<ModuleConfigInForce, 'name' | 'version'>[]) => readonly string[];

export type ConfigArguments = { readonly args: readonly string[] } | { readonly fault: string };

/**
 * Arguments of the container of a module with its configuration: one `--spring.application.json=` with all properties,
 * those of later configurations first, then those of the ones by HTTP.
 */
export function argumentsOf(configs: readonly ModuleConfigInForce[], httpArguments: HttpArguments): ConfigArguments {
  const all = new Map<string, string | number | boolean>();
  const direct = configs.filter((config) => config.as === 'Arguments');
  for (const { name, format, content, hasInstances } of direct) {
    if (hasInstances) return { fault: `ModuleConfig ${name} has parts for single instances: use as: Http` };
    const flat = flatten(format, content);
    if ('fault' in flat) return { fault: `ModuleConfig ${name} as: Arguments: ${flat.fault}` };
    override(all, flat.properties);
  }
  const overHttp = configs.filter((config) => config.as === 'Http');
  const args = [
    ...(all.size === 0 ? [] : [`--spring.application.json=${jsonOf(all)}`]),
    ...(overHttp.length === 0 ? [] : httpArguments(overHttp)),
  ];
  const size = args.reduce((sum, arg) => sum + Buffer.byteLength(arg), 0);
  if (size <= MAX_ARGUMENT_BYTES) return { args };
  const names = direct.map(({ name }) => name).join(', ');
  return {
    fault: `${names} need ${size} bytes of arguments, at most ${MAX_ARGUMENT_BYTES} are possible: use as: Http`,
  };
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
