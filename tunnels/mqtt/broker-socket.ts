import { readFile } from 'node:fs/promises';
import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

/** Files in PEM. They are read at every connect, so that renewed ones are taken. */
export interface BrokerTls {
  /** Default: the certificate authorities that come with Node. */
  readonly caPath?: string | undefined;
  /** The client's own certificate, for brokers that want one; both or neither. */
  readonly certPath?: string | undefined;
  readonly keyPath?: string | undefined;
}

export interface BrokerAddress {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

const PROTOCOLS: Readonly<Record<string, { readonly isTls: boolean; readonly port: number }>> = {
  'mqtt:': { isTls: false, port: 1883 },
  'tcp:': { isTls: false, port: 1883 },
  'mqtts:': { isTls: true, port: 8883 },
  'ssl:': { isTls: true, port: 8883 },
};

/** `mqtt://host:1883` or `mqtts://host:8883`; whatever else the URL holds is not used. Throws TypeError. */
export function brokerAddressOf(url: string): BrokerAddress {
  const { protocol, hostname, port } = new URL(url);
  const known = Object.hasOwn(PROTOCOLS, protocol) ? PROTOCOLS[protocol] : undefined;
  if (!known || hostname === '') throw new TypeError('the broker URL must be mqtt://host:port or mqtts://host:port');
  // `[::1]` is how a URL writes ::1.
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, port: port === '' ? known.port : Number(port), isTls: known.isTls };
}

/** What `BrokerTls` names, as Node takes it. */
export type BrokerCertificates = Pick<ConnectionOptions, 'ca' | 'cert' | 'key'>;

export async function readCertificates(tls: BrokerTls): Promise<BrokerCertificates> {
  const [ca, cert, key] = await Promise.all([readPem(tls.caPath), readPem(tls.certPath), readPem(tls.keyPath)]);
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

async function readPem(path: string | undefined): Promise<Buffer | undefined> {
  return path === undefined ? undefined : readFile(path);
}

/** Starts to connect; what comes of it are the socket's events. The broker's certificate is always verified. */
export function openBrokerSocket(address: BrokerAddress, certificates: BrokerCertificates): Socket {
  const { host, port } = address;
  if (!address.isTls) return connectTcp({ host, port, noDelay: true });
  const socket = connectTls({ host, port, rejectUnauthorized: true, minVersion: 'TLSv1.2', ...certificates });
  return socket.setNoDelay(true);
}
