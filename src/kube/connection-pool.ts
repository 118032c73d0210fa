import { type Dispatcher, Pool } from 'undici';
import type { ClusterAccess } from './cluster-access.ts';
import { type PooledRequest, type WholeAnswer, wholeAnswer } from './whole-answer.ts';

/** Below the 90 s after which the API server closes an idle connection, so that we are the ones to close it. */
const IDLE_TIMEOUT_MS = 60_000;
const TCP_KEEPALIVE_MS = 30_000;

export interface ConnectionPoolOptions {
  readonly access: ClusterAccess;
  /** At most so many at a time; null = one for each request in flight. */
  readonly connections: number | null;
  readonly connectTimeoutMs: number;
}

/** Keep-alive HTTP/1.1 connections to the API server, made anew when the certificates change. */
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

  /** Resolves when the headers have come; the body is read by whoever asks, and ends with `signal`. */
  open({ permit: _permit, ...request }: PooledRequest): Promise<Dispatcher.ResponseData> {
    return this.#pool.request({ ...request, headersTimeout: 0, bodyTimeout: 0 });
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
    this.#draining.add(old);
    const forget = (): void => void this.#draining.delete(old);
    old.close().then(forget, forget);
  }
}
