import type { Clock, Timer } from '../../src/clock.ts';
import type { Logger } from '../../src/logger.ts';
import type { Metrics } from '../../src/metrics.ts';
import type { TunnelName } from '../../src/tunnel/tunnel.ts';
import { type MemberMessage, messageTextOf } from './member-batch.ts';
import { MemberClient, type MemberPeer } from './member-client.ts';
import { MemberOutbox } from './member-outbox.ts';
import { type MemberIdentity, MemberProver } from './member-proof.ts';
import { NewestMessages } from './newest-messages.ts';
import type { Accepted } from './receive.ts';

/** The other replicas of a cluster. */
export interface Members extends MemberIdentity {
  /** Every other live member, as it is now. Asked each time that something is sent. */
  readonly peers: () => readonly MemberPeer[];
  /**
   * Whether this process may just have been stopped for a while: what waited for it looks new then. Default: never.
   */
  readonly isFenced?: (() => boolean) | undefined;
}

export interface MemberRelayOptions {
  readonly tunnel: TunnelName;
  readonly members: Members;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'memberMessages' | 'memberRequests'>;
}

const INTERVAL_MS = 1_000;
/** How long the last messages may take when we end. */
const LAST_WORDS_MS = 1_000;

/**
 * Passes on what a base posts here to all other members: heartbeats once a second, of each base the newest; what a base
 * says once, at once. Members do not wait for each other.
 */
export class MemberRelay {
  readonly #options: MemberRelayOptions;
  readonly #client: MemberClient;
  readonly #waiting = new NewestMessages();
  /** By all that is known of a peer; one goes when its process or its address does. */
  readonly #outboxes = new Map<string, MemberOutbox>();
  /** Runs while something waits. */
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: MemberRelayOptions) {
    this.#options = options;
    this.#client = new MemberClient({ clock: options.clock, prover: new MemberProver(options.members) });
  }

  pass(message: MemberMessage, { key, isSaidOnce }: Pick<Accepted, 'key' | 'isSaidOnce'>): void {
    const { members, clock, metrics } = this.#options;
    // An old goodbye would end a base that is back; one that goes unheard is seen by its silence.
    if (this.#isStopped || (isSaidOnce && members.isFenced?.())) return;
    const text = messageTextOf(message);
    const dropped = this.#waiting.put({ key, text, byteLength: Buffer.byteLength(text), heardAt: clock.now() });
    if (dropped > 0) metrics.memberMessages.inc({ direction: 'dropped' }, dropped);
    if (isSaidOnce) this.#flush();
    else this.#timer ??= clock.setTimer(() => this.#flush(), INTERVAL_MS);
  }

  /** What waits goes out, for the bases will not say it again soon; resolves when every connection is closed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    const messages = this.#waiting.takeAll();
    const outboxes = new Set(this.#options.members.peers().map((peer) => this.#outboxOf(peer)));
    const left = [...this.#outboxes.values()].filter((outbox) => !outboxes.has(outbox));
    await Promise.all([
      ...[...outboxes].map((outbox) => outbox.end(messages, LAST_WORDS_MS)),
      ...left.map((outbox) => outbox.close()),
    ]);
    this.#client.close();
  }

  #flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const messages = this.#waiting.takeAll();
    const outboxes = new Set(this.#options.members.peers().map((peer) => this.#outboxOf(peer)));
    for (const [key, outbox] of this.#outboxes) {
      if (outboxes.has(outbox)) continue;
      this.#outboxes.delete(key);
      void outbox.close();
    }
    for (const outbox of outboxes) outbox.put(messages);
  }

  #outboxOf(peer: MemberPeer): MemberOutbox {
    const { members: _members, ...shared } = this.#options;
    const key = JSON.stringify([peer.id, peer.boot, peer.address]);
    const outbox = this.#outboxes.get(key) ?? new MemberOutbox({ peer, client: this.#client, ...shared });
    this.#outboxes.set(key, outbox);
    return outbox;
  }
}
