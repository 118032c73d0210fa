import { setTimeout as delay } from 'node:timers/promises';
import type { Dispatcher, Pool } from 'undici';
import { APPLY_PATCH } from '../../../../src/kube/transport/rest-lane.ts';
import { poolOf } from '../http-pool.ts';
import type { FloorCounters, FloorOptions } from './floor-process.ts';
import { NO_ANSWER, type Verb, verdictOf } from './verdict.ts';

const RETRY_AFTER_MS = 100;
/** Of these, what the API server said is told; the rest is only counted. */
const TOLD_FAILURES = 5;
/** Nobody reads what was written: the API server needs not send all of it back. */
const ACCEPT = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json';

export type ApiOptions = Pick<FloorOptions, 'server' | 'certificateAuthority' | 'token' | 'connections'>;

/**
 * Writes, and takes no more of an answer than its status. One write is in flight on each connection; what is more waits
 * here, where waiting costs the API server nothing.
 */
export class ApiWriter {
  readonly #pool: Pool;
  readonly #counters: Pick<FloorCounters, 'refused' | 'failed'>;
  readonly #headers: Readonly<Record<string, string>>;
  #told = 0;

  /** What is not done is counted there. */
  constructor(options: ApiOptions, counters: Pick<FloorCounters, 'refused' | 'failed'>) {
    this.#pool = poolOf(options.server, { ca: options.certificateAuthority }, options.connections);
    this.#counters = counters;
    this.#headers = { authorization: `Bearer ${options.token}`, accept: ACCEPT, 'user-agent': 'floor' };
  }

  /** All resolve with whether it was done, and never reject. */
  create(path: string, body: string): Promise<boolean> {
    return this.#write('POST', path, body, 'application/json');
  }

  mergePatch(path: string, body: string): Promise<boolean> {
    return this.#write('PATCH', path, body, 'application/merge-patch+json');
  }

  strategicPatch(path: string, body: string): Promise<boolean> {
    return this.#write('PATCH', path, body, 'application/strategic-merge-patch+json');
  }

  /** Server-side apply; `path` has its query. */
  apply(path: string, body: string): Promise<boolean> {
    return this.#write('PATCH', path, body, APPLY_PATCH);
  }

  delete(path: string, body: string): Promise<boolean> {
    return this.#write('DELETE', path, body, 'application/json');
  }

  async #write(method: Verb, path: string, body: string, contentType: string): Promise<boolean> {
    const headers = { ...this.#headers, 'content-type': contentType };
    // reset: undici closes the connection behind a DELETE with a body unless told not to.
    const request = { method, path, body, headers, reset: false };
    for (let isRetry = false; ; isRetry = true) {
      const { status, text } = await exchange(this.#pool, request);
      const verdict = verdictOf(method, status);
      if (verdict === 'done') return true;
      this.#counters[verdict]++;
      if (verdict === 'failed' && this.#told++ < TOLD_FAILURES) console.error(`floor: ${method} ${path}: ${text}`);
      if (verdict === 'refused' || isRetry) return false;
      await delay(RETRY_AFTER_MS);
    }
  }
}

/** undici without its streams, which cost more than the request. */
function exchange(pool: Pool, request: Dispatcher.DispatchOptions): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    let status = NO_ANSWER;
    let text = '';
    pool.dispatch(request, {
      onRequestStart: () => {},
      onResponseStart: (_controller, statusCode) => {
        status = statusCode;
      },
      onResponseData: (_controller, chunk) => {
        if (status >= 300) text += chunk.toString();
      },
      onResponseEnd: () => resolve({ status, text }),
      onResponseError: (_controller, error) => resolve({ status: NO_ANSWER, text: error.message }),
    });
  });
}
