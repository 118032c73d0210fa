import { createHash, type Hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Dispatcher, EnvHttpProxyAgent, request } from 'undici';
import type { Sum } from './archives.ts';

const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export interface FetchTimeouts {
  /** For the name and the connection; a machine without a network must not wait long. Default 5,000 ms. */
  connectMs?: number;
  /** Without a byte from the other side. Default 30,000 ms. */
  silenceMs?: number;
}

export interface FetchOptions {
  url: string;
  /** Absent, or complete and with the right sum. */
  path: string;
  sum: Sum;
  /** Called for each piece. `totalBytes` is undefined when the server does not tell. */
  onBytes?: (receivedBytes: number, totalBytes: number | undefined) => void;
  timeouts?: FetchTimeouts;
}

/**
 * Downloads a file and checks its sum on the way. Proxies are taken from HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
 * Any error names the URL that was asked for.
 */
export async function fetchFile(options: FetchOptions): Promise<void> {
  const { url, path, sum, timeouts: { connectMs = 5_000, silenceMs = 30_000 } = {} } = options;
  const dispatcher = new EnvHttpProxyAgent({
    connect: { timeout: connectMs },
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
  });
  try {
    const hash = createHash(sum.algorithm);
    await save(await open(new URL(url), dispatcher), hash, options);
    const got = hash.digest('hex');
    if (got !== sum.hex) throw new Error(`its ${sum.algorithm} should be ${sum.hex}, but is ${got}`);
  } catch (error) {
    await rm(path, { force: true });
    throw new Error(`${url}: ${reasonOf(error)}`, { cause: error });
  } finally {
    await dispatcher.destroy();
  }
}

async function open(start: URL, dispatcher: Dispatcher): Promise<Dispatcher.ResponseData> {
  let url = start;
  for (let redirects = 0; ; redirects++) {
    const response = await request(url, { dispatcher, headers: { 'user-agent': 'module-controller' } });
    if (response.statusCode === 200) return response;
    await response.body.dump();
    if (!REDIRECTS.has(response.statusCode)) throw new Error(`answered ${response.statusCode}`);
    if (redirects === MAX_REDIRECTS) throw new Error(`more than ${MAX_REDIRECTS} redirects`);
    url = redirectTarget({ start, from: url, location: response.headers.location });
  }
}

/** Where to go on; throws when that would leave HTTPS, which only a mirror without it may do. */
export function redirectTarget({ start, from, location }: { start: URL; from: URL; location: unknown }): URL {
  const target = typeof location === 'string' ? URL.parse(location, from.href) : null;
  if (target === null) throw new Error('redirects to nowhere');
  const isSafe = target.protocol === 'https:' || (target.protocol === 'http:' && start.protocol === 'http:');
  if (!isSafe) throw new Error(`redirects from https to ${target.protocol}//${target.host}, which is refused`);
  return target;
}

async function save(response: Dispatcher.ResponseData, hash: Hash, { path, onBytes }: FetchOptions): Promise<void> {
  const length = Number(response.headers['content-length']);
  const totalBytes = Number.isSafeInteger(length) && length > 0 ? length : undefined;
  let receivedBytes = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      receivedBytes += chunk.length;
      onBytes?.(receivedBytes, totalBytes);
      done(null, chunk);
    },
  });
  await pipeline(response.body, meter, createWriteStream(path, { flags: 'wx' }));
}

/** A refused connection to a name with several addresses is an AggregateError without a message. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}
