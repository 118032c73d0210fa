import type { ModuleSpec } from '../module/module.ts';
import type { ModuleStatus } from '../module/module-status-schema.ts';
import type { CachedReleases, ModuleReleaseStatus } from './module-release.ts';

export interface ReleaseUsers {
  /** The Module of the same name. Undefined: there is none. */
  readonly module:
    | { readonly spec: Pick<ModuleSpec, 'release'>; readonly status?: ModuleStatus | undefined }
    | undefined;
  /** Ids that its Pods were made for. */
  readonly ofPods: Iterable<string>;
}

/** Ids of releases that somebody may need again: those in force, of the history, and of Pods that there still are. */
export function releasesInUse({ module, ofPods }: ReleaseUsers): string[] {
  const ids = [
    module?.spec.release?.id,
    module?.status?.release?.id,
    ...(module?.status?.history ?? []).map(({ id }) => id),
    ...ofPods,
  ];
  return [...new Set(ids.filter((id) => id !== undefined))].sort();
}

export interface ReleaseUpkeepInput extends ReleaseUsers {
  readonly spec: CachedReleases;
  readonly before: ModuleReleaseStatus | undefined;
  /** RFC 3339. */
  readonly now: string;
}

/** Status of a ModuleRelease: when each id was first seen, which are in use, and the newest. A field without a value is missing. */
export function moduleReleaseStatus({ spec, before, now, ...users }: ReleaseUpkeepInput): ModuleReleaseStatus {
  const ids = new Set(spec.releases.map(({ id }) => id));
  const inUse = releasesInUse(users).filter((id) => ids.has(id));
  // An id may be the name of a property that every object has.
  const known = new Map(Object.entries(before?.firstSeen ?? {}));
  const firstSeen = Object.fromEntries([...ids].map((id) => [id, known.get(id) ?? now]));
  const newest = byAge(spec.releases, firstSeen).at(-1)?.id;
  return {
    ...(ids.size > 0 && { firstSeen }),
    ...(inUse.length > 0 && { inUse }),
    ...(newest !== undefined && { newest }),
  };
}

/**
 * The oldest release first: by its own time, else by when it was first seen; of equal ones the later in the list is the
 * newer.
 */
function byAge(
  releases: CachedReleases['releases'],
  firstSeen: NonNullable<ModuleReleaseStatus['firstSeen']>,
): CachedReleases['releases'] {
  const seen = new Map(Object.entries(firstSeen));
  const at = ({ id, time }: CachedReleases['releases'][number]): number => Date.parse(time ?? seen.get(id) ?? '') || 0;
  return releases.toSorted((a, b) => at(a) - at(b));
}

/** Ids beyond the limit, the oldest first. The default and those in use stay, whatever the limit. */
export function releasesToPrune(
  { releases, default: kept }: CachedReleases,
  { firstSeen = {}, inUse = [] }: ModuleReleaseStatus,
  limit: number,
): string[] {
  const surplus = releases.length - limit;
  if (surplus <= 0) return [];
  return byAge(releases, firstSeen)
    .filter(({ id }) => id !== kept && !inUse.includes(id))
    .slice(0, surplus)
    .map(({ id }) => id);
}
