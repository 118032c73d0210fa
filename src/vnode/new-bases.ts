import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import { nodeNameOf } from '../labels.ts';
import type { Logger } from '../logger.ts';
import { LruMap } from '../lru-map.ts';
import type { Metrics } from '../metrics.ts';
import { TokenBucket, type TokenBucketOptions } from '../token-bucket.ts';
import type { BaseInfo } from '../tunnel/base.ts';
import { type Envelope, isByAddress, TUNNEL_NAMES, type TunnelName } from '../tunnel/tunnel.ts';
import type { Tunnels } from '../tunnel/tunnels.ts';
import { ANSWER_WITHIN_MS, BINDS_WITHIN_MS } from './liveness.ts';
import { isSamePlace } from './tunnel-claim.ts';
import type { UnprovenBase } from './unproven-bases.ts';
import type { VNodeStore } from './vnode.ts';

/** How many bases may be found. */
export interface NewBaseLimits {
  readonly maxVNodes: number;
  /** Number of new Nodes at once, and per minute after that. */
  readonly newNodesPerMinute: number;
  /** Above this a base has to answer a question first. */
  readonly newBasesPerMinute: number;
}

export interface NewBasesOptions {
  readonly store: VNodeStore;
  readonly tunnels: Tunnels;
  readonly newBases: NewBaseLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/**
 * `VNodes`: there are MAX_VNODES. `Rate`: more than MAX_NEW_NODES_PER_MINUTE. `Flapping`: the base has come and gone
 * several times. `Questions`: too many questions without an answer. `NoAnswer`: the base did not answer its question.
 */
const REASONS = ['VNodes', 'Rate', 'Flapping', 'Questions', 'NoAnswer'] as const;
type Reason = (typeof REASONS)[number];

/** Whose question it is. */
type Asker = Pick<UnprovenBase, 'tunnel' | 'source'>;

/** A base that has not answered by then has to be heard again. */
const UNPROVEN_MS = 25_000;
const LOG_INTERVAL_MS = 60_000;
const MAX_SOURCES = 1_000;
/**
 * Questions without an answer, through one tunnel. Where a base is called by its address, each waits on a connection.
 */
const QUESTIONS: TokenBucketOptions = { burst: 5_000, refillMs: 2 };
const QUESTIONS_BY_ADDRESS: TokenBucketOptions = { burst: 4_000, refillMs: 10 };
/** Questions to bases whose heartbeats come from one source (HTTP). */
const QUESTIONS_OF_SOURCE: TokenBucketOptions = { burst: 512, refillMs: 200 };
/** How often one identity becomes a VNode: a base that says goodbye and comes back costs a Node each time. */
const COMINGS: TokenBucketOptions = { burst: 5, refillMs: 15_000 };
const MAX_COMERS = 10_000;

/**
 * Decides which new bases become VNodes. While few come, each does at once. Above a rate a base has to answer first: a
 * question leaves for it, and nothing else is done for it until it answers. A question costs a token, and an answer
 * gives it back, so false addresses soon cost nothing more.
 */
export class NewBases {
  readonly #options: NewBasesOptions;
  readonly #arrivals: ArrivalRate;
  readonly #nodes: TokenBucket;
  readonly #questions: ReadonlyMap<TunnelName, TokenBucket>;
  readonly #bySource = new LruMap<TokenBucket>(MAX_SOURCES);
  readonly #comings = new LruMap<TokenBucket>(MAX_COMERS);
  readonly #loggedAt = new Map<Reason, number>();

  constructor(options: NewBasesOptions) {
    this.#options = options;
    const { newBases, clock, metrics } = options;
    const now = clock.now();
    this.#arrivals = new ArrivalRate(newBases.newBasesPerMinute, now);
    this.#nodes = new TokenBucket(perMinute(newBases.newNodesPerMinute), now);
    const bucketOf = (tunnel: TunnelName): TokenBucket =>
      new TokenBucket(isByAddress(tunnel) ? QUESTIONS_BY_ADDRESS : QUESTIONS, now);
    this.#questions = new Map(TUNNEL_NAMES.map((tunnel) => [tunnel, bucketOf(tunnel)]));
    for (const reason of REASONS) metrics.newBasesRefused.inc({ reason }, 0);
  }

  /**
   * A heartbeat of a base without a VNode, or an answer that names it. Returns whether it becomes one now; otherwise it
   * may have been asked.
   */
  meet(envelope: Envelope, base: BaseInfo): boolean {
    const { store, clock } = this.#options;
    const now = clock.now();
    const known = store.unproven.get(nodeNameOf(base.identity));
    // The answer to another question has named it.
    const hasAnswered = envelope.answeredBy === base.identity;
    if (hasAnswered || (known === undefined && this.#arrivals.isLow(now)))
      return this.#mayBecomeVNode(base.identity, now);
    const { tunnel, source } = envelope;
    if (known !== undefined && now - known.askedAt < ANSWER_WITHIN_MS && !this.#outranks(tunnel, known)) {
      // Of another place nothing is taken: whoever answers has not said that.
      if (!isSamePlace(known, { tunnel, base })) return false;
      known.base = base;
      known.lastBeatAt = now;
      return false;
    }
    if (this.#isFull() || !this.#takeQuestion({ tunnel, source }, now)) return false;
    const unproven = { base, tunnel, source, lastBeatAt: now, askedAt: now, isFailed: false };
    this.#count('NoAnswer', store.unproven.add(nodeNameOf(base.identity), unproven));
    this.#ask(unproven);
    return false;
  }

  /** An answer of a base without a VNode. Returns the base if it was asked, and becomes a VNode now. */
  prove({ identity, tunnel, askedAt, answeredBy }: Envelope): UnprovenBase | undefined {
    const { store, clock } = this.#options;
    const unproven = store.unproven.get(nodeNameOf(identity));
    if (unproven === undefined || unproven.tunnel !== tunnel) return undefined;
    if (answeredBy !== undefined && answeredBy !== identity) return undefined;
    // Over HTTP, where the question is known: it went to the address that the base names now.
    if (askedAt !== undefined && askedAt < unproven.askedAt) return undefined;
    store.unproven.delete(nodeNameOf(identity));
    this.#refund(unproven);
    return this.#mayBecomeVNode(identity, clock.now()) ? unproven : undefined;
  }

  /** Drops those that did not answer, and asks those again that may have begun to listen. Called once a second. */
  sweep(): void {
    const { store, clock, metrics } = this.#options;
    const now = clock.now();
    this.#count('NoAnswer', store.unproven.dropAskedBefore(now - UNPROVEN_MS));
    for (const unproven of store.unproven.values()) {
      if (unproven.isFailed && now - unproven.lastBeatAt < BINDS_WITHIN_MS) this.#askAgain(unproven, now);
    }
    metrics.unprovenBases.set(store.unproven.size);
  }

  /** A base whose transport has authenticated it does not wait for the answer of one that has not. */
  #outranks(tunnel: TunnelName, known: UnprovenBase): boolean {
    return tunnel !== known.tunnel && (this.#options.tunnels.get(tunnel)?.provesIdentity ?? false);
  }

  #askAgain(unproven: UnprovenBase, now: number): void {
    if (!this.#takeQuestion(unproven, now)) return;
    unproven.isFailed = false;
    this.#ask(unproven);
  }

  #mayBecomeVNode(identity: string, now: number): boolean {
    if (this.#isFull()) return false;
    const comings = this.#comings.getOrCreate(identity, () => new TokenBucket(COMINGS, now));
    if (!comings.tryTake(now)) {
      this.#count('Flapping');
      return false;
    }
    if (this.#nodes.tryTake(now)) return true;
    comings.refund();
    this.#count('Rate');
    return false;
  }

  #isFull(): boolean {
    const { store, newBases } = this.#options;
    if (store.size < newBases.maxVNodes) return false;
    this.#count('VNodes');
    return true;
  }

  #takeQuestion({ tunnel, source }: Asker, now: number): boolean {
    const ofSource =
      source === undefined
        ? undefined
        : this.#bySource.getOrCreate(source, () => new TokenBucket(QUESTIONS_OF_SOURCE, now));
    if (ofSource?.tryTake(now) !== false) {
      if (this.#questions.get(tunnel)?.tryTake(now)) return true;
      ofSource?.refund();
    }
    this.#count('Questions');
    return false;
  }

  #refund({ tunnel, source }: Asker): void {
    this.#questions.get(tunnel)?.refund();
    if (source !== undefined) this.#bySource.get(source)?.refund();
  }

  #ask(unproven: UnprovenBase): void {
    const { tunnels, logger } = this.#options;
    const { base, tunnel } = unproven;
    tunnels
      .get(tunnel)
      ?.queryHealth(base)
      .catch((error: unknown) => {
        unproven.isFailed = true;
        logger.debug({ node: nodeNameOf(base.identity), reason: messageOf(error) }, 'new base could not be asked');
      });
  }

  #count(reason: Reason, count = 1): void {
    if (count === 0) return;
    const { clock, logger, metrics } = this.#options;
    metrics.newBasesRefused.inc({ reason }, count);
    const now = clock.now();
    if (now - (this.#loggedAt.get(reason) ?? Number.NEGATIVE_INFINITY) < LOG_INTERVAL_MS) return;
    this.#loggedAt.set(reason, now);
    logger.warn({ reason }, 'new bases are refused');
  }
}

function perMinute(count: number): TokenBucketOptions {
  return { burst: count, refillMs: 60_000 / count };
}

/** Whether new identities come slowly. Unlike a token bucket it counts also those that come too fast. */
export class ArrivalRate {
  readonly #perMinute: number;
  /** Arrivals less what the rate allows for the time since; at most one more than a minute's. */
  #level = 0;
  #countedAt: number;

  constructor(perMinute: number, now: number) {
    this.#perMinute = perMinute;
    this.#countedAt = now;
  }

  /** Counts an arrival, and says whether the rate is not exceeded with it. */
  isLow(now: number): boolean {
    const allowed = ((now - this.#countedAt) / 60_000) * this.#perMinute;
    this.#countedAt = now;
    this.#level = Math.min(this.#perMinute + 1, Math.max(0, this.#level - allowed) + 1);
    return this.#level <= this.#perMinute;
  }
}
