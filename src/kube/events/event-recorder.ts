import { randomBytes } from 'node:crypto';
import { type Clock, sleep } from '../../clock.ts';
import type { Logger } from '../../logger.ts';
import type { Metrics } from '../../metrics.ts';
import { backoffMs } from '../../queue/backoff.ts';
import { redactUrls } from '../../redact-url.ts';
import { TokenBucket } from '../../token-bucket.ts';
import type { KubeClient } from '../client.ts';
import { isAlreadyExists, isNotFound, isRetriable } from '../transport/api-error.ts';
import type { Traffic } from '../transport/concurrency-limit.ts';
import {
  EventCorrelator,
  type EventInput,
  type EventSeries,
  type EventSubject,
  type EventType,
} from './event-correlator.ts';
import { buildEvent, eventCountPatch, eventNameOf, eventNamespaceOf } from './event-object.ts';
import { EventQueue, MAX_NORMALS } from './event-queue.ts';

const MAX_WAITING = 1000;
/** 20 writes a second. */
const WRITE_RATE = { burst: 40, refillMs: 50 };
/**
 * Delays between tries. Like client-go's they last about two minutes: a Warning outlives a restart of the API server.
 */
const RETRY_BACKOFF = { baseMs: 1000, maxMs: 10_000 };
const MAX_RETRIES = 13;

/** Kubernetes Events: returns at once and never throws; under load Normals come later, and the oldest are dropped. */
export interface EventRecorder {
  event(subject: EventSubject, type: EventType, reason: string, message: string): void;
}

export interface ApiEventRecorderOptions {
  readonly client: Pick<KubeClient, 'createEvent' | 'patchEvent'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Other requests to the API server: Normals wait until there are few. Warnings do not. */
  readonly traffic: Traffic;
  /** Which replica reports. */
  readonly reportingInstance: string;
  /** 16 hex digits that make an event's name unique. Default random ones. */
  readonly nameSuffix?: () => string;
}

type EventResult = 'written' | 'dropped' | 'aggregated' | 'failed';

interface HeldEvent extends EventInput {
  readonly at: number;
}

/** Writes events one after the other in the background. */
export class ApiEventRecorder implements EventRecorder {
  readonly #options: ApiEventRecorderOptions;
  readonly #nameSuffix: () => string;
  readonly #correlator = new EventCorrelator();
  readonly #queue = new EventQueue(MAX_WAITING, () => this.#count('dropped'));
  readonly #writes: TokenBucket;
  /** Normals of a burst, the newest last. Most are given up, so that none is correlated before the burst is over. */
  readonly #held: HeldEvent[] = [];
  #wake: () => void = () => {};

  constructor(options: ApiEventRecorderOptions) {
    this.#options = options;
    this.#nameSuffix = options.nameSuffix ?? (() => randomBytes(8).toString('hex'));
    this.#writes = new TokenBucket(WRITE_RATE, options.clock.now());
    options.traffic.onCalm(() => {
      for (const event of this.#held.splice(0)) this.#take(event);
      this.#wakeWriter();
    });
    for (const result of ['written', 'dropped', 'aggregated', 'failed'] as const) this.#count(result, 0);
  }

  event(subject: EventSubject, type: EventType, reason: string, message: string): void {
    const { clock, traffic } = this.#options;
    const event = { subject, type, reason, message, at: clock.now() };
    if (type === 'Normal' && !traffic.isCalm) {
      this.#hold(event);
      return;
    }
    this.#take(event);
    this.#wakeWriter();
  }

  /** Writes until `signal` is aborted; what waits then is lost. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const wake = (): void => this.#wake();
    signal.addEventListener('abort', wake, { once: true });
    while (!signal.aborted) {
      const waitMs = this.#writes.waitMs(clock.now());
      if (waitMs > 0) await sleep(clock, waitMs, signal);
      else if (!this.#mayWrite()) await this.#untilAwake();
      else await this.#writeNext(signal);
    }
    signal.removeEventListener('abort', wake);
  }

  #hold(event: HeldEvent): void {
    this.#held.push(event);
    if (this.#held.length <= MAX_NORMALS) return;
    this.#held.shift();
    this.#count('dropped');
  }

  #take({ at, ...event }: HeldEvent): void {
    const input = { ...event, message: redactUrls(event.message) };
    const { series, isCombined, isAllowed } = this.#correlator.correlate(input, at);
    if (isCombined) this.#count('aggregated');
    if (isAllowed) this.#queue.add(series, at);
    else this.#count('dropped');
  }

  #mayWrite(): boolean {
    return this.#queue.hasWarning || (this.#queue.size > 0 && this.#options.traffic.isCalm);
  }

  #wakeWriter(): void {
    if (this.#mayWrite()) this.#wake();
  }

  #untilAwake(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async #writeNext(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    const series = this.#queue.next(clock.now());
    if (!series) return;
    for (let retries = 0; ; retries++) {
      this.#writes.tryTake(clock.now());
      try {
        await this.#write(series);
        this.#count('written');
        return;
      } catch (error) {
        if (isRetriable(error) && retries < MAX_RETRIES && !signal.aborted) {
          await sleep(clock, backoffMs(retries + 1, RETRY_BACKOFF), signal);
          continue;
        }
        this.#count('failed');
        logger.warn({ err: error, reason: series.input.reason }, 'event not written');
        return;
      }
    }
  }

  async #write(series: EventSeries): Promise<void> {
    const { client } = this.#options;
    const { subject } = series.input;
    if (!series.isWritten || series.objectName === undefined) return this.#create(series);
    const patch = eventCountPatch(series, this.#wallTimeOf(series.lastAt));
    try {
      await client.patchEvent(eventNamespaceOf(subject), series.objectName, patch);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // The API server keeps events for an hour.
      series.isWritten = false;
      series.objectName = undefined;
      await this.#create(series);
    }
  }

  async #create(series: EventSeries): Promise<void> {
    const { client, reportingInstance } = this.#options;
    series.objectName ??= eventNameOf(series.input.subject, this.#nameSuffix());
    const event = buildEvent(series, {
      name: series.objectName,
      reportingInstance,
      firstTime: this.#wallTimeOf(series.firstAt),
      lastTime: this.#wallTimeOf(series.lastAt),
    });
    try {
      await client.createEvent(event);
    } catch (error) {
      // The try before this one was carried out, although its answer was lost.
      if (!isAlreadyExists(error)) throw error;
    }
    series.isWritten = true;
  }

  #wallTimeOf(at: number): Date {
    const { clock } = this.#options;
    return new Date(clock.wallTime().getTime() - (clock.now() - at));
  }

  #count(result: EventResult, by = 1): void {
    this.#options.metrics.events.inc({ result }, by);
  }
}
