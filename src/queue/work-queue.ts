import TinyQueue from 'tinyqueue';
import type { Clock, Timer } from '../clock.ts';
import { ControllerError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { type BackoffOptions, backoffMs } from './backoff.ts';
import { Turns } from './turns.ts';

export interface WorkQueueOptions {
  readonly name: string;
  /** How many keys are synced at a time; one key never twice at a time. */
  readonly workers: number;
  /** Brings the world of `key` to what it should be; called again with a growing delay when it rejects. */
  readonly sync: (key: string) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Default 100 ms, doubled to 30 s. */
  readonly backoff?: BackoffOptions;
  /** How much later a delayed key may start, together with others: one wake-up for many. Default 0. */
  readonly slackMs?: number;
  /**
   * How long a key rests after a sync, asked when it has ended: what is added meanwhile is seen by one later sync.
   * Default: not at all.
   */
  readonly restMs?: (key: string) => number;
  /** Whether the key goes before all that are not; asked each time that it is added. Default: none does. */
  readonly isUrgent?: (key: string) => boolean;
  /**
   * The group that a key belongs to: groups take turns and share the workers (`Turns`), so that many or slow keys of
   * one group delay no other group. Not for a queue with urgent keys. Default: keys begin in order of arrival.
   */
  readonly groupOf?: (key: string) => string;
}

interface Delayed {
  readonly key: string;
  readonly dueAt: number;
}

/** Number of outdated entries that the heap may have, besides as many as are valid. */
const MAX_OLD_ENTRIES = 100;

function byDueAt(a: Delayed, b: Delayed): number {
  return a.dueAt - b.dueAt;
}

/**
 * client-go's work queue: a key that is added while it waits is not queued twice, one that is added while it
 * runs runs once more. All delays share one heap and one timer.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  /** Waiting keys in order of arrival, with the time of arrival; the urgent ones first. Emptied by the workers. */
  readonly #urgent = new Map<string, number>();
  readonly #waiting = new Map<string, number>();
  /** Which waiting key begins next, where that is not the oldest one. */
  readonly #turns: Turns | undefined;
  /** Keys in work; true = added again meanwhile. Emptied when the sync ends. */
  readonly #running = new Map<string, boolean>();
  /** The one valid due time of a delayed key; older heap entries are skipped. Emptied when due. */
  readonly #dueAt = new Map<string, number>();
  /** The same of its look. Emptied when due, or by the next look. */
  readonly #lookAt = new Map<string, number>();
  /** When the rest of a key ends. Emptied by the first add after that, or by `forget`. */
  readonly #restsUntil = new Map<string, number>();
  #heap = new TinyQueue<Delayed>([], byDueAt);
  /** Failures in a row. Emptied by a success or by `forget`. */
  readonly #failures = new Map<string, number>();
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  /** When work began; infinite before. */
  #startedAt = Number.POSITIVE_INFINITY;
  #isStarting = false;
  #stopped = false;
  #onIdle: (() => void) | undefined;

  constructor(options: WorkQueueOptions) {
    const { groupOf, workers } = options;
    this.#options = options;
    this.#turns = groupOf && new Turns({ groupOf, workers });
  }

  get depth(): number {
    return this.#urgent.size + this.#waiting.size;
  }

  /** How many delays and looks it keeps, those that count no more among them. */
  get delayedCount(): number {
    return this.#heap.length;
  }

  /** How long the urgent key that is next waits for its turn, ms; 0 when there is none, and before work has begun. */
  get urgentWaitMs(): number {
    for (const addedAt of this.#urgent.values()) {
      return Math.max(0, this.#options.clock.now() - Math.max(addedAt, this.#startedAt));
    }
    return 0;
  }

  add(key: string): void {
    if (this.#stopped) return;
    if (this.#running.has(key)) {
      this.#running.set(key, true);
      return;
    }
    if (this.#urgent.has(key)) return;
    const addedAt = this.#waiting.get(key);
    if (addedAt !== undefined) {
      if (this.#isUrgent(key)) {
        this.#waiting.delete(key);
        this.#urgent.set(key, addedAt);
      }
      return;
    }
    const restMs = (this.#restsUntil.get(key) ?? 0) - this.#options.clock.now();
    if (restMs > 0) {
      this.addAfter(key, restMs);
      return;
    }
    this.#restsUntil.delete(key);
    const waiting = this.#isUrgent(key) ? this.#urgent : this.#waiting;
    waiting.set(key, this.#options.clock.now());
    this.#turns?.add(key);
    this.#options.metrics.queueAdds.inc({ name: this.#options.name });
    this.#startSoon();
  }

  /** Adds the key after `delayMs`; of several delays of one key the earliest counts. Infinity and NaN are no delays. */
  addAfter(key: string, delayMs: number): void {
    if (this.#stopped || Number.isNaN(delayMs) || delayMs === Number.POSITIVE_INFINITY) return;
    if (delayMs <= 0) {
      this.add(key);
      return;
    }
    const dueAt = this.#options.clock.now() + delayMs;
    const known = this.#dueAt.get(key);
    if (known !== undefined && known <= dueAt) return;
    this.#dueAt.set(key, dueAt);
    this.#wakeAt({ key, dueAt });
  }

  /**
   * Adds the key at `time` on the clock, soon when that is past. Of several looks the last one counts; Infinity and NaN
   * mean none. For a sync that knows each time when it has to look again if nothing happens.
   */
  lookAt(key: string, time: number): void {
    if (this.#stopped || this.#lookAt.get(key) === time) return;
    if (!Number.isFinite(time)) {
      this.#lookAt.delete(key);
      return;
    }
    // In place: a deletion before it would have the whole table copied now and then.
    this.#lookAt.set(key, time);
    this.#wakeAt({ key, dueAt: time });
  }

  /** Drops the key's failures, delay and look; a running sync ends as it would. */
  forget(key: string): void {
    this.#failures.delete(key);
    this.#dueAt.delete(key);
    this.#lookAt.delete(key);
    this.#restsUntil.delete(key);
    this.#urgent.delete(key);
    if (this.#waiting.delete(key)) this.#turns?.delete(key);
  }

  /** Whether the last sync of the key has failed: it is tried again with a delay. */
  isRetrying(key: string): boolean {
    return this.#failures.has(key);
  }

  /** Whether a sync of the key is under way. */
  isWorkingOn(key: string): boolean {
    return this.#running.has(key);
  }

  /** Works until `signal` is aborted; resolves when the syncs that were under way have ended. */
  async run(signal: AbortSignal): Promise<void> {
    this.#startedAt = this.#options.clock.now();
    this.#startWorkers();
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#running.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  #isUrgent(key: string): boolean {
    return this.#options.isUrgent?.(key) ?? false;
  }

  /** Not within `add`: the caller often adds more, and a sync should see all of it. */
  #startSoon(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    queueMicrotask(() => {
      this.#isStarting = false;
      this.#startWorkers();
    });
  }

  #startWorkers(): void {
    const isStarted = Number.isFinite(this.#startedAt);
    while (isStarted && !this.#stopped) {
      const next = this.#turns ? this.#takeTurn(this.#turns) : this.#takeFirst();
      if (next === undefined) break;
      void this.#work(...next);
    }
    this.#options.metrics.queueDepth.set({ name: this.#options.name }, this.depth);
  }

  /** Removes a waiting key that may begin now, and returns it with its time of arrival. */
  #takeFirst(): [key: string, addedAt: number] | undefined {
    if (this.#running.size >= this.#options.workers) return undefined;
    const waiting = this.#urgent.size > 0 ? this.#urgent : this.#waiting;
    const next = waiting.entries().next();
    if (next.done) return undefined;
    waiting.delete(next.value[0]);
    return next.value;
  }

  #takeTurn(turns: Turns): [key: string, addedAt: number] | undefined {
    const key = turns.take();
    if (key === undefined) return undefined;
    const addedAt = this.#waiting.get(key) ?? this.#options.clock.now();
    this.#waiting.delete(key);
    return [key, addedAt];
  }

  async #work(key: string, addedAt: number): Promise<void> {
    const { clock, metrics, name, sync } = this.#options;
    const startedAt = clock.now();
    this.#running.set(key, false);
    metrics.queueSeconds.observe({ name }, (startedAt - addedAt) / 1000);
    try {
      await sync(key);
      this.#failures.delete(key);
    } catch (error) {
      this.#retry(key, error);
    }
    metrics.queueWorkSeconds.observe({ name }, (clock.now() - startedAt) / 1000);
    const again = this.#running.get(key) === true;
    this.#running.delete(key);
    this.#turns?.end(key);
    const restMs = this.#options.restMs?.(key) ?? 0;
    if (restMs > 0) this.#restsUntil.set(key, clock.now() + restMs);
    if (this.#stopped && this.#running.size === 0) this.#onIdle?.();
    if (again) this.add(key);
    // A key that rests starts no worker.
    if (!again || restMs > 0) this.#startWorkers();
  }

  #retry(key: string, error: unknown): void {
    const { name, logger, metrics, backoff = { baseMs: 100, maxMs: 30_000 } } = this.#options;
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    metrics.queueRetries.inc({ name });
    const delayMs = backoffMs(failures, backoff);
    // Where an expected error was made says nothing: during an outage there is a line for every key.
    const why = error instanceof ControllerError ? { code: error.code, reason: error.message } : { err: error };
    logger.warn({ queue: name, key, failures, retryInMs: delayMs, ...why }, 'sync failed, will be tried again');
    this.addAfter(key, delayMs);
  }

  #wakeAt(delayed: Delayed): void {
    this.#heap.push(delayed);
    const valid = this.#dueAt.size + this.#lookAt.size;
    if (this.#heap.length > 2 * valid + MAX_OLD_ENTRIES) this.#compact();
    this.#armTimer();
  }

  /** Drops the entries that are valid no more: some are of a time that is days away. */
  #compact(): void {
    const entries = [...this.#dueAt, ...this.#lookAt].map(([key, dueAt]) => ({ key, dueAt }));
    this.#heap = new TinyQueue<Delayed>(entries, byDueAt);
  }

  #armTimer(): void {
    const { clock, slackMs = 0 } = this.#options;
    const first = this.#heap.peek();
    if (first === undefined || first.dueAt + slackMs >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = first.dueAt + slackMs;
    this.#timer = clock.setTimer(() => this.#fire(), Math.max(0, this.#timerAt - clock.now()));
  }

  #fire(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#options.clock.now();
    for (let first = this.#heap.peek(); first !== undefined && first.dueAt <= now; first = this.#heap.peek()) {
      this.#heap.pop();
      const isDue = [this.#dueAt, this.#lookAt].filter((times) => times.get(first.key) === first.dueAt);
      for (const times of isDue) times.delete(first.key);
      if (isDue.length > 0) this.add(first.key);
    }
    this.#armTimer();
  }
}
