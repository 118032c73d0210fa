import { type Clock, sleep } from '../clock.ts';
import { ControllerError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { backoffMs } from '../queue/backoff.ts';
import { ApiError, isGone } from './api-error.ts';
import type { KubeObject } from './objects.ts';
import { listPages } from './paged-list.ts';
import { compareResourceVersions } from './resource-version.ts';
import type { RestLane, RestRequest } from './rest-lane.ts';
import { RolledBackError, WatchSession, WatchSilentError } from './watch-session.ts';
import type { WatchEvent } from './watch-stream.ts';

const BACKOFF = { baseMs: 200, maxMs: 5_000 };
/** A watch that was open so long clears the backoff: what is cut now and then must not be waited for ever longer. */
const HEALTHY_MS = 1000;
/** A watch that ended sooner and without an event was none, whatever its status said. */
const SHORT_MS = 1000;
/** What stands before the API server may ask for hours, and we would see nothing for so long. */
const MAX_RETRY_AFTER_MS = 60_000;
const RESYNC_JITTER_MS = 1000;

export type RelistReason = 'gone' | 'rolled-back' | 'silent' | 'no-streaming-list' | 'paused';

/** The process was stopped for a while: what the watch still has to tell is old. */
class PausedError extends ControllerError {
  constructor() {
    super('Kube.WatchFailed', 'the process was stopped');
  }
}

export interface ListWatchSink {
  /** A list begins: what the last one gathered is void. */
  onListStart(): void;
  onListItem(item: KubeObject): void;
  /** A change, of the running list (`isListed`) or of the cache. */
  onChange(event: WatchEvent, isListed: boolean): void;
  /** The list is whole. `rolledBack`: it is older than what was seen before. */
  onListed(rolledBack: boolean): Promise<void>;
  /** All up to this version was told. */
  onProgress(resourceVersion: string): void;
  onBytes(): void;
  onUnreadable(why: string): void;
  onRelist(reason: RelistReason): void;
}

export interface ListWatchOptions {
  readonly lane: RestLane;
  readonly path: string;
  readonly query: NonNullable<RestRequest['query']>;
  /** Default: twice the time from bookmark to bookmark. */
  readonly silenceMs: number | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  readonly sink: ListWatchSink;
}

/** Keeps one watch going: which request comes next, and when. */
export class ListWatch {
  readonly #options: ListWatchOptions;
  /** Newest version seen, also while a list is running. */
  #resourceVersion: string | undefined;
  #mustList = true;
  /** False after a server has refused `sendInitialEvents`. */
  #canStreamList = true;
  /** The watch that runs. */
  #session: WatchSession | undefined;
  #failures = 0;
  #silencesInRow = 0;
  /** Of the watch that runs; a long wait for an answer is no health. */
  #openedAt = Number.POSITIVE_INFINITY;

  constructor(options: ListWatchOptions) {
    this.#options = options;
  }

  /** Resolves when `signal` is aborted and the connection is closed. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    while (!signal.aborted) {
      this.#openedAt = Number.POSITIVE_INFINITY;
      let error: unknown;
      try {
        await this.#step(signal);
      } catch (caught) {
        error = caught;
      }
      if (signal.aborted) return;
      // A list that breaks off again and again costs too much to be called healthy.
      if (!this.#mustList && clock.now() - this.#openedAt >= HEALTHY_MS) this.#failures = 0;
      if (error === undefined) continue;
      const delayMs = this.#delayAfter(error);
      // What goes on at once is routine: a silent watch, a server without streaming lists.
      const level = delayMs === 0 ? 'info' : 'warn';
      logger[level]({ err: error, path: this.#options.path, delayMs: Math.round(delayMs) }, 'watch interrupted');
      if (delayMs > 0) await sleep(clock, delayMs, signal);
    }
  }

  /** To be called after the process was stopped: lists everything again instead of reading all that happened meanwhile. */
  wasPaused(): void {
    if (!this.#mustList) this.#session?.cut(new PausedError());
  }

  async #step(signal: AbortSignal): Promise<void> {
    if (this.#mustList && !this.#canStreamList) await this.#listPages(signal);
    await this.#watch(signal);
  }

  async #listPages(signal: AbortSignal): Promise<void> {
    const { lane, path, query, sink } = this.#options;
    sink.onListStart();
    const resourceVersion = await listPages({ lane, path, query, signal, onItem: (item) => sink.onListItem(item) });
    await this.#finishList(resourceVersion);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { lane, path, query, clock, sink } = this.#options;
    const startedAt = clock.now();
    if (this.#mustList) sink.onListStart();
    const session = new WatchSession({
      lane,
      path,
      query: { ...query, ...this.#watchQuery() },
      clock,
      resourceVersion: this.#mustList ? undefined : this.#resourceVersion,
      onOpen: () => {
        this.#openedAt = clock.now();
      },
      onBytes: () => {
        this.#silencesInRow = 0;
        sink.onBytes();
      },
      silenceMs: this.#options.silenceMs,
      onChange: (event, isListed) => sink.onChange(event, isListed),
      onProgress: (resourceVersion) => sink.onProgress(resourceVersion),
      onListed: (resourceVersion) => this.#finishList(resourceVersion),
      onUnreadable: (why) => sink.onUnreadable(why),
    });
    this.#session = session;
    try {
      await session.run(signal);
    } finally {
      this.#resourceVersion = session.resourceVersion ?? this.#resourceVersion;
    }
    if (session.events === 0 && clock.now() - startedAt < SHORT_MS) {
      throw new ControllerError('Kube.WatchFailed', 'the watch ended at once');
    }
  }

  #watchQuery(): NonNullable<RestRequest['query']> {
    const common = {
      watch: true,
      allowWatchBookmarks: true,
      // Spreads the reconnects of many watches that began together.
      timeoutSeconds: Math.floor(300 + this.#options.random() * 300),
    };
    return this.#mustList
      ? { ...common, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }
      : { ...common, resourceVersion: this.#resourceVersion };
  }

  async #finishList(resourceVersion: string): Promise<void> {
    const before = this.#resourceVersion;
    await this.#options.sink.onListed(before !== undefined && compareResourceVersions(resourceVersion, before) < 0);
    this.#resourceVersion = resourceVersion;
    this.#mustList = false;
    this.#options.sink.onProgress(resourceVersion);
  }

  /** Decides from the error how to go on, and how long to wait before. */
  #delayAfter(error: unknown): number {
    const { random } = this.#options;
    if (this.#mustList) {
      if (this.#canStreamList && isRefusal(error)) {
        this.#canStreamList = false;
        this.#options.sink.onRelist('no-streaming-list');
        return 0;
      }
    } else if (isGone(error)) {
      return this.#relist('gone');
    } else if (error instanceof PausedError) {
      return this.#relist('paused');
    } else if (error instanceof RolledBackError) {
      return this.#relist('rolled-back');
    } else if (error instanceof WatchSilentError) {
      this.#silencesInRow++;
      // Twice nothing at all, not even a bookmark: the server may wait for a version that never comes.
      return this.#silencesInRow > 1 ? this.#relist('silent') : 0;
    }
    this.#failures++;
    const retryAfterMs = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(Math.min(retryAfterMs, MAX_RETRY_AFTER_MS), random() * backoffMs(this.#failures, BACKOFF));
  }

  /** All replicas are told "gone" at the same time, hence the jitter. */
  #relist(reason: RelistReason): number {
    this.#mustList = true;
    this.#options.sink.onRelist(reason);
    return this.#options.random() * RESYNC_JITTER_MS;
  }
}

/** What servers without streaming lists answer to `sendInitialEvents`. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 400 || error.status === 422);
}
