import { isIP } from 'node:net';
import axios from 'axios';
import type { Clock } from '../../src/clock.ts';
import { ControllerError, messageOf } from '../../src/errors.ts';
import { cutToBytes } from '../arklet/message-line.ts';
import { BaseAgent } from './base-agent.ts';
import type { MemberProcess, MemberProver } from './member-proof.ts';
import { MESSAGE_TYPES, type MessageType } from './receive.ts';

export const MEMBERS_PATH = '/members/messages';
const TIMEOUT_MS = 3_000;
/** Maximum size of an answer: two numbers, or why it was refused. */
const MAX_ANSWER_BYTES = 16 * 1024;
/** An address comes from a Lease, where it may be long. */
const MAX_SHOWN_BYTES = 128;

/** Another replica, as its membership Lease names it: nothing of it is trusted. */
export interface MemberPeer extends MemberProcess {
  /** `host:port`. */
  readonly address: string;
}

/** What became of a batch. */
export type PostOutcome =
  | { readonly error?: never }
  /** `currentBoot`: set when the batch was for an earlier boot, and the member proved which one it uses now. */
  | { readonly error: ControllerError; readonly currentBoot: string | undefined };

export interface MemberClientOptions {
  readonly clock: Clock;
  readonly prover: MemberProver;
}

/**
 * Posts to other members: no proxy, no redirect, on connections that are kept for a few seconds. Nothing that it sends
 * opens anything elsewhere, so an address that a Lease names needs no trust.
 */
export class MemberClient {
  readonly #options: MemberClientOptions;
  readonly #agent: BaseAgent;

  constructor(options: MemberClientOptions) {
    this.#options = options;
    this.#agent = new BaseAgent(options.clock);
  }

  /** Resolves after 3 s at the latest; the error is `Cluster.MemberUnreachable`. Never rejects. */
  async post(peer: MemberPeer, batch: string, signal: AbortSignal): Promise<PostOutcome> {
    const over = new AbortController();
    const stop = (): void => over.abort('the tunnel was stopped, or it is no member any more');
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    const timer = this.#options.clock.setTimer(() => over.abort(`no answer within ${TIMEOUT_MS} ms`), TIMEOUT_MS);
    try {
      const { status, currentBoot } = await this.#exchange(peer, batch, over.signal);
      if (status === 200) return {};
      return { error: unreachable(peer, `it answered HTTP ${status}`), currentBoot };
    } catch (error) {
      const reason = over.signal.aborted ? String(over.signal.reason) : messageOf(error);
      // Of axios' own error only the cause: the rest holds what bases said.
      const cause = axios.isAxiosError(error) ? error.cause : error;
      return { error: unreachable(peer, reason, cause), currentBoot: undefined };
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', stop);
    }
  }

  /** Closes the connections that nobody uses. */
  close(): void {
    this.#agent.destroy();
  }

  async #exchange(
    peer: MemberPeer,
    batch: string,
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly currentBoot: string | undefined }> {
    const url = urlOf(peer.address);
    const body = Buffer.from(batch);
    const { prover } = this.#options;
    const authorization = prover.prove('POST', MEMBERS_PATH, peer, body);
    const { status, headers } = await axios.request({
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json', authorization },
      data: body,
      transformRequest: (data: unknown) => data,
      responseType: 'arraybuffer',
      maxContentLength: MAX_ANSWER_BYTES,
      decompress: false,
      maxRedirects: 0,
      proxy: false,
      validateStatus: () => true,
      httpAgent: this.#agent,
      signal,
    });
    const challenge: unknown = headers['www-authenticate'];
    return { status, currentBoot: status === 401 ? prover.challengedBoot(challenge, authorization) : undefined };
  }
}

function unreachable({ address }: MemberPeer, reason: string, cause?: unknown): ControllerError {
  const message = `member ${cutToBytes(address, MAX_SHOWN_BYTES)}: ${reason}`;
  return new ControllerError('Cluster.MemberUnreachable', message, { cause });
}

/** Nothing but an IP address and a port: what bases say goes there. */
function urlOf(address: string): string {
  const [, inBrackets, bare, port = ''] = /^(?:\[([\da-f:.]+)\]|([\d.]+)):(\d{1,5})$/i.exec(address) ?? [];
  const isAddress = inBrackets === undefined ? isIP(bare ?? '') === 4 : isIP(inBrackets) === 6;
  if (!isAddress || Number(port) < 1 || Number(port) > 65_535) throw new Error('is not an IP address and a port');
  return `http://${address}${MEMBERS_PATH}`;
}

/** What a base said to one member, for the others. `{"messages":[<this>, …]}` is what travels. */
export interface MemberMessage {
  readonly type: MessageType;
  /** The address that it came from. */
  readonly sender: string;
  /** The payload as the base sent it, as text: a newer member may understand more of it. */
  readonly body: string;
}

export const MAX_BATCH_MESSAGES = 500;
export const MAX_BATCH_BYTES = 1024 * 1024;
const BEFORE = '{"messages":[';
const AFTER = ']}';
/** How many bytes `MAX_BATCH_MESSAGES` texts may have together, the commas between them left out. */
export const MAX_TEXT_BYTES = MAX_BATCH_BYTES - BEFORE.length - AFTER.length - MAX_BATCH_MESSAGES;
const MAX_SENDER_LENGTH = 64;

export function messageTextOf({ type, sender, body }: MemberMessage): string {
  return JSON.stringify({ type, sender, body });
}

/** `texts`: what `messageTextOf` made. */
export function batchTextOf(texts: readonly string[]): string {
  return `${BEFORE}${texts.join(',')}${AFTER}`;
}

/** One message that was read, or the reason why it was not. */
export type ReadMessage =
  | { readonly message: MemberMessage; readonly fault?: never }
  | { readonly message?: never; readonly fault: string };

/** What another member posted, each message by itself; the words for why nothing of it can be read. Never throws. */
export function readBatch(payload: Uint8Array): readonly ReadMessage[] | string {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(payload).toString('utf8'));
  } catch {
    return 'payload is not JSON';
  }
  if (!isObject(value)) return 'payload is not an object';
  const { messages } = value;
  if (!Array.isArray(messages)) return 'messages is not a list';
  if (messages.length > MAX_BATCH_MESSAGES) {
    return `messages has ${messages.length} entries, ${MAX_BATCH_MESSAGES} are allowed`;
  }
  return messages.map((entry: unknown, index) => readMessage(entry, `messages[${index}]`));
}

function readMessage(value: unknown, path: string): ReadMessage {
  if (!isObject(value)) return { fault: `${path} is not an object` };
  const type = MESSAGE_TYPES.find((known) => known === value.type);
  if (type === undefined) return { fault: `${path}.type is not one of ${MESSAGE_TYPES.join(', ')}` };
  const { sender, body } = value;
  if (typeof sender !== 'string') return { fault: `${path}.sender is not a string` };
  if (sender.length > MAX_SENDER_LENGTH) {
    return { fault: `${path}.sender has ${sender.length} characters, ${MAX_SENDER_LENGTH} are allowed` };
  }
  if (typeof body !== 'string') return { fault: `${path}.body is not a string` };
  return { message: { type, sender, body } };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
