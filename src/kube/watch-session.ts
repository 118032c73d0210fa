import type { Clock } from '../clock.ts';
import { ControllerError } from '../errors.ts';
import type { StatusObject } from './api-error.ts';
import { apiErrorOfStatus } from './api-response.ts';
import { InactivityGuard } from './inactivity-guard.ts';
import type { KubeObject } from './objects.ts';
import { compareResourceVersions } from './resource-version.ts';
import type { RestLane, RestRequest } from './rest-lane.ts';
import { readWatchStream, type WatchEvent } from './watch-stream.ts';

const HEADERS_TIMEOUT_MS = 30_000;
/** Bookmarks come about each minute. */
export const SILENCE_MS = 120_000;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** No byte came for so long: the path is dead, or the server has nothing it could send. */
export class WatchSilentError extends ControllerError {
  constructor(silenceMs: number) {
    super('Kube.WatchFailed', `no byte for ${silenceMs / 1000} s`);
  }
}

/** The server is at an older state than we have seen of it: restored from a backup. */
export class RolledBackError extends ControllerError {
  constructor() {
    super('Kube.WatchFailed', 'the resource version of the cluster went back');
  }
}

export interface WatchSessionOptions {
  readonly lane: RestLane;
  readonly path: string;
  readonly query: NonNullable<RestRequest['query']>;
  readonly clock: Clock;
  /** A watch on which nothing comes for so long is dead. Default `SILENCE_MS`. */
  readonly silenceMs: number | undefined;
  /** Where to resume; undefined = send everything first. */
  readonly resourceVersion: string | undefined;
  /** The server has taken the watch. */
  readonly onOpen: () => void;
  readonly onBytes: () => void;
  /** `isListed`: the object is of the list that the stream begins with, or changed one before its end. */
  readonly onChange: (event: WatchEvent, isListed: boolean) => void;
  /** All up to this version was told. */
  readonly onProgress: (resourceVersion: string) => void;
  /** The list is whole. */
  readonly onListed: (resourceVersion: string) => Promise<void>;
  readonly onUnreadable: (why: string) => void;
}

/** One connection of a watch. */
export class WatchSession {
  readonly #options: WatchSessionOptions;
  readonly #cut = new AbortController();
  #cutReason: Error | undefined;
  #resourceVersion: string | undefined;
  #events = 0;

  constructor(options: WatchSessionOptions) {
    this.#options = options;
    this.#resourceVersion = options.resourceVersion;
  }

  /** Where the next session goes on; undefined while the list is not whole. */
  get resourceVersion(): string | undefined {
    return this.#resourceVersion;
  }

  /** How many events and bookmarks came. */
  get events(): number {
    return this.#events;
  }

  /** Ends it now: `run` rejects with `reason`. */
  cut(reason: Error): void {
    this.#cutReason = reason;
    this.#cut.abort();
  }

  /** Resolves when the server ends the watch in good order or `signal` is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { lane, path, query, clock } = this.#options;
    const onAbort = (): void => this.#cut.abort();
    const { silenceMs = SILENCE_MS } = this.#options;
    const guard = new InactivityGuard(clock, silenceMs, () => this.cut(new WatchSilentError(silenceMs)));
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      const body = await lane.open({
        method: 'GET',
        path,
        query,
        signal: this.#cut.signal,
        timeoutMs: HEADERS_TIMEOUT_MS,
      });
      this.#options.onOpen();
      await this.#read(body, guard);
    } catch (error) {
      if (!signal.aborted) throw this.#cutReason ?? error;
    } finally {
      guard.stop();
      signal.removeEventListener('abort', onAbort);
    }
    if (this.#resourceVersion === undefined && !signal.aborted) {
      throw new ControllerError('Kube.WatchFailed', 'the watch ended before its list was whole');
    }
  }

  async #read(body: AsyncIterable<Buffer>, guard: InactivityGuard): Promise<void> {
    const { clock, onBytes, onUnreadable } = this.#options;
    await readWatchStream({
      body,
      clock,
      onBytes: () => {
        guard.touch();
        onBytes();
      },
      onEvent: (event) => this.#onEvent(event),
      onUnreadable,
    });
  }

  #onEvent(event: WatchEvent): Promise<void> | undefined {
    this.#events++;
    if (event.type === 'BOOKMARK') return this.#onBookmark(event.object);
    if (event.type === 'ERROR') throw apiErrorOfStatus(`watch ${this.#options.path}`, event.object as StatusObject);
    const isListed = this.#resourceVersion === undefined;
    this.#options.onChange(event, isListed);
    if (!isListed) this.#progress(event.object.metadata.resourceVersion);
    return undefined;
  }

  #onBookmark({ metadata }: KubeObject): Promise<void> | undefined {
    const { resourceVersion, annotations } = metadata;
    if (resourceVersion === undefined) return undefined;
    if (this.#resourceVersion === undefined) {
      if (annotations?.[INITIAL_EVENTS_END] !== 'true') return undefined;
      this.#resourceVersion = resourceVersion;
      return this.#options.onListed(resourceVersion);
    }
    if (compareResourceVersions(resourceVersion, this.#resourceVersion) < 0) throw new RolledBackError();
    this.#progress(resourceVersion);
    return undefined;
  }

  #progress(resourceVersion: string | undefined): void {
    if (resourceVersion === undefined) return;
    this.#resourceVersion = resourceVersion;
    this.#options.onProgress(resourceVersion);
  }
}
