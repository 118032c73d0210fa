import { Pool } from 'undici';
import { LineSplitter } from '../../../src/kube/watch/reflector.ts';

/** As the real controller: an idle connection that was closed costs a handshake. */
const IDLE_TIMEOUT_MS = 60_000;
/** Unasked, the API server ends a watch after half an hour to an hour. */
const WATCH_SECONDS = 86_400;
const MAX_LINE_BYTES = 2 * 1024 * 1024;

export interface Tls {
  readonly ca: string;
  /** Of a client that shows a certificate. */
  readonly cert?: string;
  readonly key?: string;
}

/** Keep-alive connections to the API server, HTTP/1.1. */
export function poolOf(server: string, tls: Tls, connections: number): Pool {
  return new Pool(server, {
    connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    connect: { ...tls, noDelay: true },
  });
}

export interface WatchRequest {
  /** Of the list. */
  readonly path: string;
  /** Where to begin; absent: with all objects of now, as if they were new. */
  readonly resourceVersion?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly onOpen: () => void;
  /** Without its newline. */
  readonly onLine: (line: Buffer) => void;
}

/** Resolves when the API server has ended the watch. Without undici's streams, for which each line would have to wait. */
export function watchLines(
  pool: Pool,
  { path, resourceVersion, headers, onOpen, onLine }: WatchRequest,
): Promise<void> {
  const query = new URLSearchParams({
    watch: 'true',
    // So that the last line is never too old to go on from.
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(WATCH_SECONDS),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  });
  const url = `${path}${path.includes('?') ? '&' : '?'}${query}`;
  return new Promise((resolve, reject) => {
    const splitter = new LineSplitter(MAX_LINE_BYTES, () => reject(new Error(`watch of ${path}: a line is too long`)));
    pool.dispatch(
      { method: 'GET', path: url, headers: { accept: 'application/json', ...headers }, bodyTimeout: 0 },
      {
        onRequestStart: () => {},
        onResponseStart: (_controller, statusCode) => {
          if (statusCode === 200) onOpen();
          else reject(new Error(`watch of ${path}: ${statusCode}`));
        },
        onResponseData: (_controller, chunk) => splitter.push(chunk).forEach(onLine),
        onResponseEnd: () => resolve(),
        onResponseError: (_controller, error) => reject(error),
      },
    );
  });
}

/**
 * As `watchLines`, and goes on behind the last line when the API server has ended the watch, as it does when it sets up
 * a cache again. Rejects when that cannot be.
 */
export async function keepWatching(pool: Pool, request: WatchRequest): Promise<never> {
  let last: Buffer | undefined;
  const onLine = (line: Buffer): void => {
    last = line;
    request.onLine(line);
  };
  for (;;) {
    await watchLines(pool, { ...request, ...(last === undefined ? {} : { resourceVersion: versionOf(last) }), onLine });
  }
}

function versionOf(line: Buffer): string {
  return JSON.parse(line.toString()).object.metadata.resourceVersion;
}
