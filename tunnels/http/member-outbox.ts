import { type Clock, sleep } from '../../src/clock.ts';
import type { Logger } from '../../src/logger.ts';
import type { Metrics } from '../../src/metrics.ts';
import type { TunnelName } from '../../src/tunnel/tunnel.ts';
import { batchTextOf } from './member-batch.ts';
import type { MemberClient } from './member-client.ts';
import { NewestMessages, type WaitingMessage } from './newest-messages.ts';

/** A message that waited longer is not sent: a sign of life that comes late is none. The base repeats it. */
const MAX_AGE_MS = 5_000;

export interface MemberOutboxOptions {
  readonly tunnel: TunnelName;
  /** `host:port` of the member. */
  readonly address: string;
  readonly client: Pick<MemberClient, 'post'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'memberMessages' | 'memberRequests'>;
}

/** What waits for one member. One request at a time; nothing of it is sent twice, whatever becomes of it. */
export class MemberOutbox {
  readonly #options: MemberOutboxOptions;
  readonly #waiting = new NewestMessages();
  readonly #stop = new AbortController();
  #isSending = false;
  /** Ends with the last request. */
  #sending: Promise<void> = Promise.resolve();
  /** Since the last request failed. */
  #isOut = false;

  constructor(options: MemberOutboxOptions) {
    this.#options = options;
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
    const { client, address, metrics } = this.#options;
    try {
      await client.post(address, batchTextOf(batch.map(({ text }) => text)), this.#stop.signal);
    } catch (error) {
      this.#countDropped(batch.length);
      if (!this.#stop.signal.aborted) this.#onFailed(error);
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
    const { logger, tunnel, address } = this.#options;
    logger[level]({ tunnel, member: address, ...fields }, message);
  }

  #countDropped(count: number): void {
    if (count > 0) this.#options.metrics.memberMessages.inc({ direction: 'dropped' }, count);
  }
}
