import { ControllerError } from '../../errors.ts';
import { ApiError } from './api-error.ts';
import type { RestRequest } from './rest-lane.ts';
import { JSON_PATCH } from './rest-lane.ts';

const MAX_TRIES = 5;
const MAX_ELAPSED_MS = 30_000;
const DEFAULT_RETRY_AFTER_MS = 1000;
const MIN_RETRY_AFTER_MS = 100;
/** Spreads clients that got the same Retry-After. */
const JITTER = 0.5;
const CUT_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

export interface TriesSoFar {
  /** How often the request was sent. */
  readonly tries: number;
  readonly elapsedMs: number;
  /** How often it was sent again because of a cut connection. */
  readonly resends: number;
}

/** How long to wait before the same request is sent again; undefined = hand the error to the caller. */
export function retryDelayMs(error: unknown, soFar: TriesSoFar, random: () => number): number | undefined {
  const wish = askedDelayMs(error);
  if (wish === undefined || soFar.tries >= MAX_TRIES) return undefined;
  const delay = Math.max(MIN_RETRY_AFTER_MS, wish) * (1 + JITTER * random());
  return soFar.elapsedMs + delay <= MAX_ELAPSED_MS ? delay : undefined;
}

/** 429 and 503 with Retry-After were refused before anything was done, so they are safe for every method. */
function askedDelayMs(error: unknown): number | undefined {
  if (!(error instanceof ApiError)) return undefined;
  if (error.status === 429) return error.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS;
  return error.status === 503 ? error.retryAfterMs : undefined;
}

/**
 * Whether the connection went away under the request, as an idle one does that the server has just closed.
 * A create and a JSON patch are left to their caller. They may have happened: only the caller knows what AlreadyExists
 * means, and the second of two equal JSON patches adds twice, or fails its own test.
 */
export function mayResend(error: unknown, request: RestRequest, soFar: TriesSoFar): boolean {
  const isRepeatable = request.method !== 'POST' && request.contentType !== JSON_PATCH;
  return isRepeatable && !request.isOnce && soFar.resends === 0 && isCutConnection(error);
}

function isCutConnection(error: unknown): boolean {
  if (!(error instanceof ControllerError)) return false;
  const { cause } = error;
  return cause instanceof Error && 'code' in cause && CUT_CODES.has(cause.code);
}
