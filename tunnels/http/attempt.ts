import type { ClientRequest } from 'node:http';
import { Readable } from 'node:stream';
import axios from 'axios';
import type { Clock, Timer } from '../../src/clock.ts';
import { type ControllerError, messageOf } from '../../src/errors.ts';
import { notAllowed, notConnected, sendFailed } from './failures.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** From the open connection to `100 Continue`: a round trip and a pause of the base's garbage collector. */
const PATIENCE_MS = 1_000;

export interface AttemptOptions {
  readonly clock: Clock;
  readonly payload: Uint8Array;
  /** False for a base that is known to ignore `Expect`: the payload goes out with the head. */
  readonly isProofAwaited: boolean;
  /** Whether the payload leaves in the end without `100 Continue`. */
  readonly leavesUnproven: boolean;
  /** On the clock: when the payload should have left, on this attempt or a later one. */
  readonly leaveBy: number;
  /** Asked when the payload is about to leave. */
  readonly mayLeave: () => boolean;
  /** Called once when the whole payload is with the operating system. */
  readonly onLeft: () => void;
  /** Resets the connection, so that nothing of it arrives later; its reason is a text. */
  readonly signal: AbortSignal;
}

/**
 * One connection that a command is offered on, and how far it has come. The head goes out at once, the payload when the
 * base says `100 Continue`. The event loop of the connection is free then, and begins the command as soon as it has the
 * payload. A payload that is sent to a busy loop starts when the loop is free again, even if the
 * controller gave it up long before: neither FIN nor RST takes it out of the base's receive buffer.
 */
export class Attempt {
  /** What axios sends: nothing, and then the payload. */
  readonly body = new Readable({ read: () => {} });
  readonly #options: AttemptOptions;
  readonly #abort = new AbortController();
  #timer: Timer;
  #request: ClientRequest | undefined;
  #hasLeft = false;
  #isProven = false;
  #isAnswered = false;
  #isBusy = false;
  #isForbidden = false;
  /** Why the controller ended it. */
  #reason: string | undefined;

  constructor(options: AttemptOptions) {
    this.#options = options;
    const { clock, leaveBy, signal } = options;
    const connectTimeoutMs = Math.round(Math.min(CONNECT_TIMEOUT_MS, leaveBy - clock.now()));
    this.#timer = clock.setTimer(() => this.#giveUp(`no connection within ${connectTimeoutMs} ms`), connectTimeoutMs);
    if (signal.aborted) this.#stop();
    signal.addEventListener('abort', this.#stop);
  }

  /** Abort signal for axios, as are `body` and `headers`. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get headers(): Readonly<Record<string, string | number>> {
    const { payload, isProofAwaited } = this.#options;
    return { 'content-length': payload.byteLength, ...(isProofAwaited && { expect: '100-continue' }) };
  }

  /** It was given up since no `100 Continue` came: the base has got the head, and cannot have executed anything. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** There is an answer to the payload, and no `100 Continue` before it. */
  get isExpectIgnored(): boolean {
    return this.#hasLeft && this.#isAnswered && !this.#isProven;
  }

  /** Too little time is left for another one. */
  get isLast(): boolean {
    const { clock, leaveBy } = this.#options;
    return leaveBy - clock.now() < PATIENCE_MS / 2;
  }

  watch(request: ClientRequest): ClientRequest {
    this.#request = request;
    request.once('continue', () => {
      this.#isProven = true;
      this.#leave();
    });
    request.once('response', () => {
      this.#isAnswered = true;
      this.#timer.cancel();
    });
    request.once('finish', this.#options.onLeft);
    return request.once('socket', (socket) => {
      if (socket.connecting) socket.once('connect', () => this.#onConnected());
      else this.#onConnected();
    });
  }

  /** `busyCount`: attempts before this one that no event loop took up. */
  failureOf(error: unknown, busyCount: number): ControllerError {
    if (this.#isForbidden) return notAllowed();
    const why = this.#reason ?? messageWithCode(error);
    const reason = busyCount === 0 ? why : `${why}, after ${busyCount} connections without 100 Continue`;
    // Of axios' own error only the cause: the rest holds the payload, and so the envs of a module.
    const cause = axios.isAxiosError(error) ? error.cause : error;
    return this.#hasLeft || this.#isAnswered ? sendFailed(reason, cause) : notConnected(reason, cause);
  }

  /** It is over, however it ended. */
  end(): void {
    this.#timer.cancel();
    this.#options.signal.removeEventListener('abort', this.#stop);
    // Answered before the payload was wanted: the connection still waits for that.
    if (!this.#hasLeft) this.#request?.destroy();
  }

  #onConnected(): void {
    const { clock, isProofAwaited } = this.#options;
    this.#timer.cancel();
    if (isProofAwaited) this.#timer = clock.setTimer(() => this.#onBusy(), PATIENCE_MS);
    else this.#leave();
  }

  #onBusy(): void {
    if (this.#options.leavesUnproven && this.isLast) {
      this.#leave();
      return;
    }
    this.#isBusy = true;
    this.#abort.abort();
  }

  #leave(): void {
    // Left already, when the base says it late.
    if (this.#hasLeft || this.#abort.signal.aborted) return;
    this.#timer.cancel();
    if (!this.#options.mayLeave()) {
      this.#isForbidden = true;
      this.#abort.abort();
      return;
    }
    this.#hasLeft = true;
    this.body.push(this.#options.payload);
    this.body.push(null);
  }

  readonly #stop = (): void => {
    const socket = this.#request?.socket;
    // One that is being closed has nothing to send, and cannot be reset.
    if (socket && !socket.writableEnded) socket.resetAndDestroy();
    this.#giveUp(String(this.#options.signal.reason));
  };

  #giveUp(reason: string): void {
    this.#reason ??= reason;
    this.#abort.abort();
  }
}

function messageWithCode(error: unknown): string {
  const message = messageOf(error);
  const code = axios.isAxiosError(error) ? error.code : undefined;
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}
