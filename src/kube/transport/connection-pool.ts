import type { Dispatcher } from 'undici';
import type { ClusterAccess } from '../auth/cluster-access.ts';
import type { Connectors } from './connectors.ts';
import type { Permit } from './rest-lane.ts';
import { Pool, requestOn } from './undici-pool.ts';

/** Below the 90 s after which the API server closes an idle connection, so that this side closes it. */
export const IDLE_TIMEOUT_MS = 60_000;

export interface ConnectionPoolOptions {
  readonly access: ClusterAccess;
  readonly connectors: Connectors;
  /** Limit of concurrent requests; null = one for each request in flight. */
  readonly connections: number | null;
}

/** Keep-alive HTTP/1.1 connections to the API server, replaced when the certificates change. */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  #pool: Pool;
  /** Replaced pools whose last requests still run. Emptied as these end. */
  readonly #draining = new Set<Pool>();
  #isClosed = false;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#pool = this.#connect();
    options.access.onTlsChange(() => this.#replace());
  }

  /** Resolves with the whole answer, whatever its status. */
  send(request: PooledRequest): Promise<WholeAnswer> {
    return wholeAnswer(this.#pool, request);
  }

  /** Resolves when the headers have come; the body is read by whoever asks, and ends with `cut`. */
  open({ permit: _permit, cut, ...request }: PooledRequest): Promise<Dispatcher.ResponseData> {
    const controller = new AbortController();
    return new Promise((resolve, reject) => {
      // undici does not let go of a request that it only queues.
      cut.onCut((error) => {
        controller.abort(error);
        reject(error);
      });
      const options = { ...request, signal: controller.signal, headersTimeout: 0, bodyTimeout: 0 };
      requestOn(this.#pool, options).then(resolve, reject);
    });
  }

  /** Cuts what is still in flight. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#pool, ...this.#draining].map((pool) => pool.destroy()));
  }

  #connect(): Pool {
    const { access, connectors, connections } = this.#options;
    return new Pool(access.server.origin, {
      connections,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      keepAliveMaxTimeout: IDLE_TIMEOUT_MS,
      connect: connectors.current(),
    });
  }

  #replace(): void {
    if (this.#isClosed) return;
    const old = this.#pool;
    this.#pool = this.#connect();
    this.#draining.add(old);
    const forget = (): void => void this.#draining.delete(old);
    old.close().then(forget, forget);
  }
}

/** How a request is ended from outside. An AbortSignal for each takes a tenth more CPU time. */
export interface Cut {
  /**
   * Registers a listener of what carries the request out. It is called once, at once where the cut has come already.
   */
  onCut(listener: (error: Error) => void): void;
}

export interface PooledRequest {
  readonly method: Dispatcher.HttpMethod;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
  /** Ends it wherever it is. */
  readonly cut: Cut;
  /** Asked when the request comes to its connection; where it says no, it is rejected unsent. */
  readonly permit: Permit | undefined;
}

export interface WholeAnswer {
  readonly statusCode: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

type Headers = Record<string, string | string[] | undefined>;

/** Value of Retry-After as written; undefined also where it came twice. */
export function retryAfterOf({ 'retry-after': retryAfter }: Headers): string | undefined {
  return typeof retryAfter === 'string' ? retryAfter : undefined;
}

/** A request and all of its answer, without the streams between that undici's `request` makes: half of its CPU time. */
export function wholeAnswer(pool: Dispatcher, { cut, permit, ...request }: PooledRequest): Promise<WholeAnswer> {
  return new Promise((resolve, reject) => {
    const receiver = new Receiver({ permit, resolve, reject });
    cut.onCut((error) => receiver.cut(error));
    // Deadlines are kept by the lane, which also counts the wait for a free connection.
    // reset: undici closes the connection behind a DELETE with a body unless `reset` is false.
    pool.dispatch({ ...request, headersTimeout: 0, bodyTimeout: 0, reset: false }, receiver);
  });
}

interface ReceiverOptions extends Pick<PooledRequest, 'permit'> {
  readonly resolve: (answer: WholeAnswer) => void;
  readonly reject: (error: unknown) => void;
}

class Receiver implements Dispatcher.DispatchHandler {
  readonly #options: ReceiverOptions;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #error: Error | undefined;
  #statusCode = 0;
  #retryAfter: string | undefined;

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  /** Also while undici only queues the request, which it does not let go of. */
  cut(error: Error): void {
    this.#error = error;
    this.#controller?.abort(error);
    this.#options.reject(error);
  }

  /** Just before it is written to its connection: what throws here is not written. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#error) throw this.#error;
    if (this.#options.permit?.() === false) throw new Error('no longer permitted');
    this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number, headers: Headers): void {
    this.#statusCode = statusCode;
    this.#retryAfter = retryAfterOf(headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#controller = undefined;
    const [first, ...more] = this.#chunks;
    const bytes = first !== undefined && more.length === 0 ? first : Buffer.concat(this.#chunks);
    const { resolve } = this.#options;
    resolve({ statusCode: this.#statusCode, retryAfter: this.#retryAfter, text: bytes.toString('utf8') });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#controller = undefined;
    this.#options.reject(error);
  }
}
