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
  /** Not set: it comes as arguments. */
  readonly as?: 'Http';
}

/** What is known of a ModuleConfig. */
export interface KnownConfig {
  /** Undefined: it has never had one. */
  readonly activeVersion: string | undefined;
  readonly versions: ReadonlySet<string>;
  /** It is only there to be the parent of others. */
  readonly isTemplate: boolean;
  /** Why it is not Ready; empty: it is, or nobody has looked at it yet. */
  readonly problem: string;
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
export function configsInForce(input: ConfigsInput): ConfigsInForce {
  const configs: ConfigInForce[] = [];
  for (const wanted of input.wanted) {
    const found = versionInForce(wanted, input);
    if ('missing' in found) return found;
    configs.push({ name: wanted.name, version: found.version, ...(wanted.as === 'Http' && { as: wanted.as }) });
  }
  return { configs };
}

function versionInForce(
  { name, follow = 'Release', version: pinned }: WantedConfig,
  { before, isNewRelease, find }: ConfigsInput,
): { readonly version: string } | { readonly missing: string } {
  const known = find(name);
  if (known === undefined) return { missing: `there is no ModuleConfig ${name}` };
  const { versions, activeVersion, isTemplate, problem } = known;
  if (isTemplate) return { missing: `ModuleConfig ${name} is a template: name one whose parent it is` };
  if (pinned !== undefined) {
    return versions.has(pinned) ? { version: pinned } : { missing: `ModuleConfig ${name} has no version ${pinned}` };
  }
  const former = before.find((one) => one.name === name)?.version;
  const kept = follow === 'Release' && !isNewRelease ? former : undefined;
  if (kept !== undefined && !versions.has(kept)) {
    return { missing: `ModuleConfig ${name} no longer has version ${kept}: publish a release, or name a version` };
  }
  const version = kept ?? activeVersion;
  if (version !== undefined) return { version };
  const why = problem === '' ? '' : `: ${problem}`;
  return { missing: `no version of ModuleConfig ${name} is active yet${why}` };
}

/** Active versions that a Module does not run with, and why; empty: there are none. */
export function waitingText(
  { wanted, find }: Pick<ConfigsInput, 'wanted' | 'find'>,
  inForce: readonly ConfigInForce[],
): string {
  const texts = inForce.flatMap(({ name, version }) => {
    const active = find(name)?.activeVersion;
    if (active === undefined || active === version) return [];
    const isPinned = wanted.find((one) => one.name === name)?.version !== undefined;
    const why = isPinned ? `spec.configs names ${version}` : `${version} runs until the next release`;
    return [`${name}: version ${active} waits, since ${why}`];
  });
  return texts.join('; ');
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
