import type { CachedModuleConfig } from '../config/cached-module-config.ts';
import type { ConfigVersion } from '../config/module-config.ts';

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
}

/** A version that somebody reads. */
export interface SelectedConfig {
  readonly config: CachedModuleConfig;
  readonly version: ConfigVersion;
  /** Whether the reader has named it, and not an application or a Module that it belongs to. */
  readonly isNamed: boolean;
}

export type SelectedConfigs = { readonly selected: readonly SelectedConfig[] } | { readonly missing: string };

/**
 * The files that names stand for, of which the later win. A name is that of a ModuleConfig; else that of an application,
 * for its own files, or of a Module, for the files of its application and then its own.
 */
export function selectConfigs({ names, versions, configs }: SelectInput): SelectedConfigs {
  const found = new Map<string, Omit<SelectedConfig, 'version'>>();
  for (const name of names) {
    const all = wantedBy(name, configs);
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
  const selected = wanted.map((one) => ({ ...one, version: versionOf(one.config, versions) }));
  const inactive = selected.find(({ isNamed, version }) => isNamed && version === undefined);
  if (inactive !== undefined) return { missing: `no version of ModuleConfig ${inactive.config.name} is active yet` };
  return { selected: selected.flatMap(({ version, ...one }) => (version === undefined ? [] : { ...one, version })) };
}

function wantedBy(name: string, configs: readonly CachedModuleConfig[]): Omit<SelectedConfig, 'version'>[] {
  const named = configs.find((config) => config.name === name);
  if (named !== undefined) return [{ config: named, isNamed: true }];
  return filesOf(name, configs).map((config) => ({ config, isNamed: false }));
}

/** The one of these, else the one in force. */
function versionOf(config: CachedModuleConfig, versions: readonly string[]): ConfigVersion | undefined {
  const all = versionsOf(config);
  return all.find(({ id }) => versions.includes(id)) ?? all.find(({ id }) => id === config.status?.activeVersion);
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
