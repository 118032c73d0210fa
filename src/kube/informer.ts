import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { InformerStore } from './informer-store.ts';
import { type CachedObject, type Informer, type InformerHandler, objectKey } from './informer-types.ts';
import { ListWatch, type ListWatchSink } from './list-watch.ts';
import type { KubeObject } from './objects.ts';
import type { RestLane } from './rest-lane.ts';
import type { WatchEvent } from './watch-stream.ts';

const AGE_GAUGE_INTERVAL_MS = 5000;
/** A timer that is later than that was not held up by work: the process was stopped. */
const PAUSED_AFTER_MS = 10_000;

export interface SharedInformerOptions<T extends CachedObject> {
  /** Names the cache in metrics and logs. */
  readonly kind: string;
  /** Of the collection, e.g. `/api/v1/pods`. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Takes what is needed out of an object; the rest is garbage at once. */
  readonly project: (raw: KubeObject) => T;
  readonly indexers?: Readonly<Record<string, (object: T) => string | undefined>>;
  readonly lane: RestLane;
  /** A watch on which nothing comes for so long is begun anew. Default: see `WatchSession`. */
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
  readonly #listWatch: ListWatch;
  /** The list that is being received; the cache stays as it is until the list is whole. */
  #listed = new Map<string, T>();
  #isSynced = false;
  /** Those who wait for the first sync. Emptied by it, or by their signals. */
  readonly #waiters = new Set<() => void>();
  #lastBytesAt: number | undefined;

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
    this.#listWatch = new ListWatch({
      lane,
      path,
      query: { labelSelector, fieldSelector },
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
    if (this.#lastBytesAt === undefined) return Number.POSITIVE_INFINITY;
    return this.#options.clock.now() - this.#lastBytesAt;
  }

  upsert(raw: KubeObject): void {
    const object = this.#project(raw);
    if (object) this.#store.upsert(object);
  }

  /** Resolves when `signal` is aborted and the connection is closed. To be called once. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, kind, metrics } = this.#options;
    const gauge = metrics.informerLastEventAge.labels({ kind });
    let dueAt = clock.now() + AGE_GAUGE_INTERVAL_MS;
    const tick = (): void => {
      if (clock.now() - dueAt >= PAUSED_AFTER_MS) this.#listWatch.wasPaused();
      dueAt = clock.now() + AGE_GAUGE_INTERVAL_MS;
      if (this.#lastBytesAt !== undefined) gauge.set(this.lastEventAgeMs() / 1000);
      timer = clock.setTimer(tick, AGE_GAUGE_INTERVAL_MS);
    };
    let timer = clock.setTimer(tick, AGE_GAUGE_INTERVAL_MS);
    try {
      await this.#listWatch.run(signal);
    } finally {
      timer.cancel();
    }
  }

  #createSink(): ListWatchSink {
    const { kind, logger, metrics, clock } = this.#options;
    return {
      onListStart: () => {
        this.#listed = new Map();
      },
      onListItem: (item) => this.#onListed(item),
      onChange: (event, isListed) => this.#onChange(event, isListed),
      onListed: (rolledBack) => this.#takeList(rolledBack),
      onProgress: (resourceVersion) => this.#store.progressed(resourceVersion),
      onBytes: () => {
        this.#lastBytesAt = clock.now();
      },
      onUnreadable: (why) => {
        metrics.informerParseErrors.inc({ kind });
        logger.error({ kind, why }, 'unreadable watch line');
      },
      onRelist: (reason) => metrics.informerRelists.inc({ kind, reason }),
    };
  }

  #onListed(raw: KubeObject): void {
    const object = this.#project(raw);
    if (object) this.#listed.set(objectKey(object), object);
  }

  #onChange({ type, object: raw }: WatchEvent, isListed: boolean): void {
    const object = this.#project(raw);
    if (!object) return;
    if (isListed && type === 'DELETED') this.#listed.delete(objectKey(object));
    else if (isListed) this.#listed.set(objectKey(object), object);
    else if (type === 'DELETED') this.#store.remove(object);
    else this.#store.put(object);
  }

  async #takeList(rolledBack: boolean): Promise<void> {
    const listed = this.#listed;
    this.#listed = new Map();
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
