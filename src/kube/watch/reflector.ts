import { type Clock, sleep, type Timer } from '../../clock.ts';
import { ControllerError, messageOf } from '../../errors.ts';
import { backoffMs } from '../../queue/backoff.ts';
import type { KubeObject } from '../objects.ts';
import { listPages } from '../requests.ts';
import { compareResourceVersions } from '../resource-version.ts';
import { ApiError, apiErrorOfStatus, isGone, type StatusObject } from '../transport/api-error.ts';
import type { ReflectorOptions, RelistReason, WatchStreamOptions } from './reflector-types.ts';
import { interruptionOf, parseWatchEvent, WatchError, type WatchEvent, watchQueryOf } from './watch-event.ts';
import { WorkSlice } from './work-slice.ts';

const BACKOFF = { baseMs: 200, maxMs: 5_000 };
/**
 * A watch that was open this long clears the back-off: a connection that is cut now and then must not wait ever longer.
 */
const HEALTHY_MS = 1000;
/** A watch that ended sooner and without an event was none, whatever its status said. */
const SHORT_MS = 1000;
/** A proxy before the API server may ask for hours, and the cache would be blind for as long. */
const MAX_RETRY_AFTER_MS = 60_000;
const RESYNC_JITTER_MS = 1000;
const PAGE_TIMEOUT_MS = 60_000;
const HEADERS_TIMEOUT_MS = 30_000;
/** Bookmarks come about every minute. */
const SILENCE_MS = 120_000;
/** Many requests show the same rollback. */
const ROLLED_BACK_REST_MS = 60_000;
/** After this many the list is read by pages; the next one is streamed again. */
const MAX_STREAM_FAILURES = 2;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';
/** etcd takes 1.5 MiB for an object; in JSON a byte of it may be six, such as `\u003c`. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Lists one collection and keeps a watch of it going, as client-go's Reflector: which request comes next, and when. */
export class Reflector {
  readonly #options: ReflectorOptions;
  /** Newest version seen, also while a list is running. */
  #resourceVersion: string | undefined;
  #mustList = true;
  /** False after a server has refused `sendInitialEvents`. */
  #canStreamList = true;
  /** Streamed lists in a row that the server has failed. */
  #streamFailures = 0;
  #failures = 0;
  #silencesInRow = 0;
  #relistsInRow = 0;
  /** When the server has taken the watch that runs, or ended its list; a long wait for either is no health. */
  #openedAt = Number.POSITIVE_INFINITY;
  /** The next list counts, though it may have a later version than what was seen before. */
  #isRolledBack = false;
  #rolledBackAt = Number.NEGATIVE_INFINITY;
  #listFailure: string | undefined;
  /** Ends the watch that runs. */
  #cut: (reason: WatchError) => void = () => {};

  constructor(options: ReflectorOptions) {
    this.#options = options;
  }

  /** Resolves when `signal` is aborted and the connection is closed. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger, path } = this.#options;
    while (!signal.aborted) {
      this.#openedAt = Number.POSITIVE_INFINITY;
      let error: unknown;
      try {
        await this.#listAndWatch(signal);
      } catch (caught) {
        error = caught;
      }
      if (signal.aborted) return;
      // A list that breaks off again and again costs too much to be called healthy.
      if (!this.#mustList && clock.now() - this.#openedAt >= HEALTHY_MS) {
        this.#failures = 0;
        this.#relistsInRow = 0;
      }
      if (error === undefined) continue;
      const delayMs = this.#delayAfter(error);
      if (this.#mustList) this.#listFailure = messageOf(error);
      const { level, ...fault } = interruptionOf(error, delayMs);
      logger[level]({ ...fault, path, delayMs: Math.round(delayMs) }, 'watch interrupted');
      if (delayMs > 0) await sleep(clock, delayMs, signal);
    }
  }

  /** Why the list that is due could not be read last; undefined while there is none to read. */
  get listFailure(): string | undefined {
    return this.#listFailure;
  }

  /**
   * To be called after the process was stopped: lists everything again instead of reading all that happened meanwhile.
   */
  wasPaused(): void {
    if (!this.#mustList) this.#cut(new WatchError('paused', 'the process was stopped'));
  }

  /** See `Informer.wasRolledBack`. */
  wasRolledBack(): void {
    const now = this.#options.clock.now();
    if (this.#mustList || now - this.#rolledBackAt < ROLLED_BACK_REST_MS) return;
    this.#rolledBackAt = now;
    this.#cut(new WatchError('rolled-back', 'the resource version of the cluster went back'));
  }

  async #listAndWatch(signal: AbortSignal): Promise<void> {
    if (this.#mustList && !this.#streamsList()) await this.#listPages(signal);
    await this.#watch(signal);
  }

  /**
   * Kubernetes 1.32 and later answer 200 to each streamed list, and end it with an error 500 while they do not know
   * whether their etcd reports its progress, as etcd before 3.4.31 and 3.5.13 does not.
   */
  #streamsList(): boolean {
    return this.#canStreamList && this.#streamFailures < MAX_STREAM_FAILURES;
  }

  async #listPages(signal: AbortSignal): Promise<void> {
    const { lane, path, query, pageSize, sink } = this.#options;
    sink.onListStart();
    const onItem = (object: KubeObject): void => sink.onChange({ type: 'ADDED', object }, true);
    const options = { query, pageSize, signal, timeoutMs: PAGE_TIMEOUT_MS, onItem };
    await this.#finishList(await listPages(lane, path, options));
  }

  /** Resolves when the server ends the watch in good order, or `signal` is aborted. */
  async #watch(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { clock, sink } = this.#options;
    const startedAt = clock.now();
    if (this.#mustList) sink.onListStart();
    const events = await this.#readWatch(signal);
    if (signal.aborted) return;
    if (this.#mustList) throw new ControllerError('Kube.WatchFailed', 'the watch ended before its list was complete');
    if (events === 0 && clock.now() - startedAt < SHORT_MS) {
      throw new ControllerError('Kube.WatchFailed', 'the watch ended at once');
    }
  }

  /** One connection. Resolves with the number of events and bookmarks that came. */
  async #readWatch(signal: AbortSignal): Promise<number> {
    const { lane, path, query, clock, random, sink, silenceMs = SILENCE_MS } = this.#options;
    const connection = new AbortController();
    let reason: WatchError | undefined;
    const end = (): void => connection.abort();
    this.#cut = (why) => {
      reason = why;
      end();
    };
    const silence = new InactivityTimer(clock, silenceMs, () => {
      this.#cut(new WatchError('silent', `no data for ${silenceMs / 1000} s`));
    });
    signal.addEventListener('abort', end, { once: true });
    let events = 0;
    try {
      const body = await lane.open({
        method: 'GET',
        path,
        query: { ...query, ...watchQueryOf(this.#mustList, this.#resourceVersion, random()) },
        signal: connection.signal,
        timeoutMs: HEADERS_TIMEOUT_MS,
      });
      this.#openedAt = clock.now();
      // Of a kind that nobody changes nothing else may come for minutes: Kubernetes 1.30 sends no bookmarks then either.
      sink.onAlive();
      await readWatchStream({
        body,
        clock,
        onBytes: () => {
          silence.touch();
          this.#silencesInRow = 0;
          sink.onAlive();
        },
        takesLine: (line) => {
          const isKnown = this.#takesLine(line);
          if (isKnown) events++;
          return isKnown;
        },
        onEvent: (event) => {
          events++;
          return this.#onEvent(event);
        },
        onUnreadable: (why) => sink.onUnreadable(why),
      });
    } catch (error) {
      if (!signal.aborted) throw reason ?? error;
    } finally {
      silence.stop();
      signal.removeEventListener('abort', end);
      // Until the next connection, which then begins with a list.
      this.#cut = (why) => void this.#relist(why.kind);
    }
    return events;
  }

  /** Not while a list is running: that one needs every object. */
  #takesLine(line: Buffer): boolean {
    const version = this.#mustList ? undefined : this.#options.sink.takeKnown(line);
    this.#progress(version);
    return version !== undefined;
  }

  #onEvent(event: WatchEvent): Promise<void> | undefined {
    if (event.type === 'BOOKMARK') return this.#onBookmark(event.object);
    if (event.type === 'ERROR') throw apiErrorOfStatus(`watch ${this.#options.path}`, event.object as StatusObject);
    const isListed = this.#mustList;
    this.#options.sink.onChange(event, isListed);
    if (!isListed) this.#progress(event.object.metadata.resourceVersion);
    return undefined;
  }

  #onBookmark({ metadata }: KubeObject): Promise<void> | undefined {
    const { resourceVersion, annotations } = metadata;
    if (resourceVersion === undefined) return undefined;
    if (this.#mustList) {
      return annotations?.[INITIAL_EVENTS_END] === 'true' ? this.#finishList(resourceVersion) : undefined;
    }
    if (this.#resourceVersion !== undefined && compareResourceVersions(resourceVersion, this.#resourceVersion) < 0) {
      throw new WatchError('rolled-back', 'the resource version of the cluster decreased');
    }
    this.#progress(resourceVersion);
    return undefined;
  }

  #progress(resourceVersion: string | undefined): void {
    if (resourceVersion === undefined) return;
    this.#resourceVersion = resourceVersion;
    this.#options.sink.onProgress(resourceVersion);
  }

  async #finishList(resourceVersion: string): Promise<void> {
    const before = this.#resourceVersion;
    const isOlder = before !== undefined && compareResourceVersions(resourceVersion, before) < 0;
    const isRolledBack = this.#isRolledBack || isOlder;
    this.#isRolledBack = false;
    await this.#options.sink.onListed(isRolledBack);
    this.#mustList = false;
    this.#listFailure = undefined;
    this.#streamFailures = 0;
    if (Number.isFinite(this.#openedAt)) this.#openedAt = this.#options.clock.now();
    this.#progress(resourceVersion);
  }

  /** Decides from the error how to go on, and how long to wait before, ms. */
  #delayAfter(error: unknown): number {
    const { random, sink } = this.#options;
    if (this.#mustList) {
      if (this.#givesUpStreaming(error)) {
        sink.onRelist('no-streaming-list');
        return 0;
      }
    } else if (isGone(error)) {
      return this.#relist('gone');
    } else if (error instanceof WatchError) {
      if (error.kind !== 'silent') return this.#relist(error.kind);
      this.#silencesInRow++;
      // Twice nothing at all, not even a bookmark: the server may wait for a version that never comes.
      return this.#silencesInRow > 1 ? this.#relist('silent') : 0;
    }
    this.#failures++;
    const retryAfterMs = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(Math.min(retryAfterMs, MAX_RETRY_AFTER_MS), random() * backoffMs(this.#failures, BACKOFF));
  }

  #givesUpStreaming(error: unknown): boolean {
    if (!this.#streamsList()) return false;
    const status = error instanceof ApiError ? error.status : undefined;
    // Servers without streaming lists refuse `sendInitialEvents`.
    if (status === 400 || status === 422) this.#canStreamList = false;
    else if (status === 500) this.#streamFailures++;
    return !this.#streamsList();
  }

  /**
   * All replicas get "gone" at the same time, hence the jitter. A server that ends each new watch like this is asked
   * ever more rarely.
   */
  #relist(reason: RelistReason): number {
    this.#mustList = true;
    if (reason === 'rolled-back') this.#isRolledBack = true;
    this.#options.sink.onRelist(reason);
    this.#relistsInRow++;
    return this.#options.random() * Math.max(RESYNC_JITTER_MS, backoffMs(this.#relistsInRow, BACKOFF));
  }
}

/** Calls back once when `touch` has not been called for a time. */
class InactivityTimer {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onSilence: () => void;
  #touchedAt: number;
  #timer: Timer;

  constructor(clock: Clock, limitMs: number, onSilence: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onSilence = onSilence;
    this.#touchedAt = clock.now();
    this.#timer = clock.setTimer(() => this.#check(), limitMs);
  }

  /** Costs a subtraction later and no timer now: a busy watch calls it thousands of times. */
  touch(): void {
    this.#touchedAt = this.#clock.now();
  }

  stop(): void {
    this.#timer.cancel();
  }

  #check(): void {
    const left = this.#touchedAt + this.#limitMs - this.#clock.now();
    if (left <= 0) this.#onSilence();
    else this.#timer = this.#clock.setTimer(() => this.#check(), left);
  }
}

/**
 * Reads a watch to its end. An over-long line is left out, since it would come again as it is; one that is no JSON
 * was damaged on its way, so the watch is given up with `Kube.WatchFailed` and its events come once more.
 * What `onEvent` throws is not caught here.
 */
export async function readWatchStream(options: WatchStreamOptions): Promise<void> {
  const { body, clock, onBytes, onEvent, takesLine, onUnreadable } = options;
  const splitter = new LineSplitter(MAX_LINE_BYTES, () => onUnreadable(`longer than ${MAX_LINE_BYTES} bytes`));
  const slice = new WorkSlice(clock);
  for await (const chunk of body) {
    onBytes();
    for (const line of splitter.push(chunk)) {
      if (takesLine(line)) continue;
      const pending = onEvent(parseWatchEvent(line, onUnreadable));
      if (pending !== undefined) await pending;
      if (slice.isOver()) await slice.yield();
    }
  }
}

/**
 * Cuts a byte stream into lines. Works on bytes, so that a chunk may end inside a character, and copies only the
 * lines that span chunks. What follows the last newline is an unfinished event and is never given out.
 */
export class LineSplitter {
  readonly #maxLineBytes: number;
  readonly #onOverlong: () => void;
  /** The start of a line whose end has not come. */
  #parts: Buffer[] = [];
  #partsLength = 0;
  #isSkipping = false;

  /**
   * `onOverlong` is called for a line over `maxLineBytes`, which is left out: it would be as long in the next watch.
   */
  constructor(maxLineBytes: number, onOverlong: () => void) {
    this.#maxLineBytes = maxLineBytes;
    this.#onOverlong = onOverlong;
  }

  /** The lines that `chunk` completes, without their newlines; empty lines are left out. */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const line = this.#finish(chunk.subarray(start, end));
      if (line.length > 0) lines.push(line);
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return lines;
  }

  /** Empty for a line that is left out. */
  #finish(last: Buffer): Buffer {
    this.#keep(last);
    const parts = this.#parts;
    this.#parts = [];
    this.#partsLength = 0;
    this.#isSkipping = false;
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }

  #keep(part: Buffer): void {
    if (this.#isSkipping) return;
    this.#partsLength += part.length;
    if (this.#partsLength <= this.#maxLineBytes) {
      this.#parts.push(part);
      return;
    }
    this.#parts = [];
    this.#isSkipping = true;
    this.#onOverlong();
  }
}
