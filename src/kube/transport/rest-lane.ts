export const MERGE_PATCH = 'application/merge-patch+json';
export const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json';
export const JSON_PATCH = 'application/json-patch+json';
/** Server-side apply; JSON is YAML. */
export const APPLY_PATCH = 'application/apply-patch+yaml';

/**
 * Asked at the last moment before a request leaves, also before each further try of it. Where it says no, the call
 * rejects with ControllerError `Kube.NotPermitted` and nothing was sent. Default: always.
 */
export type Permit = () => boolean;

export interface RestRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** From the root of the API, its parts escaped already. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  /** Media type of `body`. Default `application/json`. */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
  /** From queueing to the whole answer (of a stream: to its headers), for every attempt. Default 10 s. */
  readonly timeoutMs?: number;
  /** Default: always; see `Permit`. */
  readonly permit?: Permit;
  /** One try, whatever the answer. Default: 429, 503 with Retry-After and cut idle connections are tried again. */
  readonly isOnce?: boolean;
  /** The caller needs no more than the status: the API server leaves most of the object out, and nothing is parsed. */
  readonly ignoresAnswer?: boolean;
}

/**
 * Requests that share connections, and with them the wait for a free one. Both calls reject with `ApiError` or
 * with ControllerError `Kube.ConnectionFailed`, also on abort.
 */
export interface RestLane {
  /** Resolves with the parsed JSON answer, or with undefined where it is ignored; the type is a claim of the caller. */
  request<T = unknown>(request: RestRequest): Promise<T>;
  /**
   * Resolves with the body once a good status has come. Retried only after a 401.
   * `signal` must be of this stream alone: aborting it ends the stream with an error.
   */
  open(request: RestRequest & { readonly signal: AbortSignal }): Promise<AsyncIterable<Buffer>>;
}

/** `PATCH /api/v1/nodes/a`: what logs and error messages call a request. */
export function describeRequest(request: RestRequest): string {
  return `${request.method} ${request.path}`;
}
