import { ApiError, type StatusObject } from './api-error.ts';

const MAX_MESSAGE_LENGTH = 500;

export interface AnswerHead {
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
