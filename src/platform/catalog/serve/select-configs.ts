import type { CachedModuleConfig } from '../config/cached-module-config.ts';
import type { ConfigVersion } from '../config/module-config.ts';
import type { ConfigInForce } from '../module/configs-in-force.ts';

/** Most files of one answer. */
export const MAX_FILES = 64;
/** Most names that an answer lists. */
const MAX_LISTED = 20;

export interface SelectInput {
  /** Names of ModuleConfigs, of applications, or of Modules. */
  readonly names: readonly string[];
  /** Ids of versions: each is that of one of the files. Files without one are read as they are in force. */
  readonly versions: readonly string[];
  /** All that the reader may read in the namespace. */
  readonly configs: readonly CachedModuleConfig[];
  /** What a Module runs with, by its name; undefined: there is no Module of the name, or it has no configuration. */
  readonly inForce: (name: string) => readonly ConfigInForce[] | undefined;
}

/** A version that somebody reads. */
export interface SelectedConfig {
  readonly config: CachedModuleConfig;
  readonly version: ConfigVersion;
  /** Whether the reader has named it, and not an application or a Module that it belongs to. */
  readonly isNamed: boolean;
}

export type SelectedConfigs = { readonly selected: readonly SelectedConfig[] } | { readonly missing: string };

/** A file, in a version or in the one that is active. */
interface WantedConfig extends Omit<SelectedConfig, 'version'> {
  readonly id: string | undefined;
}

/**
 * The files that names stand for, of which the later win. A name is that of a ModuleConfig; else that of a Module, for
 * what it runs with; else that of an application, for its own files, or of a Module, for the files of its application and
 * then its own.
 */
export function selectConfigs(input: SelectInput): SelectedConfigs {
  const { names, versions, configs } = input;
  const found = new Map<string, WantedConfig>();
  for (const name of names) {
    const all = wantedBy(name, input);
    if (all.length === 0) {
      const known = listed(configs.map((config) => config.name));
      return { missing: `${name} is no ModuleConfig, and no Module or application with one; there ${known}` };
    }
    for (const one of all) {
      // The last place counts.
      found.delete(one.config.name);
      found.set(one.config.name, one);
    }
  }
  if (found.size > MAX_FILES) return { missing: `${found.size} files cannot be read at once: at most ${MAX_FILES}` };
  const wanted = [...found.values()];
  const ids = wanted.flatMap(({ config }) => versionsOf(config).map(({ id }) => id));
  const unknown = versions.find((id) => !ids.includes(id));
  if (unknown !== undefined) {
    return { missing: `${[...found.keys()].join(', ')} has no version ${unknown}; there ${listed(ids)}` };
  }
  const selected = wanted.map(({ id, ...one }) => ({
    ...one,
    version: versionOf(one.config, versions) ?? versionOf(one.config, [id ?? one.config.status?.activeVersion ?? '']),
  }));
  const inactive = selected.find(({ isNamed, version }) => isNamed && version === undefined);
  if (inactive !== undefined) return { missing: `no version of ModuleConfig ${inactive.config.name} is active yet` };
  return { selected: selected.flatMap(({ version, ...one }) => (version === undefined ? [] : { ...one, version })) };
}

function wantedBy(name: string, { configs, inForce }: SelectInput): WantedConfig[] {
  const find = (wanted: string) => configs.find((config) => config.name === wanted);
  const named = find(name);
  if (named !== undefined) return [{ config: named, isNamed: true, id: undefined }];
  const ofModule = (inForce(name) ?? []).flatMap(({ name: config, version }) => {
    const found = find(config);
    return found === undefined ? [] : [{ config: found, isNamed: false, id: version }];
  });
  if (ofModule.length > 0) return ofModule;
  return filesOf(name, configs).map((config) => ({ config, isNamed: false, id: undefined }));
}

function versionOf(config: CachedModuleConfig, ids: readonly string[]): ConfigVersion | undefined {
  return versionsOf(config).find(({ id }) => ids.includes(id));
}

/** The files of an application, or of a Module, whose name has that of its application in front. */
function filesOf(name: string, configs: readonly CachedModuleConfig[]): CachedModuleConfig[] {
  const [app = '', ...rest] = name.toLowerCase().split('-');
  const module = rest.join('-');
  return configs
    .filter(({ spec: { target } }) => target.app?.toLowerCase() === app && ['', module].includes(target.name ?? ''))
    .sort((a, b) => levelOf(a) - levelOf(b) || (a.name < b.name ? -1 : 1));
}

function levelOf({ spec: { target } }: CachedModuleConfig): number {
  return Number((target.name ?? '') !== '');
}

function versionsOf({ status }: CachedModuleConfig): readonly ConfigVersion[] {
  return status?.versions ?? [];
}

function listed(names: readonly string[]): string {
  if (names.length === 0) return 'is none';
  const more = names.length > MAX_LISTED ? `, and ${names.length - MAX_LISTED} more` : '';
  return `are ${[...names].sort().slice(0, MAX_LISTED).join(', ')}${more}`;
}
