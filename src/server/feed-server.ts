import type { RequestListener } from 'node:http';
import express, { type Express } from 'express';
import type { Clock } from '../clock.ts';
import type { Logger } from '../logger.ts';
import type { Runnable } from '../manager.ts';
import type { Metrics } from '../metrics.ts';
import { HttpServer } from './http-server.ts';
import { refuse } from './refuse.ts';
import { TlsFiles } from './tls-source.ts';

const NAME = 'feed';
/** Connections of one source: all balancers that may watch can be behind one gateway. The next ones learn why. */
const LIMITS = { maxConnectionsOfSource: 500, surplusOfSource: 50 };

/** What answers a path, with all below it. */
export interface ServedApp {
  /** Such as `/v1/exportservices`. */
  readonly path: string;
  readonly listener: RequestListener;
  /** Whether it may answer; while it may not, the answer is 503. */
  readonly isReady: () => boolean;
}

export interface FeedServerOptions {
  readonly port: number;
  readonly certPath: string;
  readonly keyPath: string;
  readonly served: readonly ServedApp[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'connectionsRefused' | 'certificateReloads'>;
}

/**
 * The port with TLS for clients outside of the cluster. Each listener checks who asks, and refuses what is pipelined.
 * Rejects when the certificate cannot be used.
 */
export async function feedServer({ served, ...options }: FeedServerOptions): Promise<Runnable[]> {
  const tls = await TlsFiles.load({ ...options, name: NAME });
  const app = servedApp(served);
  return [tls, new HttpServer({ ...options, name: NAME, app, tls, limits: LIMITS, answersPipelined: true })];
}

/** Gives each request to what answers its path. */
export function servedApp(served: readonly ServedApp[]): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use((request, response) => {
    const found = served.find(({ path }) => isBelow(request.path, path));
    if (found === undefined) refuse(response, 404, `only ${served.map(({ path }) => path).join(', ')} is served`);
    else if (found.isReady()) found.listener(request, response);
    else refuse(response, 503, 'the caches of this replica are not current: ask another one');
  });
  return app;
}

function isBelow(path: string, root: string): boolean {
  const [own, other] = [path.toLowerCase(), root.toLowerCase()];
  return own === other || own.startsWith(`${other}/`);
}
