/** A configuration that a Module asks for; an entry of `spec.configs`. */
export interface WantedConfig {
  /** Name of a ModuleConfig. */
  readonly name: string;
  /** Default `Release`: another version waits for the next release. */
  readonly follow?: 'Release' | 'Immediately';
  /** Id of the version to stay with. */
  readonly version?: string;
  /** How it reaches the module. Default `Arguments`. */
  readonly as?: 'Arguments' | 'Http';
}

/** A configuration that a Module runs with; an entry of `status.configs`. */
export interface ConfigInForce {
  readonly name: string;
  readonly version: string;
}

/** What is known of a ModuleConfig. */
export interface KnownConfig {
  /** Undefined: it has never had one. */
  readonly activeVersion: string | undefined;
  readonly versions: ReadonlySet<string>;
}

export interface ConfigsInput {
  readonly wanted: readonly WantedConfig[];
  /** What was in force before. */
  readonly before: readonly ConfigInForce[];
  /** Whether another release comes into force. */
  readonly isNewRelease: boolean;
  /** Undefined: there is no ModuleConfig of the name. */
  readonly find: (name: string) => KnownConfig | undefined;
}

/** Which versions a Module runs with, in the order of its specification; or why what was in force has to stay. */
export type ConfigsInForce = { readonly configs: readonly ConfigInForce[] } | { readonly missing: string };

/**
 * A version that is pinned goes before all. A configuration that is new to the Module, or that follows at once, has the
 * active version of its ModuleConfig; another one gets it with the next release. One that is missing holds up all of
 * them: release and configuration are one change.
 */
export function configsInForce({ wanted, before, isNewRelease, find }: ConfigsInput): ConfigsInForce {
  const configs: ConfigInForce[] = [];
  for (const { name, follow = 'Release', version: pinned } of wanted) {
    const known = find(name);
    if (known === undefined) return { missing: `there is no ModuleConfig ${name}` };
    if (pinned !== undefined && !known.versions.has(pinned)) {
      return { missing: `ModuleConfig ${name} has no version ${pinned}` };
    }
    const former = before.find((one) => one.name === name)?.version;
    const kept = follow === 'Release' && !isNewRelease ? former : undefined;
    if (pinned === undefined && kept !== undefined && !known.versions.has(kept)) {
      return { missing: `ModuleConfig ${name} no longer has version ${kept}: publish a release, or name a version` };
    }
    const version = pinned ?? kept ?? known.activeVersion;
    if (version === undefined) return { missing: `no version of ModuleConfig ${name} is active yet` };
    configs.push({ name, version });
  }
  return { configs };
}

/** Text of the annotation by which a Pod shows its configuration: `{name}@{version}`, separated by commas. */
export function configsText(configs: readonly ConfigInForce[]): string {
  return configs.map(({ name, version }) => `${name}@${version}`).join(',');
}

/** Names and versions in such a text; nothing for what is none. */
export function configsOfText(text: string | undefined): ConfigInForce[] {
  return (text ?? '').split(',').flatMap((entry) => {
    const [name = '', version = '', ...rest] = entry.split('@');
    return name === '' || version === '' || rest.length > 0 ? [] : [{ name, version }];
  });
}
