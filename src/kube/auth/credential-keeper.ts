import type { Clock } from '../../clock.ts';
import type { CredentialPlugin, PluginCredential } from './cluster-access.ts';

/** A credential is looked at once a minute, so it is replaced 30 to 90 s before it expires. */
const RENEW_BEFORE_MS = 90_000;

export interface DatedCredential {
  readonly credential: PluginCredential;
  /** Wall-clock time, milliseconds since 1970; undefined = for ever. */
  readonly expiresAtMs: number | undefined;
}

export interface KeeperOptions {
  readonly clock: Clock;
  /** Used while it is valid. Default: `fetch` is asked at once. */
  readonly initial?: DatedCredential | undefined;
  readonly fetch: () => Promise<DatedCredential>;
}

/** A plugin that fetches a credential when the last one was rejected or is about to expire, and else gives it again. */
export function keepCredential({ clock, initial, fetch }: KeeperOptions): CredentialPlugin {
  let kept = initial;
  let marginMs = 0;
  return async (isRejected) => {
    const nowMs = clock.wallTime().getTime();
    const isGood = kept !== undefined && (kept.expiresAtMs === undefined || kept.expiresAtMs - nowMs > marginMs);
    // At the start a credential that is nearly out of date is better than none from an issuer that is down.
    marginMs = RENEW_BEFORE_MS;
    if (kept === undefined || isRejected || !isGood) kept = await fetch();
    return kept.credential;
  };
}

/** What a header cannot hold would fail each request with a message that quotes it. */
export function bearerOf(token: string): string {
  const trimmed = token.trim();
  if (!/^[\x21-\x7e]+$/.test(trimmed)) throw new Error('the token contains characters that are not allowed');
  return `Bearer ${trimmed}`;
}
