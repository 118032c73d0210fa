import type { Response } from 'express';

const RETRY_AFTER_SECONDS = '1';

/** Ends a request with a sentence. A client may try again soon after 429 and 503. */
export function refuse(response: Response, status: number, text: string): void {
  if (status === 401) response.set('WWW-Authenticate', 'Bearer');
  if (status === 429 || status === 503) response.set('Retry-After', RETRY_AFTER_SECONDS);
  response.status(status).type('text/plain').send(`${text}\n`);
}
