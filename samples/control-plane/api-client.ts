import { Agent, request } from 'undici';
import type { Credential } from './kubeconfig.ts';

/** An object as the API server shows it. The client is for tests, so fields are read without ceremony. */
// biome-ignore lint/suspicious/noExplicitAny: raw API objects of every kind
export type KubeObject = any;

export interface ApiClientOptions {
  server: string;
  /** PEM. */
  certificateAuthority: string;
  credential: Credential;
}

export interface RequestOptions {
  /** Sent as JSON. Default: no body. */
  body?: unknown;
  /** Default `application/json`. */
  contentType?: string;
  /** Default 60 s. */
  timeoutMs?: number;
}

export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: KubeObject;
}

export interface Watch {
  stop(): void;
  /** Resolves when the watch has ended, whoever ended it; rejects when the connection broke. */
  readonly ended: Promise<void>;
}

/** An answer of the API server that is not a success; `reason` is the word of its Status object, as in "NotFound". */
export class ApiError extends Error {
  readonly statusCode: number;
  readonly reason: string;

  constructor(request: string, statusCode: number, body: string) {
    const status = parseStatus(body);
    super(`${request}: ${statusCode} ${status.reason}: ${status.message}`);
    this.statusCode = statusCode;
    this.reason = status.reason;
  }
}

/** A thin client over raw JSON. A path may carry a query: `/api/v1/pods?labelSelector=app%3Dx`. */
export class ApiClient {
  readonly #server: string;
  readonly #agent: Agent;
  readonly #authorization: Record<string, string>;

  constructor({ server, certificateAuthority: ca, credential }: ApiClientOptions) {
    this.#server = server;
    const hasToken = 'token' in credential;
    const clientCertificate = hasToken ? {} : { cert: credential.certificate, key: credential.privateKey };
    // allowH2 off: a request of a test then has a connection of its own, so a frozen server stalls no other.
    this.#agent = new Agent({ allowH2: false, connect: { ca, ...clientCertificate } });
    this.#authorization = hasToken ? { authorization: `Bearer ${credential.token}` } : {};
  }

  get(path: string): Promise<KubeObject> {
    return this.request('GET', path);
  }

  /** All items, in one request. */
  async list(path: string): Promise<KubeObject[]> {
    return (await this.get(path)).items;
  }

  post(path: string, body: unknown): Promise<KubeObject> {
    return this.request('POST', path, { body });
  }

  put(path: string, body: unknown): Promise<KubeObject> {
    return this.request('PUT', path, { body });
  }

  mergePatch(path: string, body: unknown): Promise<KubeObject> {
    return this.request('PATCH', path, { body, contentType: 'application/merge-patch+json' });
  }

  /** Server-side apply of one object; takes fields over from other owners. */
  applyObject(path: string, body: unknown, fieldManager: string): Promise<KubeObject> {
    const query = new URLSearchParams({ fieldManager, force: 'true' });
    return this.request('PATCH', `${path}?${query}`, { body, contentType: 'application/apply-patch+yaml' });
  }

  /** `options` is a DeleteOptions, for example `{ gracePeriodSeconds: 0 }`. */
  delete(path: string, options?: unknown): Promise<KubeObject> {
    return this.request('DELETE', path, options === undefined ? {} : { body: options });
  }

  /** Resolves with the parsed body, or with the text where it is no JSON (as of /readyz). */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<KubeObject> {
    const { body, contentType = 'application/json', timeoutMs = 60_000 } = options;
    const response = await request(this.#server + path, {
      method,
      dispatcher: this.#agent,
      headers: { ...this.#authorization, accept: 'application/json', 'content-type': contentType },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new ApiError(`${method} ${path}`, response.statusCode, text);
    return response.headers['content-type'] === 'application/json' ? JSON.parse(text) : text;
  }

  /** Resolves when the server has accepted the watch; `path` is that of a list, without `watch=true`. */
  async watch(path: string, onEvent: (event: WatchEvent) => void): Promise<Watch> {
    const aborter = new AbortController();
    const response = await request(`${this.#server}${path}${path.includes('?') ? '&' : '?'}watch=true`, {
      dispatcher: this.#agent,
      headers: { ...this.#authorization, accept: 'application/json' },
      signal: aborter.signal,
      bodyTimeout: 0,
    });
    if (response.statusCode >= 300) {
      throw new ApiError(`WATCH ${path}`, response.statusCode, await response.body.text());
    }
    const ended = readEvents(response.body, onEvent).catch((error: unknown) => {
      if (!aborter.signal.aborted) throw error;
    });
    ended.catch(() => {}); // told to whoever awaits it, which may be nobody
    return { stop: () => aborter.abort(), ended };
  }

  /** Ends every connection, watches too. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

async function readEvents(body: AsyncIterable<Uint8Array>, onEvent: (event: WatchEvent) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onEvent(JSON.parse(line));
  }
}

function parseStatus(body: string): { reason: string; message: string } {
  try {
    const { reason = '', message = body } = JSON.parse(body);
    return { reason, message };
  } catch {
    return { reason: '', message: body.trim() };
  }
}
