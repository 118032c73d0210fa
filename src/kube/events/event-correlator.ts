import { LruMap } from '../../lru-map.ts';
import { TokenBucket } from '../../token-bucket.ts';

const MAX_KEYS = 4096;
/** This many different messages of one reason are written one by one; later ones are combined. */
const MAX_SIMILAR = 10;
const SIMILAR_WINDOW_MS = 600_000;
/**
 * Rate of the events of one object and reason: a hundred Pods that were created do not hide that somebody has to
 * confirm a batch.
 */
const REASON_RATE = { burst: 25, refillMs: 300_000 };
const COMBINED_PREFIX = '(combined from similar events): ';
/** The kubelet's limit of the API for a message. */
const MAX_MESSAGE_BYTES = 1024;

/** The object that an event is about, of any kind. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** '' for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export type EventType = 'Normal' | 'Warning';

export interface EventInput {
  readonly subject: EventSubject;
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
}

/** One Event object of the API server and how often it has happened. */
export interface EventSeries {
  readonly input: EventInput;
  /** Newest text, as it is written; it only changes when similar events are combined. */
  message: string;
  count: number;
  firstAt: number;
  lastAt: number;
  /** Given at the first try to write it, so that a try that did succeed is recognized. */
  objectName: string | undefined;
  isWritten: boolean;
}

export interface Correlated {
  readonly series: EventSeries;
  /** Whether the event stands for several that differ in their text. */
  readonly isCombined: boolean;
  /** False when the object has had too many events of the reason lately: counted, but not to be written. */
  readonly isAllowed: boolean;
}

interface SimilarEvents {
  /** Most have one: a list is a fourth of a Set. */
  readonly messages: string[];
  lastAt: number;
}

/** Decides as client-go does which events are one, but bounds each reason of an object by itself. The caller brings the time. */
export class EventCorrelator {
  readonly #similar = new LruMap<SimilarEvents>(MAX_KEYS);
  readonly #series = new LruMap<EventSeries>(MAX_KEYS);
  readonly #buckets = new LruMap<TokenBucket>(MAX_KEYS);

  correlate(event: EventInput, now: number): Correlated {
    // Whole texts would be kept for as long as the event, and a Pod may have thousands of names that they list.
    const input = { ...event, message: cutMessage(event.message) };
    const { subject, type, reason } = input;
    const { apiVersion, kind, namespace, name, uid } = subject;
    // No name, UID, type or reason has a line break in it. `join` makes a flat text; a concatenation keeps its parts.
    const similarKey = [apiVersion, kind, namespace, name, uid, type, reason].join('\n');
    const isCombined = this.#isOneTooMany(similarKey, input.message, now);
    const message = isCombined ? cutMessage(COMBINED_PREFIX + input.message) : input.message;
    const seriesKey = isCombined ? similarKey : [similarKey, message].join('\n');
    const series = this.#series.getOrCreate(seriesKey, () => newSeries(input, now));
    series.message = message;
    series.count++;
    series.lastAt = now;
    const bucket = this.#buckets.getOrCreate(similarKey, () => new TokenBucket(REASON_RATE, now));
    return { series, isCombined, isAllowed: bucket.tryTake(now) };
  }

  #isOneTooMany(key: string, message: string, now: number): boolean {
    const similar = this.#similar.getOrCreate(key, () => ({ messages: [], lastAt: now }));
    if (now - similar.lastAt > SIMILAR_WINDOW_MS) similar.messages.length = 0;
    similar.lastAt = now;
    if (similar.messages.includes(message)) return false;
    if (similar.messages.length >= MAX_SIMILAR) return true;
    similar.messages.push(message);
    return false;
  }
}

function newSeries(input: EventInput, now: number): EventSeries {
  return {
    input,
    message: input.message,
    count: 0,
    firstAt: now,
    lastAt: now,
    objectName: undefined,
    isWritten: false,
  };
}

/** Cuts at the limit of bytes, but not inside a character. */
export function cutMessage(message: string): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= MAX_MESSAGE_BYTES) return message;
  let end = MAX_MESSAGE_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
