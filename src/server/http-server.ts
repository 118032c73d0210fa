import { createServer, type Server as PlainServer, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import express, { type Express } from 'express';
import type { Clock } from '../clock.ts';
import { canonicalAddress } from '../ip-address.ts';
import type { Logger } from '../logger.ts';
import type { Runnable } from '../manager.ts';
import type { Metrics } from '../metrics.ts';
import { ReportLimit } from '../report-limit.ts';
import { shortened } from '../shortened.ts';
import { TokenBucket } from '../token-bucket.ts';
import { serve } from './serve.ts';
import { limitSources } from './source-limit.ts';
import type { TlsSource } from './tls-source.ts';

export interface ServerLimits {
  /** Further ones are closed at once. */
  readonly maxConnections: number;
  /** The same for one source. Behind SNAT a stranger and those who have to come may share one. */
  readonly maxConnectionsOfSource: number;
  /** Connections of one source beyond these that get 429, and are closed then; further ones are closed at once. */
  readonly surplusOfSource: number;
  /** Timeout of the handshake, and again from the first byte of a request to the end of its body. */
  readonly requestTimeoutMs: number;
  /** How often that is looked at: Node's default of 30 s would make 40 s of 10 s. */
  readonly checkIntervalMs: number;
  /** Timeout of an answer of which nothing is taken. */
  readonly silenceTimeoutMs: number;
}

/** An API server writes 200 objects at a time by default, and may need a connection for each. */
const LIMITS: ServerLimits = {
  maxConnections: 1_000,
  maxConnectionsOfSource: 250,
  surplusOfSource: 0,
  requestTimeoutMs: 10_000,
  checkIntervalMs: 1_000,
  silenceTimeoutMs: 60_000,
};
const MAX_HEADER_BYTES = 16 * 1024;
/** A line a minute for each reason. */
const REFUSAL_LINES = { burst: 1, refillMs: 60_000 };
const REFUSALS = ['Source', 'Total'] as const;

export interface HttpServerOptions {
  readonly name: string;
  /** 0 = any free port; the log line shows which. */
  readonly port: number;
  readonly app: Express;
  /** Default: plain HTTP. */
  readonly tls?: TlsSource;
  readonly limits?: Partial<ServerLimits>;
  /** The app refuses by itself what is pipelined. Default false: the connection is closed. */
  readonly answersPipelined?: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'connectionsRefused'>;
}

/**
 * Serves an express app on one port, from `run` until it is aborted. Strangers reach every port, so each bounds its
 * connections and the time of its requests.
 */
export class HttpServer implements Runnable {
  readonly name: string;
  readonly #options: HttpServerOptions;

  constructor(options: HttpServerOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Rejects when the port is taken. */
  run(signal: AbortSignal): Promise<void> {
    return serve({ ...this.#options, server: this.#createServer() }, signal);
  }

  /** A new certificate counts for new connections; those that are open go on. */
  #createServer(): PlainServer | TlsServer {
    const { app, tls, answersPipelined = false } = this.#options;
    const limits = { ...LIMITS, ...this.#options.limits };
    const options = {
      requestTimeout: limits.requestTimeoutMs,
      headersTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      maxHeaderSize: MAX_HEADER_BYTES,
    };
    const listener = answersPipelined ? app : oneAtATime(app);
    if (tls === undefined) return this.#limited(createServer(options), listener, limits);
    const minVersion = 'TLSv1.2';
    const handshakeTimeout = limits.requestTimeoutMs;
    const server = createTlsServer({ ...tls.current(), ...options, handshakeTimeout, minVersion });
    tls.onChange((pair) => server.setSecureContext({ ...pair, minVersion }));
    return this.#limited(server, listener, limits);
  }

  #limited<S extends PlainServer | TlsServer>(server: S, listener: RequestListener, limits: ServerLimits): S {
    const { name, clock, logger, metrics } = this.#options;
    const lines = new Map(REFUSALS.map((reason) => [reason, new ReportLimit(clock.now(), REFUSAL_LINES)]));
    for (const reason of REFUSALS) metrics.connectionsRefused.inc({ server: name, reason }, 0);
    const refuse = (reason: (typeof REFUSALS)[number], source: string): void => {
      metrics.connectionsRefused.inc({ server: name, reason });
      const admitted = lines.get(reason)?.admit(clock.now());
      if (admitted) logger.warn({ server: name, reason, source, ...admitted }, 'connections are closed: too many');
    };
    server.timeout = limits.silenceTimeoutMs;
    server.maxConnections = limits.maxConnections;
    server.on('drop', (connection) => refuse('Total', canonicalAddress(connection?.remoteAddress ?? '')));
    const isSurplus = limitSources(server, {
      max: limits.maxConnectionsOfSource,
      surplus: limits.surplusOfSource,
      // Not its /64 network, which Pods and API servers of a cluster may share.
      sourceOf: canonicalAddress,
      onRefused: (source) => refuse('Source', source),
    });
    server.on('request', (request, response) => {
      if (isSurplus(request.socket)) refuseConnection(response, limits.maxConnectionsOfSource);
      else listener(request, response);
    });
    return server;
  }
}

const RETRY_AFTER_SECONDS = '10';

function refuseConnection(response: ServerResponse, max: number): void {
  const headers = { 'Retry-After': RETRY_AFTER_SECONDS, 'Content-Type': 'text/plain', Connection: 'close' };
  response.writeHead(429, headers).end(`your address has more than ${max} connections: close some of them\n`);
}

/**
 * Closes the connection of a client that does not wait for an answer before it asks again: one packet holds a thousand
 * requests, and all answers would be kept until the first is taken.
 */
function oneAtATime(app: RequestListener): RequestListener {
  return (request, response) => {
    // Another answer has the socket.
    if (response.socket === null) request.socket.destroy();
    else app(request, response);
  };
}

/** What is checked, and whether it is well; a text says what is missing. */
export type ReadinessChecks = () => Readonly<Record<string, boolean | string>>;

/** `/healthz`: the process answers. `/readyz`: it can do its work; the body names each check. */
/** Maximum length of a reason in `/readyz`. */
const MAX_REASON_LENGTH = 500;

export function probesApp(checks: ReadinessChecks): Express {
  const app = bareApp();
  app.get(['/healthz', '/livez'], (_request, response) => {
    response.type('text/plain').send('ok');
  });
  app.get('/readyz', (_request, response) => {
    const results = Object.entries(checks());
    const isReady = results.every(([, result]) => result === true);
    const lines = results.map(([name, result]) => {
      if (result === true) return `[+]${name} ok`;
      return `[-]${name} failed${result === false ? '' : `: ${shortened(result, MAX_REASON_LENGTH)}`}`;
    });
    response
      .status(isReady ? 200 : 503)
      .type('text/plain')
      .send(`${lines.join('\n')}\nreadyz check ${isReady ? 'passed' : 'failed'}\n`);
  });
  return app;
}

/** A rendering takes milliseconds of the only thread. Whoever asks beyond this rate gets the one before. */
const RENDERINGS = { burst: 50, refillMs: 100 };

export function metricsApp({ registry }: Pick<Metrics, 'registry'>, clock: Clock): Express {
  const renderings = new TokenBucket(RENDERINGS, clock.now());
  let latest: Promise<Buffer> | undefined;
  const textOf = (): Promise<Buffer> => {
    const isFresh = renderings.tryTake(clock.now());
    // Answers that are not taken share the buffer; a string would be copied for each.
    if (isFresh || latest === undefined) latest = registry.metrics().then((text) => Buffer.from(text));
    return latest;
  };
  const app = bareApp();
  app.get('/metrics', async (_request, response) => {
    response.type(registry.contentType).send(await textOf());
  });
  return app;
}

function bareApp(): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  return app;
}
