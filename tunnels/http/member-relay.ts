import { type Clock, sleep, type Timer } from '../../src/clock.ts';
import type { Logger } from '../../src/logger.ts';
import type { Metrics } from '../../src/metrics.ts';
import type { InvalidMessage, TunnelName } from '../../src/tunnel/tunnel.ts';
import { cutToBytes } from '../arklet/message-line.ts';
import {
  batchTextOf,
  MAX_BATCH_MESSAGES,
  MAX_TEXT_BYTES,
  MemberClient,
  type MemberMessage,
  type MemberPeer,
  messageTextOf,
  readBatch,
} from './member-client.ts';
import { type MemberIdentity, MemberProver } from './member-proof.ts';
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
/** How long the last messages may take when the tunnel stops. */
const LAST_WORDS_MS = 1_000;

/**
 * Passes on what a base posts here to all other members: heartbeats once a second, of each base the newest; what a base
 * says once, at once. Members do not wait for each other.
 */
export class MemberRelay {
  readonly #options: MemberRelayOptions;
  readonly #client: MemberClient;
  readonly #waiting = new NewestMessages();
  /** Outboxes by all that is known of a peer; one goes when its process or its address does. */
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
    metrics.memberMessages.inc({ direction: 'dropped' }, dropped);
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

/** A message that waited longer is not sent: a sign of life that comes late is none. The base repeats it. */
const MAX_AGE_MS = 5_000;

interface MemberOutboxOptions {
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
class MemberOutbox {
  readonly #options: MemberOutboxOptions;
  readonly #waiting = new NewestMessages();
  readonly #stop = new AbortController();
  #isSending = false;
  /** Ends with the last request. */
  #sending: Promise<void> = Promise.resolve();
  /** Since the last request failed. */
  #isFailing = false;
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

  /** Drops waiting messages and ends running requests; resolves when all have ended. */
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
    if (this.#isFailing) this.#log('info', {}, 'messages of bases are passed on to the member again');
    this.#isFailing = false;
  }

  #onFailed(err: unknown): void {
    this.#options.metrics.memberRequests.inc({ result: 'error' });
    if (!this.#isFailing) this.#log('warn', { err }, 'messages of bases cannot be passed on to a member');
    this.#isFailing = true;
  }

  #log(level: 'info' | 'warn', fields: object, message: string): void {
    const { logger, tunnel, peer } = this.#options;
    logger[level]({ tunnel, member: cutToBytes(peer.address, 128), ...fields }, message);
  }

  #countDropped(count: number): void {
    if (count > 0) this.#options.metrics.memberMessages.inc({ direction: 'dropped' }, count);
  }
}

/** A message of a base on its way to other members. */
export interface WaitingMessage {
  /** A newer message of the same key stands in for this one. */
  readonly key: string;
  /** Text of the message as it is in a batch. */
  readonly text: string;
  readonly byteLength: number;
  /** Local monotonic clock when the base said it. */
  readonly heardAt: number;
}

/** Far more bases than one controller has. */
const MAX_MESSAGES = 10_000;
const MAX_BYTES = 16 * 1024 * 1024;

/** Messages in the order in which they were said, of each key the newest. There is room for some thousands. */
export class NewestMessages {
  readonly #byKey = new Map<string, WaitingMessage>();
  #byteLength = 0;

  get size(): number {
    return this.#byKey.size;
  }

  /** Returns how many of the oldest had to make room. */
  put(message: WaitingMessage): number {
    this.#delete(this.#byKey.get(message.key));
    this.#byKey.set(message.key, message);
    this.#byteLength += message.byteLength;
    return this.#deleteWhile(() => this.size > MAX_MESSAGES || this.#byteLength > MAX_BYTES);
  }

  /** Returns how many were heard before `time` and are gone. */
  dropBefore(time: number): number {
    return this.#deleteWhile(({ heardAt }) => heardAt < time);
  }

  /** The oldest, as many as a batch may have. */
  takeBatch(): WaitingMessage[] {
    const batch: WaitingMessage[] = [];
    let byteLength = 0;
    for (const message of this.#byKey.values()) {
      byteLength += message.byteLength;
      // A single one always fits: its body was taken by the same listener, with a lower limit.
      if (batch.length === MAX_BATCH_MESSAGES || byteLength > MAX_TEXT_BYTES) break;
      batch.push(message);
      this.#delete(message);
    }
    return batch;
  }

  takeAll(): WaitingMessage[] {
    const all = [...this.#byKey.values()];
    this.#byKey.clear();
    this.#byteLength = 0;
    return all;
  }

  #deleteWhile(isDropped: (oldest: WaitingMessage) => boolean): number {
    let count = 0;
    for (const oldest of this.#byKey.values()) {
      if (!isDropped(oldest)) break;
      this.#delete(oldest);
      count++;
    }
    return count;
  }

  #delete(message: WaitingMessage | undefined): void {
    if (message === undefined) return;
    this.#byKey.delete(message.key);
    this.#byteLength -= message.byteLength;
  }
}

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
    const { tunnel } = this.#options;
    return { tunnel, identity: undefined, sender: member, code: 'Arklet.InvalidMessage', message };
  }
}
