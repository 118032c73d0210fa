import { CATALOG_ANNOTATION, type ComposedRelease } from '../compose/compose.ts';
import type { CachedReleases } from '../release/module-release.ts';
import type { ModuleSpec } from './module.ts';
import type { ModuleStatus } from './module-status-schema.ts';

export interface ReleaseInput {
  readonly spec: Pick<ModuleSpec, 'release'>;
  readonly annotations: Readonly<Record<string, string>>;
  /** What was in force before. */
  readonly before: ModuleStatus['release'];
  /** Releases that were in force. */
  readonly history: ModuleStatus['history'];
  /** The ModuleRelease of the same name. Undefined: there is none. */
  readonly published: CachedReleases | undefined;
}

/**
 * Which release runs. `Found`: it. `None`: the Module asks for none, so there are no Pods. `Missing`: nobody has
 * published the id; what was in force runs on, if anything was.
 */
export type ReleaseInForce =
  | { readonly state: 'Found'; readonly release: ComposedRelease }
  | { readonly state: 'None' }
  | { readonly state: 'Missing'; readonly id: string; readonly release: ComposedRelease | undefined };

export function releaseInForce({ spec, annotations, before, history = [], published }: ReleaseInput): ReleaseInForce {
  const wanted = wantedRelease({ spec, annotations }, published);
  if (wanted === undefined) {
    // The default is gone, or the ModuleRelease is.
    if (isAutomatic(annotations) && before !== undefined) return { state: 'Missing', id: before.id, release: before };
    return { state: 'None' };
  }
  const { id, image, version, sha256 } = wanted;
  const entry = published?.releases.find((one) => one.id === id);
  const address = image ?? entry?.image;
  if (address === undefined) return { state: 'Missing', id, release: before };
  // An address of the Module's own may be of another jar than the published one.
  const isPublished = entry !== undefined && address === entry.image;
  // The bases that a jar fits are known for as long as it is in the history, whatever becomes of its ModuleRelease.
  const former = [before, ...history].find((one) => one?.id === id && one.image === address);
  return {
    state: 'Found',
    release: {
      id,
      image: address,
      version: version ?? (isPublished ? entry.version : undefined),
      sha256: sha256 ?? (isPublished ? entry.sha256 : undefined),
      baseVersions: (isPublished ? entry : former)?.baseVersions,
    },
  };
}

/** The release that a Module asks for: its own, else the default that it follows. */
export function wantedRelease(
  { spec, annotations }: Pick<ReleaseInput, 'spec' | 'annotations'>,
  published: Pick<CachedReleases, 'default'> | undefined,
): ModuleSpec['release'] {
  const { default: id } = published ?? {};
  return spec.release ?? (isAutomatic(annotations) && id !== undefined ? { id } : undefined);
}

function isAutomatic(annotations: Readonly<Record<string, string>>): boolean {
  return annotations[CATALOG_ANNOTATION.autoRelease] === 'true';
}
