import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { TokenBucket } from '../token-bucket.ts';
import type { BaseInfo } from '../tunnel/base.ts';
import type { BaseAddress, Envelope, TunnelName } from '../tunnel/tunnel.ts';
import type { Tunnels } from '../tunnel/tunnels.ts';
import { ANSWER_WITHIN_MS, BINDS_WITHIN_MS, UNREACHABLE_AFTER_MS } from './liveness.ts';
import { placeOf } from './tunnel-claim.ts';

export interface BaseCandidatesOptions {
  readonly tunnels: Tunnels;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Candidate {
  readonly tunnel: TunnelName;
  readonly base: BaseInfo;
  readonly heardAt: number;
  readonly askedAt: number;
  /** Nobody listened there: an agent sends its first heartbeat before its port is bound. */
  readonly isRefused: boolean;
}

const MAX_CANDIDATES = 1_000;
/** Whoever posts heartbeats chooses the addresses that are asked. */
const QUESTIONS = { burst: 100, refillMs: 20 } as const;

/**
 * Bases that are known only from a heartbeat from another address. Each is asked for its identity: an answer that names
 * the identity, from the address, is the proof that the heartbeat is not.
 */
export class BaseCandidates {
  readonly #options: BaseCandidatesOptions;
  readonly #questions: TokenBucket;
  /**
   * Candidates by identity and place, the oldest heartbeat first. Emptied by answers, and after 25 s without a
   * heartbeat.
   */
  readonly #candidates = new Map<string, Candidate>();

  constructor(options: BaseCandidatesOptions) {
    this.#options = options;
    this.#questions = new TokenBucket(QUESTIONS, options.clock.now());
  }

  get size(): number {
    return this.#candidates.size;
  }

  /** A heartbeat that proves nothing came for this base. */
  hint(tunnel: TunnelName, base: BaseInfo): void {
    const key = keyOf(tunnel, base);
    const { askedAt = Number.NEGATIVE_INFINITY, isRefused = false } = this.#candidates.get(key) ?? {};
    const now = this.#options.clock.now();
    this.#candidates.delete(key);
    this.#put(key, { tunnel, base, heardAt: now, askedAt, isRefused });
    if (now - askedAt >= ANSWER_WITHIN_MS) this.#ask(key);
  }

  /** The candidate that an answer proves; it is none any more. */
  proven({ tunnel, identity, answeredBy, place }: Envelope): BaseInfo | undefined {
    if (place === undefined || answeredBy !== identity) return undefined;
    const key = keyOf(tunnel, { identity, ...place });
    const candidate = this.#candidates.get(key);
    this.#candidates.delete(key);
    return candidate?.base;
  }

  refused(tunnel: TunnelName, base: BaseAddress): void {
    const key = keyOf(tunnel, base);
    const candidate = this.#candidates.get(key);
    if (candidate) this.#candidates.set(key, { ...candidate, isRefused: true });
  }

  /** Called every second. */
  sweep(): void {
    const now = this.#options.clock.now();
    for (const [key, { heardAt, isRefused }] of this.#candidates) {
      if (now - heardAt >= UNREACHABLE_AFTER_MS) this.#candidates.delete(key);
      else if (isRefused && now - heardAt < BINDS_WITHIN_MS) this.#ask(key);
    }
  }

  #put(key: string, candidate: Candidate): void {
    this.#candidates.set(key, candidate);
    const [oldest] = this.#candidates.keys();
    if (this.#candidates.size > MAX_CANDIDATES && oldest !== undefined) this.#candidates.delete(oldest);
  }

  /** Nothing is lost with a question that cannot be asked: the next heartbeat has it asked again. */
  #ask(key: string): void {
    const { clock, tunnels, logger } = this.#options;
    const candidate = this.#candidates.get(key);
    const now = clock.now();
    if (candidate === undefined || !this.#questions.tryTake(now)) return;
    const { tunnel, base } = candidate;
    this.#candidates.set(key, { ...candidate, askedAt: now, isRefused: false });
    tunnels
      .get(tunnel)
      ?.identify(base)
      .catch((error: unknown) => {
        logger.debug({ identity: base.identity, ip: base.ip, reason: messageOf(error) }, 'base could not be asked');
      });
  }
}

function keyOf(tunnel: TunnelName, base: BaseAddress): string {
  return `${base.identity} ${placeOf({ tunnel, base })}`;
}
