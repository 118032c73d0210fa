import { createPrivateKey, X509Certificate } from 'node:crypto';

/** A certificate, as far as decisions need it; times in ms since 1970. */
export interface CertificateFacts {
  readonly pem: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

/** A CA that can sign. */
export interface Authority {
  readonly certificate: CertificateFacts;
  /** PKCS #8, PEM. */
  readonly key: string;
}

/** What a server identifies itself with. */
export interface Serving {
  readonly certificate: CertificateFacts;
  readonly key: string;
  readonly hosts: readonly string[];
}

const PEM = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** The certificates in a text, newest first; what cannot be read is none. */
export function certificatesOf(text: string): CertificateFacts[] {
  const found = [...text.matchAll(PEM)].flatMap(([pem]) => {
    const parsed = parse(pem);
    return parsed ? [factsOf(`${pem}\n`, parsed)] : [];
  });
  return found.sort((a, b) => b.notBefore - a.notBefore);
}

/** Undefined when the key is not that of the certificate. */
export function authorityOf(certificate: CertificateFacts | undefined, key: string): Authority | undefined {
  return certificate !== undefined && isPair(certificate.pem, key) ? { certificate, key } : undefined;
}

/** Undefined when either is none, or they do not belong together. */
export function servingOf(pem: string, key: string): Serving | undefined {
  const parsed = parse(pem);
  if (parsed === undefined || !isPair(pem, key)) return undefined;
  return { certificate: factsOf(pem, parsed), key, hosts: hostsOf(parsed) };
}

/** Whether `issuer` has signed the certificate. */
export function isIssuedBy({ pem }: CertificateFacts, issuer: CertificateFacts): boolean {
  const [certificate, authority] = [parse(pem), parse(issuer.pem)];
  return certificate !== undefined && authority !== undefined && certificate.verify(authority.publicKey);
}

function factsOf(pem: string, { validFromDate, validToDate }: X509Certificate): CertificateFacts {
  return { pem, notBefore: validFromDate.getTime(), notAfter: validToDate.getTime() };
}

/** `DNS:a.example, IP Address:127.0.0.1` */
function hostsOf({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName.split(', ').map((entry) => entry.replace(/^(DNS|IP Address):/, ''));
}

function isPair(pem: string, key: string): boolean {
  try {
    return parse(pem)?.checkPrivateKey(createPrivateKey(key)) === true;
  } catch {
    return false;
  }
}

function parse(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
