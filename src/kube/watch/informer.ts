import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import type { Metrics } from '../../metrics.ts';
import type { KubeObject } from '../objects.ts';
import { compareResourceVersions } from '../resource-version.ts';
import type { RestLane } from '../transport/rest-lane.ts';
import { readEventLine } from './event-line.ts';
import { type CachedObject, type Informer, type InformerHandler, objectKey } from './informer-types.ts';
import { OwnWrites } from './own-writes.ts';
import { Reflector } from './reflector.ts';
import type { ReflectorSink } from './reflector-types.ts';
import type { WatchEvent } from './watch-event.ts';
import { WorkSlice } from './work-slice.ts';

const AGE_GAUGE_INTERVAL_MS = 5000;
/** A timer that is this late was not held up by work: the process was stopped. */
const PAUSED_AFTER_MS = 10_000;

export interface SharedInformerOptions<T extends CachedObject> {
  /** Names the cache in metrics and logs. */
  readonly kind: string;
  /** Path of the collection, e.g. `/api/v1/pods`. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Takes what is needed out of an object; the rest is garbage at once. */
  readonly project: (raw: KubeObject) => T;
  readonly indexers?: Readonly<Record<string, (object: T) => string | undefined>>;
  readonly lane: RestLane;
  /** Number of objects in a page of a list that is not streamed. Default: see `listPages`. */
  readonly pageSize?: number | undefined;
  /** A watch on which nothing comes for this long is replaced. Default: see `Reflector`. */
  readonly silenceMs?: number | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Default Math.random. */
  readonly random?: () => number;
}

/** A cache of one kind of object that many read, filled by one watch. */
export class SharedInformer<T extends CachedObject> implements Informer<T> {
  readonly #options: SharedInformerOptions<T>;
  readonly #store: InformerStore<T>;
  readonly #reflector: Reflector;
  readonly #ownWrites = new OwnWrites();
  /** The list that is being received; the cache stays as it is until the list is whole. */
  #listed = new Map<string, T>();
  #isSynced = false;
  /** Waiters for the first sync. Emptied by it, or by their signals. */
  readonly #waiters = new Set<() => void>();
  #lastAliveAt: number | undefined;

  constructor(options: SharedInformerOptions<T>) {
    this.#options = options;
    const { kind, lane, path, labelSelector, fieldSelector, clock, metrics } = options;
    const sizeGauge = metrics.informerObjects.labels({ kind });
    sizeGauge.set(0);
    this.#store = new InformerStore<T>({
      indexers: options.indexers ?? {},
      clock,
      onHandlerError: (error) => this.#onCallbackError(error),
      onSizeChange: (size) => sizeGauge.set(size),
    });
    this.#reflector = new Reflector({
      lane,
      path,
      query: { labelSelector, fieldSelector },
      pageSize: options.pageSize,
      silenceMs: options.silenceMs,
      clock,
      logger: options.logger.child({ kind }),
      random: options.random ?? Math.random,
      sink: this.#createSink(),
    });
  }

  get kind(): string {
    return this.#options.kind;
  }

  addHandler(handler: InformerHandler<T>): void {
    this.#store.addHandler(handler);
  }

  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  list(): readonly T[] {
    return this.#store.list();
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.#store.byIndex(index, value);
  }

  hasSynced(): boolean {
    return this.#isSynced;
  }

  /** Why the cache is not whole yet, as far as an answer has said so. */
  get listFailure(): string | undefined {
    return this.#reflector.listFailure;
  }

  whenSynced(signal?: AbortSignal): Promise<boolean> {
    if (this.#isSynced || signal?.aborted) return Promise.resolve(this.#isSynced);
    return new Promise((resolve) => {
      const finish = (): void => {
        this.#waiters.delete(finish);
        signal?.removeEventListener('abort', finish);
        resolve(this.#isSynced);
      };
      this.#waiters.add(finish);
      signal?.addEventListener('abort', finish, { once: true });
    });
  }

  lastEventAgeMs(): number {
    if (this.#lastAliveAt === undefined) return Number.POSITIVE_INFINITY;
    return this.#options.clock.now() - this.#lastAliveAt;
  }

  upsert(raw: KubeObject): void {
    const object = this.#project(raw);
    if (object && this.#store.upsert(object)) this.#ownWrites.add(object);
  }

  expectDeletion({ uid }: Pick<T, 'uid'>): () => void {
    this.#ownWrites.addDeletion(uid);
    return () => this.#ownWrites.endDeletion(uid);
  }

  wasRolledBack(): void {
    this.#reflector.wasRolledBack();
  }

  /** Resolves when `signal` is aborted and the connection is closed. To be called once. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, kind, metrics } = this.#options;
    const gauge = metrics.informerLastEventAge.labels({ kind });
    let dueAt = clock.now() + AGE_GAUGE_INTERVAL_MS;
    const tick = (): void => {
      if (clock.now() - dueAt >= PAUSED_AFTER_MS) this.#reflector.wasPaused();
      dueAt = clock.now() + AGE_GAUGE_INTERVAL_MS;
      if (this.#lastAliveAt !== undefined) gauge.set(this.lastEventAgeMs() / 1000);
      timer = clock.setTimer(tick, AGE_GAUGE_INTERVAL_MS);
    };
    let timer = clock.setTimer(tick, AGE_GAUGE_INTERVAL_MS);
    try {
      await this.#reflector.run(signal);
    } finally {
      timer.cancel();
    }
  }

  #createSink(): ReflectorSink {
    const { kind, logger, metrics, clock } = this.#options;
    return {
      onListStart: () => {
        this.#listed = new Map();
      },
      onChange: (event, isListed) => this.#onChange(event, isListed),
      takeKnown: (line) => this.#takeKnown(line),
      onListed: (rolledBack) => this.#takeList(rolledBack),
      onProgress: (resourceVersion) => this.#store.progressed(resourceVersion),
      onAlive: () => {
        this.#lastAliveAt = clock.now();
      },
      onUnreadable: (why) => {
        metrics.informerParseErrors.inc({ kind });
        logger.error({ kind, why }, 'unreadable watch line');
      },
      onRelist: (reason) => metrics.informerRelists.inc({ kind, reason }),
    };
  }

  /** An event whose line needs no parsing: the object has gone, or the cache has what this process wrote. */
  #takeKnown(line: Buffer): string | undefined {
    const event = readEventLine(line);
    if (event?.type === 'DELETED') this.#onDeleted(event, false);
    else if (event === undefined || !this.#ownWrites.take(event)) return undefined;
    return event.resourceVersion;
  }

  #onChange({ type, object: raw }: WatchEvent, isListed: boolean): void {
    if (type === 'DELETED') {
      const { namespace = '', name, uid = '', resourceVersion = '' } = raw.metadata;
      this.#onDeleted({ namespace, name, uid, resourceVersion }, isListed);
      return;
    }
    const object = this.#project(raw);
    if (object && isListed) this.#listed.set(objectKey(object), object);
    else if (object) {
      this.#ownWrites.forget(object.resourceVersion);
      this.#store.put(object);
    }
  }

  #onDeleted(deleted: CachedObject, isListed: boolean): void {
    this.#ownWrites.endDeletion(deleted.uid);
    if (isListed) this.#listed.delete(objectKey(deleted));
    // Of what this process wrote since, the watch may say more: that it is selected again.
    else if (this.#store.remove(deleted)) this.#ownWrites.clear();
  }

  async #takeList(rolledBack: boolean): Promise<void> {
    const listed = this.#listed;
    this.#listed = new Map();
    this.#ownWrites.clear();
    await this.#store.replace(listed, rolledBack);
    this.#isSynced = true;
    for (const finish of [...this.#waiters]) finish();
  }

  /** Undefined for an object that `project` cannot handle: that one is left out, the others go on. */
  #project(raw: KubeObject): T | undefined {
    try {
      return this.#options.project(raw);
    } catch (error) {
      this.#onCallbackError(error);
      return undefined;
    }
  }

  #onCallbackError(error: unknown): void {
    const { kind, logger, metrics } = this.#options;
    metrics.informerHandlerErrors.inc({ kind });
    logger.error({ kind, err: error }, `informer callback failed: ${messageOf(error)}`);
  }
}

export interface InformerStoreOptions<T extends CachedObject> {
  readonly indexers: Readonly<Record<string, (object: T) => string | undefined>>;
  readonly clock: Clock;
  /** Called with what a handler has thrown. */
  readonly onHandlerError: (error: unknown) => void;
  readonly onSizeChange: (size: number) => void;
}

/** The cache of an informer, its indexes, and the order of versions: an older one never replaces a newer one. */
export class InformerStore<T extends CachedObject> {
  readonly #options: InformerStoreOptions<T>;
  readonly #objects = new Map<string, T>();
  readonly #indexes: ReadonlyMap<string, ObjectIndex<T>>;
  readonly #handlers: InformerHandler<T>[] = [];

  constructor(options: InformerStoreOptions<T>) {
    this.#options = options;
    this.#indexes = new Map(
      Object.entries(options.indexers).map(([name, indexer]) => [name, new ObjectIndex(indexer)]),
    );
  }

  addHandler(handler: InformerHandler<T>): void {
    this.#handlers.push(handler);
    for (const object of this.#objects.values()) this.#guard(() => handler.onAdd?.(object));
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): readonly T[] {
    return [...this.#objects.values()];
  }

  byIndex(index: string, value: string): readonly T[] {
    const found = this.#indexes.get(index);
    if (!found) throw new RangeError(`no such index: ${index}`);
    return found.get(value);
  }

  /** Takes an added or modified object; false where the cache has that version, or a newer one. */
  put(object: T): boolean {
    const old = this.#objects.get(objectKey(object));
    if (old && compareResourceVersions(object.resourceVersion, old.resourceVersion) <= 0) return false;
    this.#set(old, object);
    return true;
  }

  /**
   * Takes a deletion; one that is older than another incarnation in the cache is of an earlier life. Its event has the
   * object as the last event before showed it, with the version of the deletion. Returns whether the cache had a newer
   * version of the same incarnation: an answer to a write of this process, about an object that had lost its label
   * before. No further event would show that.
   */
  remove(deleted: CachedObject): boolean {
    const old = this.#objects.get(objectKey(deleted));
    if (!old) return false;
    const { uid, resourceVersion } = deleted;
    const isSame = old.uid === uid;
    const isOlder = compareResourceVersions(resourceVersion, old.resourceVersion) < 0;
    if (isOlder && !isSame) return false;
    this.#delete(old, isSame && !isOlder ? { ...old, resourceVersion } : old);
    return isOlder;
  }

  /** Takes the answer to a write: only a newer version of the incarnation that is cached. False where it is not. */
  upsert(object: T): boolean {
    return this.#objects.get(objectKey(object))?.uid === object.uid && this.put(object);
  }

  /**
   * Makes the cache equal to a list: adds and updates first, deletions last. Objects that were written after the
   * list stay as they are, unless the list is of a cluster that was `rolledBack` to an older state.
   * Gives way to other work in between; nothing else may be put or removed until it resolves, but upserts may come.
   */
  async replace(objects: ReadonlyMap<string, T>, rolledBack: boolean): Promise<void> {
    const slice = new WorkSlice(this.#options.clock);
    for (const object of objects.values()) {
      if (rolledBack) this.#force(object);
      else this.put(object);
      if (slice.isOver()) await slice.yield();
    }
    for (const [key, object] of this.#objects) {
      if (!objects.has(key)) this.#delete(object, object, rolledBack);
      if (slice.isOver()) await slice.yield();
    }
  }

  progressed(resourceVersion: string): void {
    for (const handler of this.#handlers) this.#guard(() => handler.onProgress?.(resourceVersion));
  }

  #force(object: T): void {
    const old = this.#objects.get(objectKey(object));
    if (old?.resourceVersion !== object.resourceVersion || old.uid !== object.uid) this.#set(old, object, true);
  }

  #set(old: T | undefined, object: T, rolledBack = false): void {
    if (old && old.uid !== object.uid) {
      this.#delete(old, old, rolledBack);
      this.#set(undefined, object);
      return;
    }
    this.#objects.set(objectKey(object), object);
    for (const index of this.#indexes.values()) index.change(old, object);
    if (old) {
      for (const handler of this.#handlers) this.#guard(() => handler.onUpdate?.(old, object));
    } else {
      this.#options.onSizeChange(this.#objects.size);
      for (const handler of this.#handlers) this.#guard(() => handler.onAdd?.(object));
    }
  }

  #delete(old: T, last: T, isForgotten = false): void {
    this.#objects.delete(objectKey(old));
    for (const index of this.#indexes.values()) index.change(old, undefined);
    this.#options.onSizeChange(this.#objects.size);
    for (const handler of this.#handlers) this.#guard(() => handler.onDelete?.(last, isForgotten));
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#options.onHandlerError(error);
    }
  }
}

/** Which objects have a value; kept with each change, so that no lookup walks the cache. */
class ObjectIndex<T extends CachedObject> {
  readonly #valueOf: (object: T) => string | undefined;
  /** Emptied value by value as the last object of each goes. */
  readonly #byValue = new Map<string, Map<string, T>>();

  /** Objects with the value undefined are not in the index. */
  constructor(indexer: (object: T) => string | undefined) {
    this.#valueOf = indexer;
  }

  get(value: string): readonly T[] {
    const objects = this.#byValue.get(value);
    return objects ? [...objects.values()] : [];
  }

  /** `object` takes the place of `old`, which has the same key. */
  change(old: T | undefined, object: T | undefined): void {
    const oldValue = old && this.#valueOf(old);
    const value = object && this.#valueOf(object);
    if (old && oldValue !== undefined && oldValue !== value) this.#remove(oldValue, objectKey(old));
    if (object && value !== undefined) this.#add(value, object);
  }

  #add(value: string, object: T): void {
    const objects = this.#byValue.get(value);
    if (objects) objects.set(objectKey(object), object);
    else this.#byValue.set(value, new Map([[objectKey(object), object]]));
  }

  #remove(value: string, key: string): void {
    const objects = this.#byValue.get(value);
    objects?.delete(key);
    if (objects?.size === 0) this.#byValue.delete(value);
  }
}
