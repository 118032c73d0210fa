import { createHash, timingSafeEqual } from 'node:crypto';

/** Whether an `authorization` header carries the token. Takes as long for a nearly right one as for a wrong one. */
export function carriesToken(authorization: string | undefined, token: string): boolean {
  const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
  return timingSafeEqual(digestOf(given), digestOf(token));
}

/** Of one length, as the comparison wants it. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
