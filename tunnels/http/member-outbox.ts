import { type Clock, sleep } from '../../src/clock.ts';
import type { Logger } from '../../src/logger.ts';
import type { Metrics } from '../../src/metrics.ts';
import type { TunnelName } from '../../src/tunnel/tunnel.ts';
import { cutToBytes } from '../arklet/message-line.ts';
import { batchTextOf } from './member-batch.ts';
import type { MemberClient, MemberPeer } from './member-client.ts';
import { NewestMessages, type WaitingMessage } from './newest-messages.ts';

/** A message that waited longer is not sent: a sign of life that comes late is none. The base repeats it. */
const MAX_AGE_MS = 5_000;

export interface MemberOutboxOptions {
  readonly tunnel: TunnelName;
  readonly peer: MemberPeer;
  readonly client: Pick<MemberClient, 'post'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'memberMessages' | 'memberRequests'>;
}

/**
 * What waits for one process of a member. One request at a time; nothing of it is sent twice, whatever becomes of it.
 */
export class MemberOutbox {
  readonly #options: MemberOutboxOptions;
  readonly #waiting = new NewestMessages();
  readonly #stop = new AbortController();
  #isSending = false;
  /** Ends with the last request. */
  #sending: Promise<void> = Promise.resolve();
  /** Since the last request failed. */
  #isOut = false;
  /**
   * With the boot of the last challenge that the member proved: it refused a message for an earlier boot. The watch of
   * Leases may hang for two minutes, and after one minute without messages the member would judge bases dead that post
   * only here.
   */
  #peer: MemberPeer;

  constructor(options: MemberOutboxOptions) {
    this.#options = options;
    this.#peer = options.peer;
  }

  put(messages: readonly WaitingMessage[]): void {
    for (const message of messages) this.#countDropped(this.#waiting.put(message));
    if (!this.#isSending) this.#sending = this.#sendAll();
  }

  /** Sends the last messages, unless the member takes its time already, for `withinMs` at most; and then closes. */
  async end(messages: readonly WaitingMessage[], withinMs: number): Promise<void> {
    if (!this.#isSending && messages.length > 0) {
      this.put(messages);
      const over = new AbortController();
      await Promise.race([this.#sending, sleep(this.#options.clock, withinMs, over.signal)]);
      over.abort();
    }
    await this.close();
  }

  /** Drops what waits, ends what is under way; resolves when all has ended. */
  close(): Promise<void> {
    this.#countDropped(this.#waiting.takeAll().length);
    this.#stop.abort();
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    for (let batch = this.#take(); batch.length > 0; batch = this.#take()) await this.#send(batch);
    this.#isSending = false;
  }

  #take(): WaitingMessage[] {
    this.#countDropped(this.#waiting.dropBefore(this.#options.clock.now() - MAX_AGE_MS));
    return this.#waiting.takeBatch();
  }

  async #send(batch: readonly WaitingMessage[]): Promise<void> {
    const { client, metrics } = this.#options;
    const outcome = await client.post(this.#peer, batchTextOf(batch.map(({ text }) => text)), this.#stop.signal);
    if (outcome.error) {
      this.#countDropped(batch.length);
      this.#peer = { ...this.#peer, boot: outcome.currentBoot ?? this.#peer.boot };
      if (!this.#stop.signal.aborted) this.#onFailed(outcome.error);
      return;
    }
    metrics.memberRequests.inc({ result: 'ok' });
    metrics.memberMessages.inc({ direction: 'sent' }, batch.length);
    if (this.#isOut) this.#log('info', {}, 'messages of bases are passed on to the member again');
    this.#isOut = false;
  }

  #onFailed(err: unknown): void {
    this.#options.metrics.memberRequests.inc({ result: 'error' });
    if (!this.#isOut) this.#log('warn', { err }, 'messages of bases cannot be passed on to a member');
    this.#isOut = true;
  }

  #log(level: 'info' | 'warn', fields: object, message: string): void {
    const { logger, tunnel, peer } = this.#options;
    logger[level]({ tunnel, member: cutToBytes(peer.address, 128), ...fields }, message);
  }

  #countDropped(count: number): void {
    if (count > 0) this.#options.metrics.memberMessages.inc({ direction: 'dropped' }, count);
  }
}
