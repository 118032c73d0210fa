import type { EffectiveFault } from './effective.ts';
import type { ChangeCause, ConfigVersion } from './module-config.ts';
import { knownVersion, versionIdOf } from './version.ts';

/** What the present content of a ModuleConfig and its parents amount to. */
export interface PresentContent {
  readonly digest: string;
  /** Digest of the ModuleConfig's own part. */
  readonly source: string;
  readonly size: number;
}

/** The version of the present content: one that is known, or a new one, to be stored before anything names it. */
export function presentVersion(
  versions: readonly ConfigVersion[],
  { digest, source, size }: PresentContent,
  { now, cause = {} }: { readonly now: number; readonly cause?: ChangeCause },
): ConfigVersion {
  const time = new Date(now).toISOString();
  return knownVersion(versions, digest) ?? { id: versionIdOf(digest, now), digest, source, time, ...cause, size };
}

export interface HistoryInput {
  readonly versions: readonly ConfigVersion[];
  /** Id of the version in force. */
  readonly inForce: string | undefined;
  /** The version of the present content, as it is stored; or why there is none. */
  readonly present: ConfigVersion | { readonly fault: EffectiveFault };
  readonly activation: 'Automatic' | 'Manual';
  /** `activeVersion` of the specification; empty: the present content. */
  readonly wanted: string;
  readonly inUse: ReadonlySet<string>;
  /** Number of versions to keep, if no more are in use. */
  readonly limit: number;
  readonly now: number;
}

/** The condition Ready of a ModuleConfig. */
export interface ConfigState {
  readonly isReady: boolean;
  readonly reason: EffectiveFault['reason'] | 'Active' | 'Pinned' | 'Waiting' | 'VersionNotFound';
  readonly message: string;
}

export interface History {
  /** Those that stay, the newest first. */
  readonly versions: readonly ConfigVersion[];
  readonly inForce: string | undefined;
  /** Versions to be deleted. */
  readonly prune: readonly ConfigVersion[];
  readonly state: ConfigState;
  /** Id of a version with the same own content over another version of the parent. Undefined: no parent has changed. */
  readonly parentChanged: string | undefined;
}

/**
 * Which version is in force, and which are kept. New content comes into force at once, unless the activation is manual
 * or a version is pinned. A parent's new version makes a version that waits. Whatever is wrong, the version in force
 * stays.
 */
export function historyOf(input: HistoryInput): History {
  const { present, inForce, wanted, now } = input;
  const known = 'fault' in present ? input.versions : withPresent(input.versions, present);
  const active = activeOf(input, known);
  const time = new Date(now).toISOString();
  const versions =
    active === inForce ? known : known.map((one) => (one.id === active ? { ...one, lastActivated: time } : one));
  const presentId = 'fault' in present ? undefined : present.id;
  const kept = keptOf({ ...input, versions, protectedIds: new Set([active, presentId, wanted]) });
  const one = versions.find(({ id }) => id === active);
  const isParentNew = !('fault' in present) && one?.source === present.source && one.id !== present.id;
  return {
    versions: versions.filter((version) => kept.has(version)),
    inForce: active,
    prune: versions.filter((version) => !kept.has(version)),
    state: stateOf(input, known, active),
    parentChanged: isParentNew ? present.id : undefined,
  };
}

function withPresent(versions: readonly ConfigVersion[], present: ConfigVersion): readonly ConfigVersion[] {
  return knownVersion(versions, present.digest) === undefined ? [present, ...versions] : versions;
}

function activeOf(
  { present, inForce, wanted, activation }: HistoryInput,
  versions: readonly ConfigVersion[],
): string | undefined {
  if (wanted !== '') return versions.some(({ id }) => id === wanted) ? wanted : inForce;
  if ('fault' in present || activation === 'Manual') return inForce;
  const isOwnContent = versions.some(({ id, source }) => id === inForce && source === present.source);
  return isOwnContent ? inForce : present.id;
}

interface KeptInput extends HistoryInput {
  readonly protectedIds: ReadonlySet<string | undefined>;
}

/** Those in force or in use, and of the others those that were in force or new last, up to the limit. */
function keptOf({ versions, inUse, limit, protectedIds }: KeptInput): Set<ConfigVersion> {
  const isNeeded = ({ id }: ConfigVersion): boolean => protectedIds.has(id) || inUse.has(id);
  // Another version of a parent has made a newer one of the same content, and nobody has ever had this one.
  const isReplaced = (one: ConfigVersion): boolean =>
    one.lastActivated === undefined && versions.find(({ source }) => source === one.source) !== one;
  const order = versions
    .filter((one) => isNeeded(one) || !isReplaced(one))
    .sort((a, b) => lastTimeOf(b) - lastTimeOf(a));
  return new Set(order.filter((one, at) => at < limit || isNeeded(one)));
}

function lastTimeOf({ time, lastActivated = time }: ConfigVersion): number {
  return Date.parse(lastActivated);
}

function stateOf(
  { present, wanted }: HistoryInput,
  versions: readonly ConfigVersion[],
  active: string | undefined,
): ConfigState {
  const stays = active === undefined ? 'no version is active' : `version ${active} stays active`;
  if (wanted !== '' && !versions.some(({ id }) => id === wanted)) {
    return { isReady: false, reason: 'VersionNotFound', message: `there is no version ${wanted}: ${stays}` };
  }
  if ('fault' in present) {
    return { isReady: false, reason: present.fault.reason, message: `${present.fault.message}; ${stays}` };
  }
  if (active === undefined) {
    const message = `version ${present.id} waits: name it in spec.activeVersion`;
    return { isReady: false, reason: 'Waiting', message };
  }
  if (wanted !== '') {
    const waiting = present.id === active ? '' : `; the content is version ${present.id}, which waits`;
    return { isReady: true, reason: 'Pinned', message: `spec.activeVersion names version ${active}${waiting}` };
  }
  const one = versions.find(({ id }) => id === active);
  if (one?.source === present.source) return { isReady: true, reason: 'Active', message: 'the content is active' };
  return { isReady: true, reason: 'Waiting', message: `version ${present.id} waits; ${stays}` };
}
