import { objectText, VERSION_SEPARATOR } from '../config/arguments.ts';
import { FLAT_FORMATS, flatten, notFlat } from '../config/flatten.ts';
import { type ConfigFormat, mergeContents } from '../config/formats.ts';
import type { StoredContent } from '../config/version.ts';

/** One file in one version, as it is read. */
export interface ReadConfig {
  readonly name: string;
  readonly file: string;
  readonly format: ConfigFormat;
  /** Id of the version. */
  readonly version: string;
  readonly digest: string;
  readonly stored: StoredContent;
  /** Whether the reader has named it. One that was not is left out where it has no properties. */
  readonly isNamed: boolean;
}

/** Properties of a text, as a JSON object with them; or why it has none. */
export type PropertiesText = { readonly text: string } | { readonly fault: string };

export interface EnvironmentInput {
  /** Names as the reader wrote them. */
  readonly name: string;
  readonly namespace: string;
  /** The later win; one with a part of a file gets that part over it. */
  readonly profiles: readonly string[];
  /** Version in the path of the request. */
  readonly label: string | undefined;
  /** The later win. */
  readonly configs: readonly ReadConfig[];
  /** `key`: identity of the content. Default: parses it each time. */
  readonly propertiesOf?: (format: ConfigFormat, content: string, key: string) => PropertiesText;
}

/** Why a file of the format has no properties; undefined: it has. */
export function formatFault({ name, file, format }: Pick<ReadConfig, 'name' | 'file' | 'format'>): string | undefined {
  if (FLAT_FORMATS.includes(format)) return undefined;
  return `ModuleConfig ${name}: ${notFlat(format)}, or read the file: …/{version}/${file}`;
}

/**
 * The body of an answer in the form of Spring Cloud Config's `/{name}/{profiles}[/{label}]`: JSON with the sources of
 * properties, those that win in front. Keys keep their order, and may be those that every object has.
 */
export function environmentText(input: EnvironmentInput): PropertiesText {
  const { name, namespace, profiles, label, configs, propertiesOf = propertiesText } = input;
  const winning = configs.toReversed();
  const parts = profiles.toReversed().flatMap((profile) =>
    winning.flatMap((config) => {
      const part = partOf(config.stored, profile);
      return part === undefined ? [] : [{ config, content: part, instance: `#${profile}` }];
    }),
  );
  const wholes = winning.map((config) => ({ config, content: config.stored.content, instance: '' }));
  const sources: string[] = [];
  for (const { config, content, instance } of [...parts, ...wholes]) {
    const { format, digest, version, file } = config;
    const properties = propertiesOf(format, content, `${format}/${digest}${instance}`);
    if ('fault' in properties && !config.isNamed) continue;
    if ('fault' in properties) return { fault: `ModuleConfig ${config.name}${instance}: ${properties.fault}` };
    const source = `${namespace}/${config.name}/${file}@${version}${instance}`;
    sources.push(`{"name":${JSON.stringify(source)},"source":${properties.text}}`);
  }
  const version = configs.map((config) => config.version).join(VERSION_SEPARATOR);
  const head = JSON.stringify({ name, profiles, label: label ?? null, version, state: null });
  return { text: `${head.slice(0, -1)},"propertySources":[${sources.join(',')}]}` };
}

/** One file with the parts of these profiles: merged, or one behind the other where the format has no keys. */
export function fileText({ format, stored }: ReadConfig, profiles: readonly string[]): string {
  let text = stored.content;
  for (const profile of profiles) {
    const part = partOf(stored, profile);
    if (part === undefined) continue;
    if (format === 'text') text = `${text}\r\n\r\n${part}`;
    else {
      const merged = mergeContents(format, text, part);
      if ('fault' in merged) throw new Error(`${merged.of}: ${merged.fault.message}`);
      text = merged.content;
    }
  }
  return text;
}

export function propertiesText(format: ConfigFormat, content: string): PropertiesText {
  const flat = flatten(format, content);
  return 'fault' in flat ? flat : { text: objectText([...flat.properties]) };
}

function partOf({ instances }: StoredContent, profile: string): string | undefined {
  return Object.hasOwn(instances, profile) ? instances[profile] : undefined;
}
