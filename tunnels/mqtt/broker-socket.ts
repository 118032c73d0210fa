import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, createSecureContext } from 'node:tls';
import type { Clock } from '../../src/clock.ts';

const CONNECT_TIMEOUT_MS = 10_000;

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

export interface BrokerSocket {
  readonly stream: Socket;
  /** Ends it at once, with RST: the operating system throws away what it has not sent yet. */
  reset(): void;
}

export interface BrokerSocketOptions {
  readonly address: BrokerAddress;
  /** Not used without TLS. */
  readonly certificates: BrokerCertificates;
  readonly clock: Clock;
}

/**
 * Resolves when there is a TCP connection; the handshake of TLS, in which the broker's certificate is always verified,
 * is still to come. Rejects when there is none in time, or when `signal` is aborted.
 */
export async function openBrokerSocket(options: BrokerSocketOptions, signal: AbortSignal): Promise<BrokerSocket> {
  const { address, certificates } = options;
  const { host } = address;
  // Throws when they are none, while there is no connection yet that could be left behind.
  const secureContext = address.isTls ? createSecureContext({ minVersion: 'TLSv1.2', ...certificates }) : undefined;
  const tcp = await connected(options, signal);
  const reset = (): void => void tcp.resetAndDestroy();
  if (!secureContext) return { stream: tcp, reset };
  // Around a plain socket, since only that can be reset. One that still connects may change its handle.
  return { stream: connectTls({ socket: tcp, host, rejectUnauthorized: true, secureContext }), reset };
}

async function connected({ address, clock }: BrokerSocketOptions, signal: AbortSignal): Promise<Socket> {
  const { host, port } = address;
  const tcp = connectTcp({ host, port, noDelay: true });
  const reason = `no connection within ${CONNECT_TIMEOUT_MS} ms`;
  const timer = clock.setTimer(() => tcp.destroy(new Error(reason)), CONNECT_TIMEOUT_MS);
  try {
    await once(tcp, 'connect', { signal });
    return tcp;
  } catch (error) {
    tcp.destroy();
    throw error;
  } finally {
    timer.cancel();
  }
}

const MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 5_000;

/** Full jitter: anything from 0 to a bound that doubles with every failure, so that many clients come back spread. */
export function reconnectDelayMs(failures: number, random: number): number {
  return Math.round(random * Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** failures));
}
