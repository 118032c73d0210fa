import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../clock.ts';
import { managersOf } from '../../../kube/field-managers.ts';
import type { KubeObject } from '../../../kube/objects.ts';
import type { ResourceClient } from '../../../kube/resource.ts';
import { ApiError, ifFound, isFieldConflict, unlessGone } from '../../../kube/transport/api-error.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import type { Informer } from '../../../kube/watch/informer-types.ts';
import { objectKey } from '../../../kube/watch/informer-types.ts';
import { CATALOG_ANNOTATION, type ComposedObject } from './compose.ts';
import {
  alteredFields,
  type CachedComposed,
  composedPartOf,
  firstDifference,
  partsOf,
  projectComposed,
} from './composed-object.ts';
import { Contest } from './contest.ts';
import { fieldOf, surplusOf } from './surplus.ts';

export interface ComposerOptions {
  readonly informer: Informer<CachedComposed>;
  readonly client: ResourceClient<KubeObject>;
  readonly permit: Permit;
  readonly clock: Clock;
}

/** A change of a composed field that somebody else has made, and that was undone. */
export interface Restored {
  readonly field: string;
  readonly manager: string;
}

/**
 * What has become of an object. `Current`: it is as the API server stores what was composed. `Contested`: somebody
 * changes it again and again, and it is left as it is. `Taken`: another object has the name. `Deleting`: the former one
 * is not gone yet.
 */
export type Composed = OwnComposed | { readonly state: 'Taken' | 'Deleting' };

export interface OwnComposed {
  readonly state: 'Current' | 'Contested';
  readonly live: CachedComposed;
  readonly restored?: Restored;
  /** Labels and annotations that a webhook drops or changes. */
  readonly altered: readonly string[];
  /** Minimum time between two restorations in a contest, ms. Undefined: there is no contest. */
  readonly contestMs?: number | undefined;
  /** When it is to be looked at again, ms. Infinity: when it has changed. */
  readonly forMs: number;
}

/** The composed part of an object, and what it has beyond that. */
interface Content {
  readonly part: unknown;
  readonly surplus: readonly string[];
}

/** What is known of the object of a Module. */
interface Known {
  readonly uid: string;
  readonly contest: Contest;
  /** Digest of what was applied last; undefined: nothing was. */
  digest?: string;
  /** The content of the API server's answer, where it differs from what was applied: a webhook has changed it. */
  answer?: Content | undefined;
  altered: readonly string[];
  /** When it was applied, on the clock. */
  appliedAt: number;
}

/** A webhook that drops labels may go at any time, and nothing shows that. */
const ALTERED_AGAIN_MS = 300_000;

/** Writes the composed objects of one kind: only what has changed, and what somebody else has changed back. */
export class Composer {
  readonly #options: ComposerOptions;
  /** Objects by the key of their Module. An entry goes with `forget`, or when another incarnation of the object is written. */
  readonly #known = new Map<string, Known>();

  constructor(options: ComposerOptions) {
    this.#options = options;
  }

  /** The cached object of a Module. */
  find(key: string): CachedComposed | undefined {
    return this.#options.informer.get(key);
  }

  /** The Module is gone. */
  forget(key: string): void {
    this.#known.delete(key);
  }

  /**
   * Brings the object to what was composed, if it is not that. `isWanted` is asked before one is created: the watch of
   * the objects may be ahead of that of the Modules, and the API server deletes both.
   */
  async compose(composed: ComposedObject, isWanted: () => Promise<boolean>): Promise<Composed> {
    const cached = this.find(objectKey(composed.metadata));
    // The cache keeps marked objects only, so one without the mark may have the name.
    const live = cached === undefined || cached.isDeleting ? await this.#read(composed.metadata) : cached;
    if (live === undefined) return (await isWanted()) ? this.#create(composed) : { state: 'Deleting' };
    if (!isOwnedBy(live, ownerUidOf(composed))) return { state: isOfFormer(live, composed) ? 'Deleting' : 'Taken' };
    return live.isDeleting ? { state: 'Deleting' } : this.#bring(composed, live);
  }

  /**
   * Deletes the object that a Module no longer has, if it is the Module's own. `isComposed`: there may be one without
   * the mark, which the cache does not have.
   */
  async remove(
    module: { readonly namespace: string; readonly name: string; readonly uid: string },
    isComposed: boolean,
  ): Promise<void> {
    const { client, permit } = this.#options;
    const key = objectKey(module);
    const isKnown = isComposed || this.#known.has(key);
    const live = this.find(key) ?? (isKnown ? await this.#read(module) : undefined);
    if (live !== undefined && !live.isDeleting && isOwnedBy(live, module.uid)) {
      const { namespace, name, uid } = live;
      await unlessGone(client.delete({ namespace, name }, { uid, permit, propagationPolicy: 'Background' }));
    }
    this.#known.delete(key);
  }

  async #read({ namespace, name }: { readonly namespace: string; readonly name: string }) {
    const found = await ifFound(this.#options.client.get({ namespace, name }));
    return found && projectComposed(found);
  }

  async #create(composed: ComposedObject): Promise<Composed> {
    try {
      return await this.#apply(composed, undefined);
    } catch (error) {
      // Somebody has created an object of the name in between.
      if (isFieldConflict(error)) return { state: 'Taken' };
      throw error;
    }
  }

  async #bring(composed: ComposedObject, live: CachedComposed): Promise<Composed> {
    const digest = digestIn(composed);
    const known = this.#knownOf(live);
    const isNew = known.digest !== digest;
    // Another digest than the one that was applied last is somebody else's, such as that of `kubectl rollout undo`.
    const isOther = known.digest !== undefined || (live.digest !== undefined && live.digest !== digest);
    if (isNew && isOther) return this.#apply(composed, live);
    const expected = (isNew ? undefined : known.answer) ?? wholly(composed);
    const found = contentOf(composed, live.object);
    if (!isDeepStrictEqual(found, expected)) return this.#restore(composed, live, fieldIn(expected, found));
    if (isNew) known.altered = [];
    const isDue = known.altered.length > 0 && this.#options.clock.now() - known.appliedAt >= ALTERED_AGAIN_MS;
    return isDue ? this.#apply(composed, live) : this.#currentOf(live);
  }

  async #restore(composed: ComposedObject, live: CachedComposed, field: string): Promise<Composed> {
    const { clock, client } = this.#options;
    const { contest, altered } = this.#knownOf(live);
    const forMs = contest.found(clock.now());
    if (forMs > 0) return { state: 'Contested', live, altered, contestMs: contest.pauseMs, forMs };
    const { namespace, name } = live;
    const manager = otherManagerOf(await client.get({ namespace, name }), client.fieldManager);
    const result = await this.#apply(composed, live);
    // Right after a start it is not known what a webhook makes of it: nothing has changed then.
    const isChanged = result.live.resourceVersion !== live.resourceVersion;
    if (!isChanged) return result;
    contest.restored(clock.now());
    return { ...result, restored: { field, manager } };
  }

  /** `before`: the object that is changed by force. Undefined: there is none. */
  async #apply(composed: ComposedObject, before: CachedComposed | undefined): Promise<OwnComposed> {
    const { client, informer, permit, clock } = this.#options;
    const isForced = before !== undefined;
    const apply = () => client.apply(composed as ComposedObject & Record<string, unknown>, { isForced, permit });
    let answer: KubeObject;
    try {
      answer = await apply();
    } catch (error) {
      const isInvalid = error instanceof ApiError && error.status === 422;
      if (!isInvalid || before === undefined || surplusOf(composed, before.object).length === 0) throw error;
      // What somebody else owns too would stay, and may fit no longer, such as a second port of a name.
      await this.#strip(composed, before.object);
      answer = await apply();
    }
    if (surplusOf(composed, answer).length > 0) answer = await this.#strip(composed, answer);
    informer.upsert(answer);
    const live = projectComposed(answer);
    const known = this.#knownOf(live);
    const content = contentOf(composed, answer);
    known.digest = digestIn(composed);
    known.answer = isDeepStrictEqual(content, wholly(composed)) ? undefined : content;
    known.altered = alteredFields(partsOf(composed), content.part);
    known.appliedAt = clock.now();
    return this.#currentOf(live);
  }

  #currentOf(live: CachedComposed): OwnComposed {
    const now = this.#options.clock.now();
    const { contest, altered, appliedAt } = this.#knownOf(live);
    const quietMs = contest.quiet(now);
    return {
      state: 'Current',
      live,
      altered,
      contestMs: quietMs > 0 ? contest.pauseMs : undefined,
      forMs: Math.min(
        quietMs > 0 ? quietMs : Number.POSITIVE_INFINITY,
        altered.length > 0 ? appliedAt + ALTERED_AGAIN_MS - now : Number.POSITIVE_INFINITY,
      ),
    };
  }

  /** Removes, for all of its owners, what only the Module decides and does not have: an apply leaves what others own too. */
  #strip(composed: ComposedObject, object: KubeObject): Promise<KubeObject> {
    const { client, permit } = this.#options;
    const { namespace, name } = composed.metadata;
    const version = {
      op: 'replace',
      path: '/metadata/resourceVersion',
      value: object.metadata.resourceVersion,
    } as const;
    const removals = surplusOf(composed, object).map((path) => ({ op: 'remove', path }) as const);
    return client.jsonPatch({ namespace, name }, [version, ...removals], { permit });
  }

  #knownOf(live: CachedComposed): Known {
    const key = objectKey(live);
    const known = this.#known.get(key);
    if (known?.uid === live.uid) return known;
    const created: Known = { uid: live.uid, contest: new Contest(), altered: [], appliedAt: Number.NEGATIVE_INFINITY };
    this.#known.set(key, created);
    return created;
  }
}

function contentOf(composed: ComposedObject, object: KubeObject): Content {
  return { part: composedPartOf(partsOf(composed), object), surplus: surplusOf(composed, object) };
}

/** The content of an object that is as it was composed. */
function wholly(composed: ComposedObject): Content {
  return { part: partsOf(composed), surplus: [] };
}

function fieldIn(expected: Content, found: Content): string {
  const added = found.surplus.find((path) => !expected.surplus.includes(path));
  return firstDifference(expected.part, found.part) ?? fieldOf(added ?? expected.surplus[0] ?? '');
}

function digestIn({ metadata }: ComposedObject): string {
  return metadata.annotations?.[CATALOG_ANNOTATION.digest] ?? '';
}

function ownerUidOf({ metadata }: ComposedObject): string | undefined {
  return metadata.ownerReferences?.[0]?.uid;
}

/** One without a controller that has the digest is its own too: somebody has removed the owner reference. */
export function isOwnedBy({ controller, digest }: CachedComposed, moduleUid: string | undefined): boolean {
  return controller === undefined ? digest !== undefined : controller.uid === moduleUid;
}

/** Whether it is that of a Module which had the name before: the API server deletes it. */
function isOfFormer({ controller }: CachedComposed, { metadata }: ComposedObject): boolean {
  return controller?.kind === metadata.ownerReferences?.[0]?.kind && controller?.name === metadata.name;
}

/** Name of the newest other writer of an object, its scale included. */
function otherManagerOf(object: KubeObject, own: string): string {
  const others = managersOf(object).filter(
    ({ manager, subresource = '' }) => manager !== own && subresource !== 'status',
  );
  return others.toSorted((a, b) => (a.time ?? '').localeCompare(b.time ?? '')).at(-1)?.manager ?? 'somebody';
}
