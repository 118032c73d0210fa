import { randomInt } from 'node:crypto';
import type { Clock } from '../../src/clock.ts';
import type { Logger } from '../../src/logger.ts';
import type { Metrics } from '../../src/metrics.ts';
import type { TunnelName } from '../../src/tunnel/tunnel.ts';
import { IntakeLimiter, type IntakeLimits, type IntakeRefusal, type Sender } from './intake-limiter.ts';
import { cutToBytes } from './message-line.ts';

/** `Sockets`: too many connections from one source. */
const REASONS = ['Source', 'Unknown', 'Sockets'] as const satisfies readonly (IntakeRefusal | 'Sockets')[];
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

  /** Whether a message of `source` may be read. */
  admits(source: string, sender: Sender): boolean {
    const reason = this.#limiter.refusalOf(source, sender, this.#options.clock.now());
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
