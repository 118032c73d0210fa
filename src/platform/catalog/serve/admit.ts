import type { Request, Response } from 'express';
import type { TokenVerdict } from '../../../reconcile/token-access.ts';
import { refuse } from '../../../server/refuse.ts';
import type { CatalogAccess, CatalogScope } from './catalog-access.ts';

/** Why a request gets nothing. */
const REFUSALS: Readonly<Record<Exclude<TokenVerdict, 'Allowed'>, readonly [status: number, text: string]>> = {
  Unauthenticated: [401, 'a token of the cluster or of the application is needed: Authorization: Bearer …'],
  Forbidden: [403, 'this token may not read that'],
  Busy: [429, 'too many unknown tokens come from there: try again later'],
  Unknown: [503, 'the API server does not say whether this token may read: try again later'],
};

/** Whether a request may go on. It has its answer if it may not. */
export async function admit(
  request: Request,
  response: Response,
  access: Pick<CatalogAccess, 'of'>,
  scope: CatalogScope,
): Promise<boolean> {
  const verdict = await access.of(request.headers.authorization, request.socket.remoteAddress ?? '', scope);
  if (response.closed) return false;
  if (verdict !== 'Allowed') {
    refuse(response, ...REFUSALS[verdict]);
    return false;
  }
  // Until the answers before it have ended, Node keeps all that is written to it, even when it is destroyed.
  if (response.socket === null) {
    refuse(response, 400, 'must not be pipelined behind another request');
    return false;
  }
  response.set('Cache-Control', 'private, no-cache').set('Vary', 'Authorization');
  return true;
}
