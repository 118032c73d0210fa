import { type Clock, sleep, type Timer } from '../../clock.ts';
import { ControllerError, messageOf } from '../../errors.ts';
import type { Metrics } from '../../metrics.ts';
import type { ClusterAccess } from '../auth/cluster-access.ts';
import { ApiError, apiErrorOf, isUnauthorized } from './api-error.ts';
import type { ConcurrencyLimit } from './concurrency-limit.ts';
import { type ConnectionPool, type Cut, type PooledRequest, retryAfterOf } from './connection-pool.ts';
import { mayResend, retryDelayMs, type TriesSoFar } from './request-retry.ts';
import { describeRequest, type RestLane, type RestRequest } from './rest-lane.ts';

const DEFAULT_TIMEOUT_MS = 10_000;
const USER_AGENT = 'module-controller';
const JSON_TYPE = 'application/json';
/** The object without spec and status; a server that cannot do that answers with all of it. */
const METADATA_ONLY = `application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,${JSON_TYPE}`;

export interface HttpLaneOptions {
  readonly access: ClusterAccess;
  readonly pool: ConnectionPool;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly random: () => number;
  /** Ends the waits between tries. */
  readonly closing: AbortSignal;
  /** Limit of concurrent requests with one answer; undefined: as many at a time as are asked for. */
  readonly limit: ConcurrencyLimit | undefined;
}

/** Either is asked for, by the status. */
interface Answer<T> {
  readonly statusCode: number;
  readonly retryAfter: string | undefined;
  text(): Promise<string> | string;
  value(): T;
}

interface Exchange<T> {
  readonly request: RestRequest;
  /** The body as JSON text; made once for all tries. */
  readonly text: string | null;
  readonly send: (request: PooledRequest) => Promise<Answer<T>>;
  /** Whether `signal` stays linked when the headers have come. */
  readonly isStream: boolean;
}

/** The one way to the API server: authorization, deadlines, retries, metrics. */
export class HttpLane implements RestLane {
  readonly #options: HttpLaneOptions;
  readonly #pathPrefix: string;

  constructor(options: HttpLaneOptions) {
    this.#options = options;
    this.#pathPrefix = options.access.server.pathname.replace(/\/+$/, '');
  }

  async request<T = unknown>(request: RestRequest): Promise<T> {
    const { clock, metrics } = this.#options;
    const text = request.body === undefined ? null : JSON.stringify(request.body);
    const parse = (answer: string): T => (request.ignoresAnswer ? (undefined as T) : (JSON.parse(answer) as T));
    const send = (pooled: PooledRequest): Promise<Answer<T>> => this.#wholeAnswer(pooled, parse);
    const exchange = { request, text, send, isStream: false };
    const startedAt = clock.now();
    for (let tries = 1, resends = 0; ; tries++) {
      try {
        return await this.#inTurn(() => this.#attempt(exchange));
      } catch (error) {
        const soFar = { tries, resends, elapsedMs: clock.now() - startedAt };
        if (mayResend(error, request, soFar)) resends++;
        else if (!(await this.#waitToRetry(error, request, soFar))) throw error;
        metrics.restRetries.inc({ verb: request.method });
      }
    }
  }

  async open(request: RestRequest & { readonly signal: AbortSignal }): Promise<AsyncIterable<Buffer>> {
    return this.#attempt({ request, text: null, send: (pooled) => this.#stream(pooled), isStream: true });
  }

  #inTurn<T>(attempt: () => Promise<T>): Promise<T> {
    const { limit } = this.#options;
    return limit ? limit.run(attempt) : attempt();
  }

  async #wholeAnswer<T>(pooled: PooledRequest, parse: (text: string) => T): Promise<Answer<T>> {
    const { text, ...head } = await this.#options.pool.send(pooled);
    return { ...head, text: () => text, value: () => parse(text) };
  }

  async #stream(pooled: PooledRequest): Promise<Answer<AsyncIterable<Buffer>>> {
    const { statusCode, headers, body } = await this.#options.pool.open(pooled);
    return { statusCode, retryAfter: retryAfterOf(headers), text: () => body.text(), value: () => body };
  }

  /** False when it is not to be tried again. */
  async #waitToRetry(error: unknown, request: RestRequest, soFar: TriesSoFar): Promise<boolean> {
    const delayMs = request.isOnce ? undefined : retryDelayMs(error, soFar, this.#options.random);
    return delayMs !== undefined && this.#wait(delayMs, request.signal);
  }

  /** False when the wait was cut short. */
  async #wait(delayMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    const { clock, closing } = this.#options;
    const either = signal ? AbortSignal.any([signal, closing]) : closing;
    await sleep(clock, delayMs, either);
    return !either.aborted;
  }

  /** One try, or two when the first is answered with 401 and there is a newer credential. */
  async #attempt<T>(exchange: Exchange<T>): Promise<T> {
    const { access } = this.#options;
    const authorization = access.authorization();
    try {
      return await this.#send(exchange, authorization);
    } catch (error) {
      if (!isUnauthorized(error) || !(await access.onUnauthorized(authorization))) throw error;
      return this.#send(exchange, access.authorization());
    }
  }

  async #send<T>({ request, text, send, isStream }: Exchange<T>, authorization: string | undefined): Promise<T> {
    const { clock, metrics } = this.#options;
    const { method } = request;
    const startedAt = clock.now();
    assertPermitted(request);
    const deadline = new Deadline(clock, request.timeoutMs ?? DEFAULT_TIMEOUT_MS, request.signal);
    let code = '<error>';
    try {
      const answer = await send({
        method,
        path: this.#pathOf(request),
        headers: headersOf(request, text, authorization),
        body: text,
        cut: deadline,
        permit: request.permit,
      });
      code = String(answer.statusCode);
      if (answer.statusCode >= 300) throw await errorOf(request, answer);
      const value = answer.value();
      if (!isStream) deadline.unlink();
      return value;
    } catch (error) {
      deadline.unlink();
      if (error instanceof ApiError) throw error;
      assertPermitted(request);
      const why = messageOf(deadline.error ?? error);
      throw new ControllerError('Kube.ConnectionFailed', `${describeRequest(request)}: ${why}`, { cause: error });
    } finally {
      deadline.clear();
      metrics.restRequests.inc({ method, code });
      metrics.restRequestSeconds.observe({ verb: method }, (clock.now() - startedAt) / 1000);
    }
  }

  #pathOf(request: RestRequest): string {
    let text = '';
    for (const [key, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined) text += `${text === '' ? '?' : '&'}${key}=${encodeURIComponent(value)}`;
    }
    return this.#pathPrefix + request.path + text;
  }
}

/** Asked after a failure too: if the permit is gone, the request was never sent. */
function assertPermitted(request: RestRequest): void {
  if (request.permit?.() === false) {
    throw new ControllerError('Kube.NotPermitted', `${describeRequest(request)}: another replica may lead by now`);
  }
}

function headersOf(request: RestRequest, text: string | null, authorization: string | undefined) {
  const accept = request.ignoresAnswer ? METADATA_ONLY : JSON_TYPE;
  const headers: Record<string, string> = { accept, 'user-agent': USER_AGENT };
  if (text !== null) headers['content-type'] = request.contentType ?? JSON_TYPE;
  if (authorization !== undefined) headers.authorization = authorization;
  return headers;
}

async function errorOf(request: RestRequest, { statusCode, retryAfter, text }: Answer<unknown>): Promise<ApiError> {
  return apiErrorOf(describeRequest(request), { status: statusCode, retryAfter }, await text());
}

/** Comes with an abort signal, or after a time. */
class Deadline implements Cut {
  readonly #timer: Timer;
  readonly #outer: AbortSignal | undefined;
  readonly #onOuterAbort = (): void => this.#cut('aborted');
  #error: Error | undefined;
  #listener: ((error: Error) => void) | undefined;

  constructor(clock: Clock, timeoutMs: number, outer: AbortSignal | undefined) {
    this.#timer = clock.setTimer(() => this.#cut(`no complete answer within ${timeoutMs} ms`), timeoutMs);
    this.#outer = outer;
    if (outer?.aborted) this.#onOuterAbort();
    else outer?.addEventListener('abort', this.#onOuterAbort, { once: true });
  }

  /** Why it has come. */
  get error(): Error | undefined {
    return this.#error;
  }

  onCut(listener: (error: Error) => void): void {
    if (this.#error) listener(this.#error);
    else this.#listener = listener;
  }

  /** Stops the time; the signal still counts. */
  clear(): void {
    this.#timer.cancel();
  }

  /** Lets go of the signal, which may live as long as the process. */
  unlink(): void {
    this.#outer?.removeEventListener('abort', this.#onOuterAbort);
  }

  #cut(reason: string): void {
    this.#timer.cancel();
    this.#error ??= new Error(reason);
    this.#listener?.(this.#error);
    this.#listener = undefined;
  }
}
