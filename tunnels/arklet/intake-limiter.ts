import { LruMap } from '../../src/lru-map.ts';
import { TokenBucket, type TokenBucketOptions } from '../../src/token-bucket.ts';
import { RecentSources } from './recent-sources.ts';

/**
 * Who sends a message. `Known`: a base with a VNode. `Asked`: an unproven base that answers a question. `Unknown`:
 * anybody else.
 */
export type Sender = 'Known' | 'Asked' | 'Unknown';

/** `Source`: too much from this source. `Unknown`: too much from all unknown sources together. */
export type IntakeRefusal = 'Source' | 'Unknown';

export interface IntakeLimits {
  /** For each source of a known base. */
  readonly known: TokenBucketOptions;
  /** For each other source. */
  readonly unknown: TokenBucketOptions;
  /** For all unknown sources together; more than for one. */
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
  refusalOf(source: string, sender: Sender, now: number): IntakeRefusal | undefined {
    const isKnown = sender === 'Known';
    const [buckets, limit] = isKnown ? [this.#known, this.#limits.known] : [this.#unknown, this.#limits.unknown];
    if (!buckets.getOrCreate(source, () => new TokenBucket(limit, now)).tryTake(now)) return 'Source';
    if (sender !== 'Unknown' || this.#allUnknown.tryTake(now)) return undefined;
    return this.#recent.isReturning(source, now) && this.#returning.tryTake(now) ? undefined : 'Unknown';
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
