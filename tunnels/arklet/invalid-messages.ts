import type { Clock } from '../../src/clock.ts';
import type { Logger } from '../../src/logger.ts';
import type { Metrics } from '../../src/metrics.ts';
import type { InvalidMessage, TunnelName } from '../../src/tunnel/tunnel.ts';
import { cutToBytes } from './message-line.ts';

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
const LOG_INTERVAL_MS = 60_000;
const MAX_LOGGED = 1_000;

export interface InvalidMessagesOptions {
  readonly tunnel: TunnelName;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'tunnelInvalidMessages'>;
}

/** Counts every refused message and logs one a minute for each code and identity, at most 1,000 a minute. */
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
    const identity = cutToBytes(invalid.identity ?? '', 128);
    const key = `${code} ${identity}`;
    if (this.#loggedAt.has(key) || this.#loggedAt.size >= MAX_LOGGED) return;
    this.#loggedAt.set(key, now);
    logger.warn({ tunnel, code, identity, reason: cutToBytes(message, 512) }, 'message of a base refused');
  }

  #forgetBefore(time: number): void {
    for (const [key, loggedAt] of this.#loggedAt) {
      if (loggedAt > time) return;
      this.#loggedAt.delete(key);
    }
  }
}
