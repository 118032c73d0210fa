import { randomBytes, type webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import { AUTHORITY_LIFETIME_MS, BACKDATED_MS, SERVING_LIFETIME_MS } from './certificate-plan.ts';
import type { Authority } from './certificates.ts';

/** Certificate and key, PEM. */
export interface IssuedPair {
  readonly cert: string;
  readonly key: string;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const AUTHORITY_NAME = 'CN=module-platform webhook CA';

/** A CA for certificates of the webhook server. `now`: ms since 1970. */
export async function makeAuthority(now: number): Promise<IssuedPair> {
  const x509 = await library();
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: AUTHORITY_NAME,
    notBefore: new Date(now - BACKDATED_MS),
    notAfter: new Date(now + AUTHORITY_LIFETIME_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: `${certificate.toString('pem')}\n`, key: await pemOf(keys.privateKey) };
}

/** A certificate of a server with these names. `now`: ms since 1970. */
export async function issueServing(
  { certificate, key }: Authority,
  hosts: readonly string[],
  now: number,
): Promise<IssuedPair> {
  const x509 = await library();
  const keys = await generateKeys();
  const issuer = new x509.X509Certificate(certificate.pem);
  const names = hosts.map((host) => ({ type: isIP(host) === 0 ? ('dns' as const) : ('ip' as const), value: host }));
  const issued = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: 'CN=module-platform webhook',
    issuer: issuer.subject,
    notBefore: new Date(now - BACKDATED_MS),
    notAfter: new Date(now + SERVING_LIFETIME_MS),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: await privateKeyOf(key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(names),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return { cert: `${issued.toString('pem')}\n`, key: await pemOf(keys.privateKey) };
}

/** Needed once in months, by the leader only. */
async function library() {
  await import('reflect-metadata');
  return import('@peculiar/x509');
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

/** Positive, 16 bytes, in hex. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  const base64 = Buffer.from(await crypto.subtle.exportKey('pkcs8', key)).toString('base64');
  return `-----BEGIN PRIVATE KEY-----\n${base64.replace(/(.{64})(?=.)/g, '$1\n')}\n-----END PRIVATE KEY-----\n`;
}

function privateKeyOf(pem: string): Promise<webcrypto.CryptoKey> {
  const der = Buffer.from(pem.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64');
  return crypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
}
