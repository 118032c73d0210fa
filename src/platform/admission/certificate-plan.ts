import { type Authority, type CertificateFacts, isIssuedBy, type Serving } from './certificates.ts';

const DAY_MS = 24 * 60 * 60_000;

/** A certificate begins this much earlier than it is made, for API servers whose clocks are behind. */
export const BACKDATED_MS = 60 * 60_000;
export const AUTHORITY_LIFETIME_MS = 730 * DAY_MS;
export const SERVING_LIFETIME_MS = 90 * DAY_MS;
/** A CA is replaced before a certificate that it signs could outlive it. */
const AUTHORITY_RENEWED_BEFORE_MS = SERVING_LIFETIME_MS + 30 * DAY_MS;
const SERVING_RENEWED_BEFORE_MS = 30 * DAY_MS;
/** Every API server knows a new CA after this long; until then the former certificate is served. */
const TRUST_SPREADS_WITHIN_MS = 30_000;
/** The same where the former certificate is lost, and only running processes still serve it. */
const TRUST_SPREADS_FAST_WITHIN_MS = 2_000;
const MAX_AUTHORITIES = 4;

export interface CertificateState {
  /** The wall clock, ms since 1970. */
  readonly now: number;
  /** Under which the server is reached. */
  readonly hosts: readonly string[];
  /** The CAs that the API server has to trust, newest first. The first one signs. */
  readonly bundle: readonly CertificateFacts[];
  /** Authority of the first CA of the bundle; undefined when its key is not there. */
  readonly authority: Authority | undefined;
  readonly serving: Serving | undefined;
  /** What each webhook configuration trusts. */
  readonly trusted: readonly (readonly CertificateFacts[])[];
}

/**
 * The next step; each brings a state that the next one is decided from, whoever decides. A new CA is trusted before a
 * certificate of it is served, and a former one until all that it has signed has ended: no process can serve a
 * certificate then that is not trusted.
 */
export type CertificateStep =
  /** A new CA signs from now on; `formerly` stays trusted. */
  | { readonly kind: 'MakeAuthority'; readonly formerly: readonly CertificateFacts[] }
  | { readonly kind: 'Forget'; readonly bundle: readonly CertificateFacts[] }
  /** Every webhook configuration gets the bundle. */
  | { readonly kind: 'Trust' }
  | { readonly kind: 'Issue'; readonly authority: Authority }
  | { readonly kind: 'Wait'; readonly ms: number };

export function nextStep(state: CertificateState): CertificateStep {
  const { now, authority, bundle, serving, trusted } = state;
  if (authority === undefined || authority.certificate.notAfter - now <= AUTHORITY_RENEWED_BEFORE_MS) {
    return { kind: 'MakeAuthority', formerly: stillTrusted(now, now, [...bundle, ...trusted.flat()]) };
  }
  const [newest, ...older] = bundle;
  const madeAt = (newest?.notBefore ?? now) + BACKDATED_MS;
  const needed = stillTrusted(now, madeAt, older);
  if (needed.length < older.length) return { kind: 'Forget', bundle: [authority.certificate, ...needed] };
  if (trusted.some((certificates) => !isSame(certificates, bundle))) return { kind: 'Trust' };
  const renewAt = servingRenewal(state, authority);
  if (renewAt > now) return { kind: 'Wait', ms: Math.min(renewAt, authorityRenewal(authority)) - now };
  const isOfThis = serving !== undefined && isIssuedBy(serving.certificate, authority.certificate);
  const spreadMs = isOfThis || older.length === 0 ? 0 : spreadOf(serving, now);
  const leftMs = Math.min(spreadMs, madeAt + spreadMs - now);
  return leftMs > 0 ? { kind: 'Wait', ms: leftMs } : { kind: 'Issue', authority };
}

/** Former CAs that may have signed a certificate which has not ended: none was signed after `madeAt`. */
function stillTrusted(now: number, madeAt: number, former: readonly CertificateFacts[]): CertificateFacts[] {
  const distinct = [...new Map(former.map((certificate) => [certificate.pem, certificate])).values()];
  return distinct
    .filter(({ notAfter }) => notAfter > now && now < madeAt + SERVING_LIFETIME_MS)
    .sort((a, b) => b.notBefore - a.notBefore)
    .slice(0, MAX_AUTHORITIES - 1);
}

function isSame(certificates: readonly CertificateFacts[], others: readonly CertificateFacts[]): boolean {
  const pems = new Set(others.map(({ pem }) => pem));
  return certificates.length === others.length && certificates.every(({ pem }) => pems.has(pem));
}

/** When the certificate has to be another one, ms since 1970; 0 = now. */
function servingRenewal({ serving, hosts }: CertificateState, { certificate }: Authority): number {
  if (serving === undefined || !isIssuedBy(serving.certificate, certificate)) return 0;
  if (hosts.some((host) => !serving.hosts.includes(host))) return 0;
  return serving.certificate.notAfter - SERVING_RENEWED_BEFORE_MS;
}

function authorityRenewal({ certificate }: Authority): number {
  return certificate.notAfter - AUTHORITY_RENEWED_BEFORE_MS;
}

function spreadOf(serving: Serving | undefined, now: number): number {
  const isServed = serving !== undefined && serving.certificate.notAfter > now;
  return isServed ? TRUST_SPREADS_WITHIN_MS : TRUST_SPREADS_FAST_WITHIN_MS;
}
