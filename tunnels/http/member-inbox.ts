import type { Metrics } from '../../src/metrics.ts';
import type { InvalidMessage, TunnelName } from '../../src/tunnel/tunnel.ts';
import { type MemberMessage, readBatch } from './member-batch.ts';

export interface MemberInboxOptions {
  readonly tunnel: TunnelName;
  readonly metrics: Pick<Metrics, 'memberMessages'>;
  /** Takes one message, or says why it cannot. */
  readonly onMessage: (message: MemberMessage) => InvalidMessage | undefined;
  /** Hears of every single message that is refused. */
  readonly onInvalid: (invalid: InvalidMessage) => void;
}

/** What became of a batch. */
export interface Taken {
  readonly taken: number;
  readonly refused: number;
}

/** Takes what other members pass on, each message by itself: one that is refused does not hold up the others. */
export class MemberInbox {
  readonly #options: MemberInboxOptions;

  constructor(options: MemberInboxOptions) {
    this.#options = options;
  }

  /** `member`: the address that the batch came from. */
  take(member: string, payload: Uint8Array): Taken | InvalidMessage {
    const { metrics, onMessage, onInvalid } = this.#options;
    const batch = readBatch(payload);
    if (typeof batch === 'string') return this.#invalid(member, batch);
    metrics.memberMessages.inc({ direction: 'received' }, batch.length);
    let refused = 0;
    for (const { message, fault } of batch) {
      const invalid = message ? onMessage(message) : this.#invalid(member, fault);
      if (!invalid) continue;
      onInvalid(invalid);
      refused++;
    }
    return { taken: batch.length - refused, refused };
  }

  #invalid(member: string, message: string): InvalidMessage {
    return { tunnel: this.#options.tunnel, identity: member, code: 'Arklet.InvalidMessage', message };
  }
}
