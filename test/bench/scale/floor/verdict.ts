export type Verb = 'POST' | 'PATCH' | 'DELETE';
export type Verdict = 'done' | 'refused' | 'failed';

/** The status of a request whose connection broke. */
export const NO_ANSWER = 0;

/**
 * What the answer to a write means. What is gone is gone, and what is there need not be created; a conflict of a
 * patch, though, is between two writers, and can be tried again.
 */
export function verdictOf(verb: Verb, status: number): Verdict {
  if (status >= 200 && status < 300) return 'done';
  if (status === 404) return 'refused';
  return status === 409 && verb !== 'PATCH' ? 'refused' : 'failed';
}
