import { ControllerError } from '../../errors.ts';

export interface StatusCause {
  readonly reason?: string;
  readonly field?: string;
  readonly message?: string;
}

/** The parts of a `v1.Status` that are read. */
export interface StatusObject {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly StatusCause[]; readonly retryAfterSeconds?: number };
}

export interface ApiErrorFields {
  readonly status: number;
  readonly reason?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly causes?: readonly StatusCause[] | undefined;
}

/** An answer of the API server with an error status. Holds what is decided by, never the object of the request. */
export class ApiError extends ControllerError {
  readonly status: number;
  /** `reason` of the Status, '' when the answer had none. */
  readonly reason: string;
  readonly retryAfterMs: number | undefined;
  readonly causes: readonly StatusCause[];

  constructor(message: string, fields: ApiErrorFields) {
    super('Kube.RequestFailed', message);
    this.status = fields.status;
    this.reason = fields.reason ?? '';
    this.retryAfterMs = fields.retryAfterMs;
    this.causes = fields.causes ?? [];
  }
}

const hasStatus = (error: unknown, status: number): error is ApiError =>
  error instanceof ApiError && error.status === status;

export const isNotFound = (error: unknown): boolean => hasStatus(error, 404);

/** The name is taken (409 of a create). */
export const isAlreadyExists = (error: unknown): boolean => hasStatus(error, 409) && error.reason === 'AlreadyExists';

/** A precondition does not hold (409): a stale resourceVersion, or on a delete another UID. */
export const isConflict = (error: unknown): boolean => hasStatus(error, 409) && error.reason !== 'AlreadyExists';

/** Server-side apply: another manager owns a field that is applied with another value (409). */
export const isFieldConflict = (error: unknown): boolean =>
  hasStatus(error, 409) && error.causes.some(({ reason }) => reason === 'FieldManagerConflict');

/** The history asked for is no longer kept (410): list again. */
export const isGone = (error: unknown): boolean => hasStatus(error, 410);

/** A patch named the UID of another incarnation of the object. */
export const isInvalidUid = (error: unknown): boolean =>
  hasStatus(error, 422) && error.causes.some((cause) => cause.field === 'metadata.uid');

export const isForbidden = (error: unknown): boolean => hasStatus(error, 403);

export const isUnauthorized = (error: unknown): boolean => hasStatus(error, 401);

export const isTooManyRequests = (error: unknown): boolean => hasStatus(error, 429);

/** No whole answer: a write has possibly happened. */
export const isConnectionFailed = (error: unknown): boolean =>
  error instanceof ControllerError && error.code === 'Kube.ConnectionFailed';

/** It was held back: another replica may lead the Node by now. */
export const isNotPermitted = (error: unknown): boolean =>
  error instanceof ControllerError && error.code === 'Kube.NotPermitted';

/**
 * Whether the very same request may succeed later: no whole answer, 401 (credentials rotate), 408, 429, 5xx.
 * A conflict is not: it needs a new look at the object first.
 */
export function isRetriable(error: unknown): boolean {
  if (error instanceof ApiError) return [401, 408, 429].includes(error.status) || error.status >= 500;
  return isConnectionFailed(error);
}

/** Resolves with undefined where there is no such object (404). */
export async function ifFound<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Resolves also when what `deletion` was about is gone already, or another object has its name by now (404, 409). */
export async function unlessGone(deletion: Promise<void>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}

const MAX_MESSAGE_LENGTH = 500;

interface AnswerHead {
  readonly status: number;
  readonly retryAfter?: string | undefined;
}

/** Reads a `Status` answer; anything else (a proxy's HTML page) becomes an error with the status code alone. */
export function apiErrorOf(request: string, head: AnswerHead, text: string): ApiError {
  return apiErrorOfStatus(request, { ...parseStatus(text), code: head.status }, retryAfterMsOf(head.retryAfter));
}

/** The same for a `Status` object, as an ERROR event of a watch brings it. */
export function apiErrorOfStatus(request: string, status: StatusObject, headerRetryAfterMs?: number): ApiError {
  const code = status.code ?? 500;
  const seconds: unknown = status.details?.retryAfterSeconds;
  return new ApiError(`${request}: ${code} ${(status.message ?? status.reason ?? '').slice(0, MAX_MESSAGE_LENGTH)}`, {
    status: code,
    reason: status.reason,
    retryAfterMs: headerRetryAfterMs ?? (typeof seconds === 'number' ? seconds * 1000 : undefined),
    causes: status.details?.causes,
  });
}

function parseStatus(text: string): StatusObject {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return { message: text.trim() };
  }
}

/** Only the form in seconds; the API server sends no dates. */
function retryAfterMsOf(header: string | undefined): number | undefined {
  return header !== undefined && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : undefined;
}
