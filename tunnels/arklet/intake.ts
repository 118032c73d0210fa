import { randomInt } from 'node:crypto';
import type { Clock } from '../../src/clock.ts';
import type { Logger } from '../../src/logger.ts';
import { LruMap } from '../../src/lru-map.ts';
import type { Metrics } from '../../src/metrics.ts';
import { TokenBucket, type TokenBucketOptions } from '../../src/token-bucket.ts';
import type { InvalidMessage, TunnelName } from '../../src/tunnel/tunnel.ts';
import { cutToBytes } from './message-line.ts';

/**
 * `Sockets`: too many connections from one source. `Unfinished`: too much is being read over HTTP, and this was the
 * oldest.
 */
const REASONS = ['Source', 'Unknown', 'Sockets', 'Unfinished'] as const;
type Reason = (typeof REASONS)[number];

const LOG_INTERVAL_MS = 60_000;

export interface IntakeGateOptions {
  readonly tunnel: TunnelName;
  readonly limits: IntakeLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'intakeRefused'>;
}

/** The limiter of one tunnel. Counts what it refuses, and logs once a minute for each reason. */
export class IntakeGate {
  readonly #options: IntakeGateOptions;
  readonly #limiter: IntakeLimiter;
  readonly #loggedAt = new Map<Reason, number>();

  constructor(options: IntakeGateOptions) {
    this.#options = options;
    const { tunnel, limits, clock, metrics } = options;
    this.#limiter = new IntakeLimiter(limits, { now: clock.now(), seed: randomInt(2 ** 32) });
    for (const reason of REASONS) metrics.intakeRefused.inc({ tunnel, reason }, 0);
  }

  /** Whether a message of `source` may be read. `cost`: see `costOf`. */
  admits(source: string, sender: Sender, cost = 1): boolean {
    const reason = this.#limiter.refusalOf(source, sender, this.#options.clock.now(), cost);
    if (reason !== undefined) this.refuse(source, reason);
    return reason === undefined;
  }

  /** The same where the source alone says who sends it. */
  admitsSource(source: string): boolean {
    const isKnown = this.#limiter.isKnown(source, this.#options.clock.now());
    return this.admits(source, isKnown ? 'Known' : 'Unknown');
  }

  /** A known base was heard from the source. */
  noteKnown(source: string): void {
    this.#limiter.noteKnown(source, this.#options.clock.now());
  }

  /** Counts something of `source` that is not taken. */
  refuse(source: string, reason: Reason): void {
    const { tunnel, clock, logger, metrics } = this.#options;
    metrics.intakeRefused.inc({ tunnel, reason });
    const now = clock.now();
    if (now - (this.#loggedAt.get(reason) ?? Number.NEGATIVE_INFINITY) < LOG_INTERVAL_MS) return;
    this.#loggedAt.set(reason, now);
    logger.warn({ tunnel, reason, source: cutToBytes(source, 128) }, 'messages are refused unread: too many');
  }
}

/**
 * Who sends a message. `Known`: a base with a VNode. `Asked`: an unproven base that answers a question. `Unknown`:
 * anybody else.
 */
export type Sender = 'Known' | 'Asked' | 'Unknown';

const BYTES_OF_TOKEN = 8 * 1024;

/** How many tokens a message takes: one for each 8 KiB that it begins. Bytes take time to read, not messages. */
export function costOf(byteLength: number): number {
  return Math.max(1, Math.ceil(byteLength / BYTES_OF_TOKEN));
}

/** `Source`: too much from this source. `Unknown`: too much from all unknown sources together. */
export type IntakeRefusal = 'Source' | 'Unknown';

export interface IntakeLimits {
  /** Limit of each source of a known base. */
  readonly known: TokenBucketOptions;
  /** Limit of each other source. */
  readonly unknown: TokenBucketOptions;
  /** Limit of all unknown sources together; more than for one. */
  readonly allUnknown: TokenBucketOptions;
}

/** Beside it, for unknown sources that were heard an interval of heartbeats ago. */
const RETURNING: TokenBucketOptions = { burst: 500, refillMs: 10 };
const MAX_SOURCES = 10_000;
/** A source is known for this long after a known base was heard from it. */
const KNOWN_FOR_MS = 60_000;

/**
 * Limits the messages of each source before they are read, in bounded memory. A source is what a sender cannot choose
 * freely: over HTTP its address, over MQTT the identity of the topic. What unknown sources send takes nothing away from
 * known ones. Of unknown sources beyond the limit, those that come again are preferred: most floods do not repeat
 * themselves, and bases do.
 */
export class IntakeLimiter {
  readonly #limits: IntakeLimits;
  readonly #known = new LruMap<TokenBucket>(MAX_SOURCES);
  readonly #unknown = new LruMap<TokenBucket>(MAX_SOURCES);
  /** When a known base was last heard from a source. */
  readonly #knownAt = new LruMap<{ at: number }>(MAX_SOURCES);
  readonly #allUnknown: TokenBucket;
  readonly #returning: TokenBucket;
  readonly #recent: RecentSources;

  /** `seed`: see `RecentSources`. */
  constructor(limits: IntakeLimits, { now, seed }: { now: number; seed: number }) {
    this.#limits = limits;
    this.#allUnknown = new TokenBucket(limits.allUnknown, now);
    this.#returning = new TokenBucket(RETURNING, now);
    this.#recent = new RecentSources(seed);
  }

  /** Why a message that comes now is not taken; undefined when it is. */
  refusalOf(source: string, sender: Sender, now: number, cost = 1): IntakeRefusal | undefined {
    const isKnown = sender === 'Known';
    const [buckets, limit] = isKnown ? [this.#known, this.#limits.known] : [this.#unknown, this.#limits.unknown];
    if (!buckets.getOrCreate(source, () => new TokenBucket(limit, now)).tryTake(now, cost)) return 'Source';
    if (sender !== 'Unknown' || this.#allUnknown.tryTake(now, cost)) return undefined;
    return this.#recent.isReturning(source, now) && this.#returning.tryTake(now, cost) ? undefined : 'Unknown';
  }

  /** A known base was heard from the source. */
  noteKnown(source: string, now: number): void {
    this.#knownAt.getOrCreate(source, () => ({ at: now })).at = now;
  }

  /** Whether a known base was heard from the source within the last minute. */
  isKnown(source: string, now: number): boolean {
    const known = this.#knownAt.get(source);
    return known !== undefined && now - known.at < KNOWN_FOR_MS;
  }
}

/** 4 MiB, and twice as many as a flood of 10,000 a second fills within an interval of heartbeats. */
const SLOTS_BITS = 20;
const SECONDS_BITS = 32 - SLOTS_BITS;
const SECONDS_MASK = 2 ** SECONDS_BITS - 1;
const MIN_AGE_S = 4;
const MAX_AGE_S = 30;

/**
 * Which sources were heard not long ago, in a table of fixed size. It keeps a hash of each, so it may forget a source
 * and, rarely, take one for another.
 */
export class RecentSources {
  readonly #seed: number;
  /** At the low bits of a source's hash: its high bits and the second in which it was heard. 0 = nobody. */
  readonly #slots = new Uint32Array(2 ** SLOTS_BITS);

  /** `seed`: any 32 bits that nobody else knows, or somebody could make sources push out others. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  /**
   * Whether the source was heard 4 to 30 s ago, as a base that repeats its heartbeat is. Notes that it is heard now.
   */
  isReturning(source: string, now: number): boolean {
    const hash = hashOf(source, this.#seed);
    const slot = hash & (2 ** SLOTS_BITS - 1);
    const tag = (hash >>> SLOTS_BITS) << SECONDS_BITS;
    const second = Math.floor(now / 1000) & SECONDS_MASK;
    const found = this.#slots[slot] ?? 0;
    const isSame = found !== 0 && ((found ^ tag) & ~SECONDS_MASK) === 0;
    const age = (second - (found & SECONDS_MASK)) & SECONDS_MASK;
    // What is repeated faster keeps the time of its first message.
    if (!isSame || age >= MIN_AGE_S) this.#slots[slot] = tag | second;
    return isSame && age >= MIN_AGE_S && age <= MAX_AGE_S;
  }
}

/** FNV-1a, and a mix, since that alone leaves names close together that differ at the end. */
function hashOf(text: string, seed: number): number {
  let hash = seed ^ 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/** What a tunnel refuses messages for. */
const CODES = {
  mqtt_tunnel_provider: ['Arklet.InvalidMessage', 'Arklet.InvalidIdentity', 'Arklet.IdentityMismatch'],
  http_tunnel_provider: [
    'Arklet.InvalidMessage',
    'Arklet.InvalidIdentity',
    'Arklet.AddressRefused',
    'Arklet.Unauthenticated',
  ],
} as const satisfies Record<TunnelName, readonly InvalidMessage['code'][]>;
const MAX_LOGGED = 1_000;

export interface InvalidMessagesOptions {
  readonly tunnel: TunnelName;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'tunnelInvalidMessages'>;
}

/** Counts every refused message and logs one a minute for each code and identity, or sender; at most 1,000 a minute. */
export class InvalidMessages {
  readonly #options: InvalidMessagesOptions;
  /** When a code and identity were logged, oldest first; entries leave after a minute, with the next message. */
  readonly #loggedAt = new Map<string, number>();

  constructor(options: InvalidMessagesOptions) {
    this.#options = options;
    const { tunnel, metrics } = options;
    for (const code of CODES[tunnel]) metrics.tunnelInvalidMessages.inc({ tunnel, code }, 0);
  }

  add(invalid: InvalidMessage): void {
    const { tunnel, clock, logger, metrics } = this.#options;
    const { code, message } = invalid;
    metrics.tunnelInvalidMessages.inc({ tunnel, code });
    const now = clock.now();
    this.#forgetBefore(now - LOG_INTERVAL_MS);
    // A topic can be long, and whoever may publish can choose it.
    const identity = invalid.identity === undefined ? undefined : cutToBytes(invalid.identity, 128);
    const { sender } = invalid;
    const key = `${code} ${identity ?? sender ?? ''}`;
    if (this.#loggedAt.has(key) || this.#loggedAt.size >= MAX_LOGGED) return;
    this.#loggedAt.set(key, now);
    const fields = { tunnel, code, identity, sender, reason: cutToBytes(message, 512) };
    logger.warn(fields, 'message of a base refused');
  }

  #forgetBefore(time: number): void {
    for (const [key, loggedAt] of this.#loggedAt) {
      if (loggedAt > time) return;
      this.#loggedAt.delete(key);
    }
  }
}
