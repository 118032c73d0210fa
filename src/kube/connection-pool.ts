import { type Dispatcher, Pool } from 'undici';
import type { Permit } from './client.ts';
import type { ClusterAccess } from './cluster-access.ts';

/** Below the 90 s after which the API server closes an idle connection, so that we are the ones to close it. */
const IDLE_TIMEOUT_MS = 60_000;
const TCP_KEEPALIVE_MS = 30_000;

export interface ConnectionPoolOptions {
  readonly access: ClusterAccess;
  /** At most so many at a time; null = one for each request in flight. */
  readonly connections: number | null;
  readonly connectTimeoutMs: number;
}

export interface PooledRequest extends Omit<Dispatcher.RequestOptions, 'headersTimeout' | 'bodyTimeout'> {
  readonly permit: Permit | undefined;
}

/** Keep-alive HTTP/1.1 connections to the API server, made anew when the certificates change. */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  #pool: Pool;
  /** The same pool, for requests with a permit. */
  #guarded: Dispatcher;
  /** Replaced pools whose last requests still run. Emptied as these end. */
  readonly #draining = new Set<Pool>();
  #isClosed = false;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#pool = this.#connect();
    this.#guarded = this.#pool.compose(guard);
    options.access.onTlsChange(() => this.#replace());
  }

  /** `permit`: asked when the request comes to its connection; where it says no, the promise is rejected unsent. */
  send(request: PooledRequest): Promise<Dispatcher.ResponseData> {
    // Deadlines are kept by the lane, which also counts the wait for a free connection.
    // reset: undici closes the connection behind a DELETE with a body unless told not to.
    const pool = request.permit === undefined ? this.#pool : this.#guarded;
    return pool.request({ ...request, headersTimeout: 0, bodyTimeout: 0, reset: false });
  }

  /** Cuts what is still in flight. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#pool, ...this.#draining].map((pool) => pool.destroy()));
  }

  #connect(): Pool {
    const { access, connections, connectTimeoutMs } = this.#options;
    return new Pool(access.server.origin, {
      connections,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      keepAliveMaxTimeout: IDLE_TIMEOUT_MS,
      connect: {
        ...access.tls(),
        timeout: connectTimeoutMs,
        keepAlive: true,
        keepAliveInitialDelay: TCP_KEEPALIVE_MS,
      },
    });
  }

  #replace(): void {
    if (this.#isClosed) return;
    const old = this.#pool;
    this.#pool = this.#connect();
    this.#guarded = this.#pool.compose(guard);
    this.#draining.add(old);
    const forget = (): void => void this.#draining.delete(old);
    old.close().then(forget, forget);
  }
}

/** undici lets requests wait for a free connection, and tells just before it writes one: what throws then is not written. */
const guard: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  const { permit } = options as Dispatcher.DispatchOptions & Pick<PooledRequest, 'permit'>;
  return dispatch(options, {
    onRequestStart: (controller, context) => {
      if (permit?.() === false) throw new Error('not permitted any more');
      handler.onRequestStart?.(controller, context);
    },
    onResponseStart: (...start) => handler.onResponseStart?.(...start),
    onResponseData: (...data) => handler.onResponseData?.(...data),
    onResponseEnd: (...end) => handler.onResponseEnd?.(...end),
    onResponseError: (...error) => handler.onResponseError?.(...error),
  });
};
