import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../clock.ts';
import { managersOf } from '../../../kube/field-managers.ts';
import type { KubeObject } from '../../../kube/objects.ts';
import type { ResourceClient } from '../../../kube/resource.ts';
import { ifFound, isFieldConflict, unlessGone } from '../../../kube/transport/api-error.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import type { Informer } from '../../../kube/watch/informer-types.ts';
import { objectKey } from '../../../kube/watch/informer-types.ts';
import type { ComposedObject } from './compose.ts';
import { type CachedComposed, composedPartOf, firstDifference, partsOf, projectComposed } from './composed-object.ts';

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
 * What has become of an object. `Taken`: another object has the name. `Deleting`: the former one is not gone yet. `Contested`: somebody changes it again and again;
 * it is left alone for `forMs`.
 */
export type Composed =
  | { readonly state: 'Current'; readonly live: CachedComposed; readonly restored?: Restored }
  | { readonly state: 'Taken' | 'Deleting' }
  | { readonly state: 'Contested'; readonly live: CachedComposed; readonly forMs: number };

/** Number of restorations within `CONTEST_MS` that make a contest. */
const MAX_RESTORED = 3;
const CONTEST_MS = 60_000;

interface Answer {
  /** Digest of what was applied. */
  readonly digest: string;
  /** The composed part of the API server's answer, where it differs from what was applied: a webhook has changed it. */
  readonly part?: unknown;
}

/** Writes the composed objects of one kind: only what has changed, and what somebody else has changed back. */
export class Composer {
  readonly #options: ComposerOptions;
  /** Newest answers by the UID of the object. Emptied when the object is gone. */
  readonly #answers = new Map<string, Answer>();
  /** When changes of others were undone lately, by the UID of the object; on the clock. */
  readonly #restoredAt = new Map<string, readonly number[]>();

  constructor(options: ComposerOptions) {
    this.#options = options;
    options.informer.addHandler({
      onDelete: ({ uid }) => {
        this.#answers.delete(uid);
        this.#restoredAt.delete(uid);
      },
    });
  }

  /** The cached object of a Module. */
  find(key: string): CachedComposed | undefined {
    return this.#options.informer.get(key);
  }

  /**
   * Brings the object to what was composed, if it is not that. `isWanted` is asked before one is created: the watch of
   * the objects may be ahead of that of the Modules, and the API server deletes both.
   */
  async compose(composed: ComposedObject, isWanted: () => Promise<boolean>): Promise<Composed> {
    const live = this.find(objectKey(composed.metadata));
    if (live === undefined || live.isDeleting) return this.#create(composed, isWanted);
    if (!isOwnedBy(live, composed)) return { state: isOfFormer(live, composed) ? 'Deleting' : 'Taken' };
    const digest = digestIn(composed);
    const answer = this.#answers.get(live.uid);
    // Another digest than the one that was applied last is somebody else's, such as that of `kubectl rollout undo`.
    const isNew = answer?.digest !== digest;
    if (live.digest !== digest && live.digest !== undefined && isNew) return this.#apply(composed, true);
    const expected = (isNew ? undefined : answer.part) ?? partsOf(composed);
    const found = composedPartOf(partsOf(composed), live.object);
    if (live.digest === digest && isDeepStrictEqual(found, expected)) return { state: 'Current', live };
    return this.#restore(composed, live, firstDifference(expected, found) ?? 'metadata.annotations');
  }

  /** Deletes an object that a Module no longer has, if it is the Module's own. */
  async remove(live: CachedComposed, moduleUid: string): Promise<void> {
    if (live.isDeleting || live.controller?.uid !== moduleUid) return;
    const { client, permit } = this.#options;
    const { namespace, name, uid } = live;
    await unlessGone(client.delete({ namespace, name }, { uid, permit, propagationPolicy: 'Background' }));
  }

  /** The cache keeps marked objects only, so one without the mark may have the name. */
  async #create(composed: ComposedObject, isWanted: () => Promise<boolean>): Promise<Composed> {
    const { client } = this.#options;
    const { namespace, name } = composed.metadata;
    const found = await ifFound(client.get({ namespace, name }));
    const stored = found && projectComposed(found);
    if (stored !== undefined && !isOwnedBy(stored, composed))
      return { state: isOfFormer(stored, composed) ? 'Deleting' : 'Taken' };
    if (stored?.isDeleting || (stored === undefined && !(await isWanted()))) return { state: 'Deleting' };
    try {
      return await this.#apply(composed, stored !== undefined);
    } catch (error) {
      // Somebody has created an object of the name in between.
      if (isFieldConflict(error)) return { state: 'Taken' };
      throw error;
    }
  }

  async #restore(composed: ComposedObject, live: CachedComposed, field: string): Promise<Composed> {
    const { clock, client } = this.#options;
    const now = clock.now();
    const recent = (this.#restoredAt.get(live.uid) ?? []).filter((at) => now - at < CONTEST_MS);
    if (recent.length >= MAX_RESTORED) {
      return { state: 'Contested', live, forMs: (recent[0] ?? now) + CONTEST_MS - now };
    }
    const { namespace, name } = live;
    const manager = otherManagerOf(await client.get({ namespace, name }), client.fieldManager);
    const result = await this.#apply(composed, true);
    // Right after a start it is not known what a webhook makes of it: nothing has changed then.
    const isChanged = result.state === 'Current' && result.live.resourceVersion !== live.resourceVersion;
    if (!isChanged) return result;
    this.#restoredAt.set(live.uid, [...recent, now]);
    return { ...result, restored: { field, manager } };
  }

  async #apply(composed: ComposedObject, isForced: boolean): Promise<Composed> {
    const { client, informer, permit } = this.#options;
    const answer = await client.apply(composed as ComposedObject & Record<string, unknown>, { isForced, permit });
    informer.upsert(answer);
    const live = projectComposed(answer);
    const applied = partsOf(composed);
    const part = composedPartOf(applied, answer);
    const digest = digestIn(composed);
    this.#answers.set(live.uid, isDeepStrictEqual(part, applied) ? { digest } : { digest, part });
    return { state: 'Current', live };
  }
}

function digestIn({ metadata }: ComposedObject): string {
  return Object.values(metadata.annotations ?? {})[0] ?? '';
}

/** One without a controller that has the digest is its own too: somebody has removed the owner reference. */
function isOwnedBy({ controller, digest }: CachedComposed, { metadata }: ComposedObject): boolean {
  if (controller === undefined) return digest !== undefined;
  return controller.uid === metadata.ownerReferences?.[0]?.uid;
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
