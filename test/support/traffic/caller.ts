import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';

const TICK_MS = 10;
const TIMEOUT_MS = 2_000;
/** A process that was late makes up for no more calls than these at a time, so that it is not late again. */
const MAX_DUE = 50;
/** More at a time would be a flood, not the rate: further calls are left out until one of them ends. */
const MAX_IN_FLIGHT = 200;
const SHOWN_LENGTH = 120;

export interface Target {
  readonly address: string;
  readonly port: number;
  readonly path: string;
  /** Header `Host`. */
  readonly host: string;
}

export interface FailedCall {
  /** Both by the wall clock, ms. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** undefined: there was nobody to call. */
  readonly address: string | undefined;
  /** When the connection of the call was opened; undefined: there was none. */
  readonly connectedAt: number | undefined;
  readonly cause: string;
}

interface Failure {
  readonly cause: string;
  readonly connectedAt: number | undefined;
}

/** The cause of a call that had no target. */
export const NO_TARGET = 'no target';

/**
 * Calls at a steady rate, over kept connections, until `stop`. An answer other than 200, none within 2 s and a broken
 * connection are failures; none of them is tried again. Only a call on a kept connection that was closed before is sent
 * to the same address over another one, as HTTP clients do: the server may close it at any time.
 */
export class Caller {
  readonly failures: FailedCall[] = [];
  calls = 0;
  /** How often each version has answered. */
  readonly versions = new Map<string, number>();
  readonly #perSecond: number;
  readonly #targetOf: () => Target | undefined;
  readonly #agent = new Agent({ keepAlive: true });
  /** When each connection was opened. */
  readonly #connectedAt = new WeakMap<Socket, number>();
  readonly #inFlight = new Set<Promise<void>>();
  /** Calls that are due and not made. */
  #due = 0;
  #lastTickAt = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor(perSecond: number, targetOf: () => Target | undefined) {
    this.#perSecond = perSecond;
    this.#targetOf = targetOf;
    this.#timer = setInterval(() => this.#callDue(), TICK_MS);
  }

  /** Calls that are not answered yet. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#inFlight);
    this.#agent.destroy();
  }

  #callDue(): void {
    const now = performance.now();
    this.#due = Math.min(this.#due + ((now - this.#lastTickAt) * this.#perSecond) / 1000, MAX_DUE);
    this.#lastTickAt = now;
    for (; this.#due >= 1; this.#due--) {
      if (this.#inFlight.size >= MAX_IN_FLIGHT) continue;
      this.calls++;
      const call = this.#call().finally(() => this.#inFlight.delete(call));
      this.#inFlight.add(call);
    }
  }

  async #call(): Promise<void> {
    const startedAt = Date.now();
    const target = this.#targetOf();
    const answer = target === undefined ? { cause: NO_TARGET, connectedAt: undefined } : await this.#ask(target);
    if ('cause' in answer) {
      this.failures.push({ startedAt, endedAt: Date.now(), address: target?.address, ...answer });
      return;
    }
    this.versions.set(answer.version, (this.versions.get(answer.version) ?? 0) + 1);
  }

  /** The version, or why there is none. */
  #ask(target: Target): Promise<{ version: string } | Failure> {
    const { address, port, path, host } = target;
    const { promise, resolve } = Promise.withResolvers<{ version: string } | Failure>();
    const fail = (cause: string): void =>
      resolve({ cause, connectedAt: call.socket ? this.#connectedAt.get(call.socket) : undefined });
    const call = request(
      { host: address, port, path, agent: this.#agent, timeout: TIMEOUT_MS, headers: { host } },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.once('error', ({ message }) => fail(message));
        response.once('end', () => {
          if (response.statusCode === 200) resolve({ version: text });
          else fail(`${response.statusCode} ${text.replace(/\s+/g, ' ')}`.slice(0, SHOWN_LENGTH));
        });
      },
    );
    call.once('timeout', () => call.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
    call.once('error', ({ message, code }: NodeJS.ErrnoException) => {
      const wasClosed = call.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE');
      if (wasClosed) resolve(this.#ask(target));
      else fail(message);
    });
    call.once('socket', (socket) => {
      if (!this.#connectedAt.has(socket)) this.#connectedAt.set(socket, Date.now());
    });
    call.end();
    return promise;
  }
}
