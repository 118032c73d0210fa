import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import express, { type Express } from 'express';
import type { Logger } from '../logger.ts';
import type { Runnable } from '../manager.ts';
import type { Metrics } from '../metrics.ts';
import type { TlsSource } from './tls-source.ts';

export interface HttpServerOptions {
  readonly name: string;
  /** 0 = any free port; the log line shows which. */
  readonly port: number;
  readonly app: Express;
  /** Default: plain HTTP. */
  readonly tls?: TlsSource;
  /** For a server that strangers reach. Default: those of Node. */
  readonly limits?: { readonly maxConnections: number; readonly requestTimeoutMs: number };
  readonly logger: Logger;
}

/** Serves an express app on one port, from `run` until it is aborted. */
export class HttpServer implements Runnable {
  readonly name: string;
  readonly #options: HttpServerOptions;

  constructor(options: HttpServerOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Rejects when the port is taken. */
  async run(signal: AbortSignal): Promise<void> {
    const { port, name, logger } = this.#options;
    const server = this.#createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, () => {
        logger.info({ server: name, port: (server.address() as AddressInfo).port }, 'listening');
      });
      signal.addEventListener(
        'abort',
        () => {
          server.close(() => resolve());
          server.closeAllConnections();
        },
        { once: true },
      );
    });
  }

  /** A new certificate counts for new connections; those that are open go on. */
  #createServer() {
    const { app, tls, limits } = this.#options;
    const timeouts = limits && {
      requestTimeout: limits.requestTimeoutMs,
      headersTimeout: limits.requestTimeoutMs,
      handshakeTimeout: limits.requestTimeoutMs,
    };
    if (tls === undefined) return limited(createServer({ ...timeouts }, app), limits);
    const server = createTlsServer({ ...tls.current(), ...timeouts, minVersion: 'TLSv1.2' }, app);
    tls.onChange((pair) => server.setSecureContext({ ...pair, minVersion: 'TLSv1.2' }));
    return limited(server, limits);
  }
}

function limited<S extends Server>(server: S, limits: HttpServerOptions['limits']): S {
  if (limits) server.maxConnections = limits.maxConnections;
  return server;
}

/** What is checked, and whether it is well. */
export type ReadinessChecks = () => Readonly<Record<string, boolean>>;

/** `/healthz`: the process answers. `/readyz`: it can do its work; the body names each check. */
export function probesApp(checks: ReadinessChecks): Express {
  const app = bareApp();
  app.get(['/healthz', '/livez'], (_request, response) => {
    response.type('text/plain').send('ok');
  });
  app.get('/readyz', (_request, response) => {
    const results = Object.entries(checks());
    const isReady = results.every(([, isWell]) => isWell);
    const lines = results.map(([name, isWell]) => `[${isWell ? '+' : '-'}]${name} ${isWell ? 'ok' : 'failed'}`);
    response
      .status(isReady ? 200 : 503)
      .type('text/plain')
      .send(`${lines.join('\n')}\nreadyz check ${isReady ? 'passed' : 'failed'}\n`);
  });
  return app;
}

export function metricsApp(metrics: Metrics): Express {
  const app = bareApp();
  app.get('/metrics', async (_request, response) => {
    response.type(metrics.registry.contentType).send(await metrics.registry.metrics());
  });
  return app;
}

function bareApp(): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  return app;
}
