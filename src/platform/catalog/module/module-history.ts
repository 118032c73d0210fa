import { isDeepStrictEqual } from 'node:util';
import { type ComposedRelease, moduleVersionOf } from '../compose/compose.ts';
import type { CachedReleases } from '../release/module-release.ts';
import type { ModuleSpec } from './module.ts';
import type { ModuleRevision } from './module-status-schema.ts';

/** Number of releases that are kept, that of a Deployment. */
const MAX_REVISIONS = 10;

/**
 * The history with the release in force in front. One that comes back with the same configuration has a new number, and
 * no second entry. Other
 * versions of bases are no other release: the entry has the newest ones.
 */
export function historyWith(
  history: readonly ModuleRevision[],
  { id, image, version, sha256, baseVersions, configs }: ComposedRelease,
  now: string,
): readonly ModuleRevision[] {
  const release = {
    id,
    image,
    ...(version !== undefined && { version }),
    ...(sha256 !== undefined && { sha256 }),
    ...(baseVersions !== undefined && { baseVersions: [...baseVersions] }),
    ...(configs !== undefined && { configs: [...configs] }),
  };
  const [newest, ...older] = history;
  if (newest !== undefined && isSame(newest, release)) {
    const entry = { revision: newest.revision, ...release, time: newest.time };
    return isDeepStrictEqual(newest, entry) ? history : [entry, ...older];
  }
  const others = history.filter((entry) => !isSame(entry, release));
  return [{ revision: (newest?.revision ?? 0) + 1, ...release, time: now }, ...others].slice(0, MAX_REVISIONS);
}

/** The revision to go back to; or why there is none. */
export type RollbackTarget = { readonly target: ModuleRevision } | { readonly fault: string };

/**
 * `number`: 0 = the previous one, which is the newest of the history where the specification asks for another release:
 * that one is not in force.
 */
export function rollbackTarget(
  history: readonly ModuleRevision[],
  number: number,
  wanted: ModuleSpec['release'],
): RollbackTarget {
  const [newest, former] = history;
  const isInForce =
    newest !== undefined && newest.id === wanted?.id && (wanted.image === undefined || wanted.image === newest.image);
  const previous = isInForce ? former : newest;
  const target = number === 0 ? previous : history.find(({ revision }) => revision === number);
  if (target !== undefined) return { target };
  return { fault: number === 0 ? 'there is no earlier release' : `there is no revision ${number}` };
}

/**
 * What a Module of that module says to have this release again: the id alone where the same jar is published under it. Fields that are
 * null are removed by a merge patch.
 */
export function releasePatchOf(
  { id, image, version, sha256 }: ModuleRevision,
  published: CachedReleases | undefined,
  module: string,
): { [K in keyof Required<NonNullable<ModuleSpec['release']>>]: string | null } {
  const entry = published?.releases.find((one) => one.id === id);
  const isPublished =
    entry?.image === image &&
    entry.sha256 === sha256 &&
    moduleVersionOf(module, entry) === moduleVersionOf(module, { image, version });
  if (isPublished) return { id, image: null, version: null, sha256: null };
  // What follows from the address would stay when somebody publishes another one.
  const isNamed = moduleVersionOf(module, { image }) === version;
  return { id, image, version: isNamed ? null : (version ?? null), sha256: sha256 ?? null };
}

/**
 * `spec.configs` of a Module that has the configuration of a revision again: each version is pinned. Null: it had none.
 * Undefined: there is nothing to change.
 */
export function configsPatchOf(
  { configs = [] }: ModuleRevision,
  wanted: ModuleSpec['configs'] = [],
): ModuleSpec['configs'] | null | undefined {
  const pinned = configs.map(({ name, version, as }) => {
    const { as: _as, ...own } = wanted.find((one) => one.name === name) ?? {};
    return { ...own, name, version, ...(as && { as }) };
  });
  if (isDeepStrictEqual(pinned, wanted)) return undefined;
  return pinned.length === 0 ? null : pinned;
}

type Content = Pick<ModuleRevision, 'id' | 'image' | 'version' | 'sha256' | 'configs'>;

function isSame(a: Content, b: Content): boolean {
  return (
    a.id === b.id &&
    a.image === b.image &&
    a.version === b.version &&
    a.sha256 === b.sha256 &&
    isDeepStrictEqual(a.configs, b.configs)
  );
}
