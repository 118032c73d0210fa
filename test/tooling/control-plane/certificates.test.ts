import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { ApiClient } from '../../../samples/control-plane/api-client.ts';
import { createCertificateAuthority } from '../../../samples/control-plane/certificates.ts';

const authority = createCertificateAuthority('test-ca');
const authorityCertificate = new X509Certificate(authority.certificate);

describe('createCertificateAuthority', () => {
  it('makes a self-signed authority', () => {
    expect(authorityCertificate.ca).toBe(true);
    expect(authorityCertificate.subject).toBe('CN=test-ca');
    expect(authorityCertificate.verify(authorityCertificate.publicKey)).toBe(true);
  });

  it('issues certificates that it has signed, with groups as organizations', () => {
    const issued = new X509Certificate(authority.issue({ commonName: 'alice', organizations: ['a', 'b'] }).certificate);
    expect(issued.subject.split('\n')).toEqual(['O=a', 'O=b', 'CN=alice']);
    expect(issued.ca).toBe(false);
    expect(issued.checkIssued(authorityCertificate)).toBe(true);
    expect(issued.verify(authorityCertificate.publicKey)).toBe(true);
  });

  it('names exactly the hosts of a server', () => {
    const { certificate } = authority.issue({ commonName: 'server', hosts: ['127.0.0.1', 'localhost'] });
    const issued = new X509Certificate(certificate);
    expect(issued.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(issued.checkHost('localhost')).toBe('localhost');
    expect(issued.checkIP('127.0.0.2')).toBeUndefined();
  });

  it.each([
    ['2026-03-01T12:00:00Z', '2027'],
    ['2049-06-01T12:00:00Z', '2050'],
  ])('is valid from %s into %s', (now, year) => {
    const { validFrom, validTo } = new X509Certificate(createCertificateAuthority('ca', Date.parse(now)).certificate);
    expect(Date.parse(validFrom)).toBeLessThan(Date.parse(now));
    expect(new Date(validTo).getUTCFullYear()).toBe(Number(year));
  });

  it('never gives two certificates one serial number', () => {
    const serials = Array.from({ length: 50 }, () => {
      return new X509Certificate(authority.issue({ commonName: 'x' }).certificate).serialNumber;
    });
    expect(new Set(serials).size).toBe(50);
  });
});

describe('a connection between two holders of its certificates', () => {
  it('is verified on both sides, and refused to a stranger', async () => {
    const { certificate: cert, privateKey: key } = authority.issue({ commonName: 'server', hosts: ['127.0.0.1'] });
    const options = { cert, key, ca: authority.certificate, requestCert: true, rejectUnauthorized: true };
    const server = createServer(options, (request, response) => {
      response.end((request.socket as TLSSocket).getPeerCertificate().subject.CN);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const clientOf = (issuer: typeof authority, trusted: typeof authority) =>
      new ApiClient({
        server: url,
        certificateAuthority: trusted.certificate,
        credential: issuer.issue({ commonName: 'alice' }),
      });
    const stranger = createCertificateAuthority('test-ca');
    const clients = [clientOf(authority, authority), clientOf(stranger, authority), clientOf(authority, stranger)];
    try {
      const [known, fromStranger, trustingStranger] = await Promise.allSettled(
        clients.map((client) => client.get('/')),
      );
      expect(known).toEqual({ status: 'fulfilled', value: 'alice' });
      expect(fromStranger?.status).toBe('rejected');
      expect(trustingStranger?.status).toBe('rejected');
    } finally {
      await Promise.all(clients.map((client) => client.close()));
      server.closeAllConnections();
      server.close();
    }
  });
});
