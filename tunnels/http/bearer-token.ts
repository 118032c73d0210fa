import { createHash, timingSafeEqual } from 'node:crypto';

/** Whether an `authorization` header carries one of the tokens. Takes as long for a nearly right one as for a wrong one. */
export function carriesToken(authorization: string | undefined, tokens: readonly string[]): boolean {
  const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
  const digest = digestOf(given);
  return tokens.filter((token) => timingSafeEqual(digest, digestOf(token))).length > 0;
}

/** Of one length, as the comparison wants it. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
