import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../clock.ts';
import { subjectOf } from '../../../kube/events/event-object.ts';
import type { EventRecorder } from '../../../kube/events/event-recorder.ts';
import { mergePatchOf } from '../../../kube/merge-patch.ts';
import { secondsTime } from '../../../kube/micro-time.ts';
import type { JsonPatchOperation, ResourceClient } from '../../../kube/resource.ts';
import { ifFound, isForbidden } from '../../../kube/transport/api-error.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import type { Informer } from '../../../kube/watch/informer-types.ts';
import type { EventDefinition } from '../../../reconcile/controller-definition.ts';
import type { Result } from '../../../reconcile/reconciler.ts';
import { shortened } from '../../../shortened.ts';
import type { CachedModule } from '../module/cached-module.ts';
import type { ModuleObject } from '../module/module.ts';
import { type CachedModuleRelease, MODULE_RELEASES, type ModuleReleaseObject } from './module-release.ts';
import { moduleReleaseStatus, releasesInUse, releasesToPrune } from './release-upkeep.ts';

export interface ReleaseControllerOptions {
  readonly releases: Informer<CachedModuleRelease>;
  readonly modules: Informer<CachedModule>;
  readonly client: Pick<ResourceClient<ModuleReleaseObject>, 'mergePatch' | 'jsonPatch'>;
  readonly moduleClient: Pick<ResourceClient<ModuleObject>, 'get'>;
  /** Ids of the releases that the Pods of a Module were made for. */
  readonly idsOfPods: (module: CachedModule) => Iterable<string>;
  /** How many releases are kept in a namespace. */
  readonly limitOf: (namespace: string) => number;
  readonly permit: Permit;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
}

export const RELEASE_EVENTS: readonly EventDefinition[] = [
  {
    about: 'ModuleRelease',
    type: 'Normal',
    reasons: ['Pruned'],
    meaning: 'The oldest releases that nobody uses were removed: there were more than `recordLimit.moduleRelease`.',
  },
];

/** A tool that applies a manifest with too many releases puts them back: no loop of writes may come of that. */
const PRUNE_EVERY_MS = 60_000;
/** A right that is missing may be granted at any time, and nothing shows that. */
const LOOK_AGAIN_MS = 300_000;
const MAX_MESSAGE_LENGTH = 512;

/** Keeps the status of each ModuleRelease, and removes the oldest releases. A key is that of it and of its Module. */
export class ReleaseController {
  readonly #options: ReleaseControllerOptions;
  /** Times of the last removals by key, on the clock. An entry goes with its ModuleRelease. */
  readonly #prunedAt = new Map<string, number>();

  constructor(options: ReleaseControllerOptions) {
    this.#options = options;
  }

  async reconcile(key: string): Promise<Result | undefined> {
    const release = this.#options.releases.get(key);
    if (release === undefined) {
      this.#prunedAt.delete(key);
      return undefined;
    }
    const status = await this.#report(key, release);
    return status === undefined ? undefined : this.#prune(key, release);
  }

  /** Undefined: it was written, and the answer brings the key again. */
  async #report(key: string, release: CachedModuleRelease): Promise<'Current' | undefined> {
    const { releases, modules, client, permit, clock, idsOfPods } = this.#options;
    const { namespace, name, uid, resourceVersion, spec, status: before } = release;
    const module = modules.get(key);
    const ofPods = module === undefined ? [] : idsOfPods(module);
    const status = moduleReleaseStatus({ spec, before, module, ofPods, now: secondsTime(clock.wallTime()) });
    if (isDeepStrictEqual(status, before ?? {})) return 'Current';
    const patch = { metadata: { uid, resourceVersion }, status: mergePatchOf(before ?? {}, status) };
    releases.upsert(await client.mergePatch({ namespace, name }, patch, { subresource: 'status', permit }));
    return undefined;
  }

  async #prune(key: string, release: CachedModuleRelease): Promise<Result | undefined> {
    const { limitOf, clock, releases, client, permit, recorder } = this.#options;
    const { namespace, name, resourceVersion, spec, status } = release;
    const ids = releasesToPrune(spec, status ?? {}, limitOf(namespace));
    if (ids.length === 0) return undefined;
    const waitMs = (this.#prunedAt.get(key) ?? Number.NEGATIVE_INFINITY) + PRUNE_EVERY_MS - clock.now();
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    // Somebody may just have asked for one of them, and the watch does not show it yet.
    const used = await this.#usedNow(release);
    const gone = new Set(ids.filter((id) => !used.includes(id)));
    if (gone.size === 0) return { requeueAfterMs: PRUNE_EVERY_MS };
    this.#prunedAt.set(key, clock.now());
    // By their places in that version, the last one first: the memory does not have all of the others.
    const places = spec.releases.flatMap(({ id }, index) => (gone.has(id) ? [index] : [])).reverse();
    const patch: JsonPatchOperation[] = [
      { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
      ...places.map((index) => ({ op: 'remove', path: `/spec/releases/${index}` }) as const),
    ];
    try {
      releases.upsert(await client.jsonPatch({ namespace, name }, patch, { permit }));
    } catch (error) {
      if (!isForbidden(error)) throw error;
      return { requeueAfterMs: LOOK_AGAIN_MS };
    }
    const subject = subjectOf(MODULE_RELEASES, release);
    const message = `removed the oldest releases beyond the limit: ${[...gone].join(', ')}`;
    recorder.event(subject, 'Normal', 'Pruned', shortened(message, MAX_MESSAGE_LENGTH));
    return undefined;
  }

  async #usedNow({ namespace, name }: CachedModuleRelease): Promise<readonly string[]> {
    const module = await ifFound(this.#options.moduleClient.get({ namespace, name }));
    return releasesInUse({ module, ofPods: [] });
  }
}
