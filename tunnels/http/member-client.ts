import { isIP } from 'node:net';
import axios from 'axios';
import type { Clock } from '../../src/clock.ts';
import { ControllerError, messageOf } from '../../src/errors.ts';
import { BaseAgent } from './base-agent.ts';

export const MEMBERS_PATH = '/members/messages';
const TIMEOUT_MS = 3_000;
/** Of an answer: two numbers, or why it was refused. */
const MAX_ANSWER_BYTES = 16 * 1024;

export interface MemberClientOptions {
  readonly clock: Clock;
  readonly token: string;
}

/** Posts to other members: no proxy, no redirect, on connections that are kept for a few seconds. */
export class MemberClient {
  readonly #options: MemberClientOptions;
  readonly #agent: BaseAgent;

  constructor(options: MemberClientOptions) {
    this.#options = options;
    this.#agent = new BaseAgent(options.clock);
  }

  /** Resolves when the member has taken it, rejects with `Cluster.MemberUnreachable` after 3 s at the latest. */
  async post(address: string, batch: string, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const stop = (): void => over.abort('the tunnel was stopped, or it is no member any more');
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    const timer = this.#options.clock.setTimer(() => over.abort(`no answer within ${TIMEOUT_MS} ms`), TIMEOUT_MS);
    try {
      await this.#exchange(address, batch, over.signal);
    } catch (error) {
      const reason = over.signal.aborted ? String(over.signal.reason) : messageOf(error);
      // Of axios' own error only the cause: the rest holds the token.
      const cause = axios.isAxiosError(error) ? error.cause : error;
      throw new ControllerError('Cluster.MemberUnreachable', `member ${address}: ${reason}`, { cause });
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', stop);
    }
  }

  /** Closes the connections that nobody uses. */
  close(): void {
    this.#agent.destroy();
  }

  async #exchange(address: string, batch: string, signal: AbortSignal): Promise<void> {
    const { status } = await axios.request({
      method: 'POST',
      url: urlOf(address),
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#options.token}` },
      data: Buffer.from(batch),
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
    if (status !== 200) throw new Error(`it answered HTTP ${status}`);
  }
}

/** Nothing but an IP address and a port: the token goes there. */
function urlOf(address: string): string {
  const [, inBrackets, bare, port = ''] = /^(?:\[([\da-f:.]+)\]|([\d.]+)):(\d{1,5})$/i.exec(address) ?? [];
  const isAddress = inBrackets === undefined ? isIP(bare ?? '') === 4 : isIP(inBrackets) === 6;
  if (!isAddress || Number(port) < 1 || Number(port) > 65_535) throw new Error('is not an IP address and a port');
  return `http://${address}${MEMBERS_PATH}`;
}
