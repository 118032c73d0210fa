import { createServer, type RequestListener, type Server } from 'node:http';
import { sourceOf } from '../../src/ip-address.ts';
import type { Logger } from '../../src/logger.ts';
import { serve } from '../../src/server/serve.ts';
import { limitSources } from '../../src/server/source-limit.ts';

export interface ListenerLimits {
  /** From the first byte of a request to the end of its header. */
  readonly headersTimeoutMs: number;
  /** To the end of its body. */
  readonly requestTimeoutMs: number;
  /** How often the two are looked at. */
  readonly checkIntervalMs: number;
  /** Further ones are closed at once. */
  readonly maxConnections: number;
  /** The same for one source; bases outside of the cluster may share the address of a gateway. */
  readonly maxConnectionsOfSource: number;
}

/** A heartbeat is one packet; whoever needs seconds for it is ill or means ill. */
const LIMITS: ListenerLimits = {
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  checkIntervalMs: 2_000,
  maxConnections: 10_000,
  maxConnectionsOfSource: 2_000,
};
const MAX_HEADER_BYTES = 8 * 1024;
/** Bases come back after 12 s: their connections are not worth keeping. */
const KEEP_ALIVE_MS = 5_000;

export interface ListenerOptions {
  readonly name: string;
  /** 0 = any free one; the log line shows which. */
  readonly port: number;
  readonly app: RequestListener;
  readonly logger: Logger;
  readonly limits?: Partial<ListenerLimits> | undefined;
  readonly onListening: () => void;
  /** A connection was closed, since its source has too many. */
  readonly onRefused: (source: string) => void;
}

/** Serves `app` until `signal` is aborted; resolves when every connection is closed. Rejects when the port is taken. */
export async function listen(options: ListenerOptions, signal: AbortSignal): Promise<void> {
  try {
    await serve({ ...options, server: createLimited(options) }, signal);
  } catch (error) {
    throw new Error(`HTTP_TUNNEL_LISTEN_PORT=${options.port}: cannot listen there`, { cause: error });
  }
}

function createLimited({ app, limits, onRefused }: ListenerOptions): Server {
  const all = { ...LIMITS, ...limits };
  const { headersTimeoutMs, requestTimeoutMs, checkIntervalMs, maxConnections } = all;
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: checkIntervalMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    app,
  );
  server.maxConnections = maxConnections;
  limitSources(server, { max: all.maxConnectionsOfSource, sourceOf, onRefused });
  return server;
}
