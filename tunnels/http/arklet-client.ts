import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Readable } from 'node:stream';
import axios from 'axios';
import type { Clock } from '../../src/clock.ts';
import { type ControllerError, messageOf } from '../../src/errors.ts';
import type { BaseAddress } from '../../src/tunnel/tunnel.ts';
import { MAX_PAYLOAD_BYTES } from '../arklet/parse.ts';
import { BaseAgent } from './base-agent.ts';
import { notConnected, sendFailed } from './failures.ts';

export interface ArkletRequest {
  readonly base: BaseAddress;
  /** arklet's word, the path. */
  readonly command: string;
  readonly payload: object;
  /** From now to the open connection. */
  readonly connectTimeoutMs: number;
  /** From now to the whole answer. */
  readonly timeoutMs: number;
  /** Ends the request at once. */
  readonly signal: AbortSignal;
}

export interface ArkletClientOptions {
  readonly clock: Clock;
  /** Nobody listens at the base's address; called once for every attempt, before `post` rejects. */
  readonly onConnectionRefused: (base: BaseAddress) => void;
}

/**
 * Speaks HTTP to the arklet of a base: no proxy, no redirect, no compression, no retry, at most 1 MiB each way.
 * Whom it may call is for others to check.
 */
export class ArkletClient {
  readonly #options: ArkletClientOptions;
  readonly #agent: BaseAgent;

  constructor(options: ArkletClientOptions) {
    this.#options = options;
    this.#agent = new BaseAgent(options.clock);
  }

  /**
   * Resolves with the bytes of the answer. Rejects with `Tunnel.NotConnected` where there was no connection to send
   * anything over, with `Tunnel.SendFailed` in every other case.
   */
  async post(request: ArkletRequest): Promise<Uint8Array> {
    const { base, connectTimeoutMs, timeoutMs, signal } = request;
    const { clock, onConnectionRefused } = this.#options;
    const attempt = new Attempt();
    const stop = (): void => attempt.giveUp('the tunnel was stopped');
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    const timers = [
      clock.setTimer(() => attempt.giveUpConnecting(`no connection within ${connectTimeoutMs} ms`), connectTimeoutMs),
      clock.setTimer(() => attempt.giveUp(`no answer within ${timeoutMs} ms`), timeoutMs),
    ];
    try {
      return await this.#exchange(request, attempt);
    } catch (error) {
      if (!attempt.isConnected && codeOf(error) === 'ECONNREFUSED' && !signal.aborted) onConnectionRefused(base);
      throw attempt.failureOf(error);
    } finally {
      for (const timer of timers) timer.cancel();
      signal.removeEventListener('abort', stop);
    }
  }

  /** Closes the connections that nobody uses. */
  close(): void {
    this.#agent.destroy();
  }

  async #exchange({ base, command, payload }: ArkletRequest, attempt: Attempt): Promise<Uint8Array> {
    const response = await axios.request<Readable>({
      method: 'POST',
      url: `http://${isIPv6(base.ip) ? `[${base.ip}]` : base.ip}:${base.port}/${command}`,
      headers: { 'content-type': 'application/json', accept: 'application/json', 'accept-encoding': 'identity' },
      data: JSON.stringify(payload),
      transformRequest: asIs,
      transformResponse: asIs,
      responseType: 'stream',
      decompress: false,
      maxBodyLength: MAX_PAYLOAD_BYTES,
      maxRedirects: 0,
      proxy: false,
      validateStatus: () => true,
      httpAgent: this.#agent,
      transport: { request: (options, onResponse) => attempt.watch(httpRequest(options, onResponse)) } as Transport,
      signal: attempt.signal,
    });
    if (response.status === 200) return readAnswer(response.data);
    response.data.destroy();
    throw new Error(`the base answered HTTP ${response.status}`);
  }
}

/** axios leaves the type open. */
interface Transport {
  request(options: RequestOptions, onResponse: (response: IncomingMessage) => void): ClientRequest;
}

/** One request, and how far it has come. */
class Attempt {
  readonly #abort = new AbortController();
  #isConnected = false;
  /** Why we ended it ourselves. */
  #reason: string | undefined;

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** From here on the base may have got the command. */
  get isConnected(): boolean {
    return this.#isConnected;
  }

  watch(request: ClientRequest): ClientRequest {
    const onConnected = (): void => {
      this.#isConnected = true;
    };
    return request.once('socket', (socket) => {
      if (socket.connecting) socket.once('connect', onConnected);
      else onConnected();
    });
  }

  giveUp(reason: string): void {
    this.#reason ??= reason;
    this.#abort.abort();
  }

  giveUpConnecting(reason: string): void {
    if (!this.#isConnected) this.giveUp(reason);
  }

  failureOf(error: unknown): ControllerError {
    const reason = this.#reason ?? messageWithCode(error);
    // Of axios' own error only the cause: the rest holds the payload, and so the envs of a module.
    const cause = axios.isAxiosError(error) ? error.cause : error;
    return this.#isConnected ? sendFailed(reason, cause) : notConnected(reason, cause);
  }
}

/** A little of what is too long, enough for `parse` to say so. */
async function readAnswer(stream: Readable): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    length += chunk.byteLength;
    if (length > MAX_PAYLOAD_BYTES) break;
  }
  return Buffer.concat(chunks);
}

function asIs(value: unknown): unknown {
  return value;
}

function codeOf(error: unknown): string | undefined {
  return axios.isAxiosError(error) ? error.code : undefined;
}

function messageWithCode(error: unknown): string {
  const message = messageOf(error);
  const code = codeOf(error);
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}
