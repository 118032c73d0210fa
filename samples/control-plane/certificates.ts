import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { isIPv4 } from 'node:net';
import * as der from './der.ts';

/** Both in PEM. The key is ECDSA P-256 as SEC 1, the form that Kubernetes also takes for service account keys. */
export interface KeyPair {
  certificate: string;
  privateKey: string;
}

export interface CertificateRequest {
  commonName: string;
  /** What Kubernetes reads as groups. Default: none. */
  organizations?: string[];
  /** Host names and IPv4 addresses of a server. Default: none, which makes a certificate for clients only. */
  hosts?: string[];
}

export interface CertificateAuthority extends KeyPair {
  issue(request: CertificateRequest): KeyPair;
}

const OID = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;

const CLOCK_SKEW_MS = 5 * 60_000;
const LIFETIME_MS = 365 * 24 * 60 * 60_000;
const SIGNATURE_ALGORITHM = der.sequence(der.objectIdentifier(OID.ecdsaWithSha256));
/** Bits of RFC 5280, 4.2.1.3: digitalSignature; the CA also has keyCertSign and cRLSign. */
const LEAF_KEY_USAGE = der.bitString(Buffer.from([0b1000_0000]), 7);
const CA_KEY_USAGE = der.bitString(Buffer.from([0b1000_0110]), 1);

interface Issuer {
  name: Buffer;
  privateKey: KeyObject;
  keyIdentifier: Buffer;
}

/** A new authority, in memory only. `now` is the time in ms that the certificates are dated by. */
export function createCertificateAuthority(commonName: string, now = Date.now()): CertificateAuthority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issuer = {
    name: encodeName({ commonName }),
    privateKey: keys.privateKey,
    keyIdentifier: keyIdentifierOf(keys.publicKey),
  };
  const extensions = [
    extension(OID.basicConstraints, der.sequence(der.booleanTrue()), 'critical'),
    extension(OID.keyUsage, CA_KEY_USAGE, 'critical'),
  ];
  const certificate = signCertificate({ issuer, subject: issuer.name, publicKey: keys.publicKey, extensions, now });
  return openCertificateAuthority(commonName, { certificate, privateKey: privateKeyPem(keys.privateKey) }, now);
}

/** The authority that `createCertificateAuthority` made under that name, here or in another process. */
export function openCertificateAuthority(commonName: string, pair: KeyPair, now = Date.now()): CertificateAuthority {
  const privateKey = createPrivateKey(pair.privateKey);
  const keyIdentifier = keyIdentifierOf(createPublicKey(privateKey));
  const issuer = { name: encodeName({ commonName }), privateKey, keyIdentifier };
  return { ...pair, issue: (request) => issueCertificate(issuer, request, now) };
}

function issueCertificate(issuer: Issuer, request: CertificateRequest, now: number): KeyPair {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const hosts = request.hosts ?? [];
  const usages = hosts.length > 0 ? [OID.serverAuth, OID.clientAuth] : [OID.clientAuth];
  const extensions = [
    extension(OID.keyUsage, LEAF_KEY_USAGE, 'critical'),
    extension(OID.extendedKeyUsage, der.sequence(...usages.map(der.objectIdentifier))),
  ];
  if (hosts.length > 0) extensions.push(extension(OID.subjectAltName, der.sequence(...hosts.map(encodeHost))));
  const subject = encodeName(request);
  return {
    certificate: signCertificate({ issuer, subject, publicKey: keys.publicKey, extensions, now }),
    privateKey: privateKeyPem(keys.privateKey),
  };
}

interface CertificateParts {
  issuer: Issuer;
  subject: Buffer;
  publicKey: KeyObject;
  extensions: Buffer[];
  now: number;
}

function signCertificate({ issuer, subject, publicKey, extensions, now }: CertificateParts): string {
  const keyIdentifiers = [
    extension(OID.subjectKeyIdentifier, der.octetString(keyIdentifierOf(publicKey))),
    extension(OID.authorityKeyIdentifier, der.sequence(der.implicitTag(0, issuer.keyIdentifier))),
  ];
  const toBeSigned = der.sequence(
    der.explicitTag(0, der.integer(Buffer.from([2]))), // version 3
    der.integer(serialNumber()),
    SIGNATURE_ALGORITHM,
    issuer.name,
    der.sequence(der.time(new Date(now - CLOCK_SKEW_MS)), der.time(new Date(now + LIFETIME_MS))),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der.explicitTag(3, der.sequence(...extensions, ...keyIdentifiers)),
  );
  const signature = sign('sha256', toBeSigned, issuer.privateKey);
  return pem('CERTIFICATE', der.sequence(toBeSigned, SIGNATURE_ALGORITHM, der.bitString(signature)));
}

function extension(oid: string, value: Buffer, critical?: 'critical'): Buffer {
  const flag = critical === undefined ? [] : [der.booleanTrue()];
  return der.sequence(der.objectIdentifier(oid), ...flag, der.octetString(value));
}

function encodeName({ commonName, organizations = [] }: CertificateRequest): Buffer {
  const attribute = (oid: string, value: string) =>
    der.set(der.sequence(der.objectIdentifier(oid), der.utf8String(value)));
  return der.sequence(
    ...organizations.map((organization) => attribute(OID.organization, organization)),
    attribute(OID.commonName, commonName),
  );
}

function encodeHost(host: string): Buffer {
  if (isIPv4(host)) return der.implicitTag(7, Buffer.from(host.split('.').map(Number)));
  return der.implicitTag(2, Buffer.from(host, 'ascii'));
}

/** Random, positive, and with a first byte that makes the DER minimal. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes.writeUInt8((bytes.readUInt8(0) & 0x3f) | 0x40, 0);
  return bytes;
}

function keyIdentifierOf(publicKey: KeyObject): Buffer {
  return createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
}

const privateKeyPem = (key: KeyObject): string => key.export({ type: 'sec1', format: 'pem' }).toString();

function pem(label: string, content: Buffer): string {
  const lines = content.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
