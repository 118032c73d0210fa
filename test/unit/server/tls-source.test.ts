import { mkdtemp, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCertificateAuthority, type KeyPair } from '../../../samples/control-plane/certificates.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { HttpServer, probesApp } from '../../../src/server/http-server.ts';
import { TlsFiles } from '../../../src/server/tls-source.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { recordingLogger } from '../tunnels/mqtt/mqtt-world.ts';

const authority = createCertificateAuthority('test-ca');
const FIRST = authority.issue({ commonName: 'first', hosts: ['127.0.0.1'] });
const SECOND = authority.issue({ commonName: 'second', hosts: ['127.0.0.1'] });
const directories: string[] = [];

let directory: string;
let clock: FakeClock;
let metrics: ReturnType<typeof createMetrics>;
let log: ReturnType<typeof recordingLogger>;
let stopping: AbortController;
const running: Promise<unknown>[] = [];

/** As kubelet mounts a Secret: both files change at once, by a symlink. */
async function mount({ certificate, privateKey }: KeyPair): Promise<void> {
  const data = await mkdtemp(join(tmpdir(), 'tls-data-'));
  directories.push(data);
  await Promise.all([writeFile(join(data, 'tls.crt'), certificate), writeFile(join(data, 'tls.key'), privateKey)]);
  await unlink(join(directory, 'data')).catch(() => {});
  await symlink(data, join(directory, 'data'));
}

function load(): Promise<TlsFiles> {
  const { logger } = log;
  const [certPath, keyPath] = [join(directory, 'data/tls.crt'), join(directory, 'data/tls.key')];
  return TlsFiles.load({ certPath, keyPath, name: 'webhooks', clock, logger, metrics });
}

async function reloads(): Promise<Record<string, number>> {
  const { values } = await metrics.certificateReloads.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.result), value]));
}

/** Lets the minute pass, and the files be read. */
async function minute(until: () => Promise<boolean>): Promise<void> {
  clock.advance(60_000);
  while (!(await until())) await settle();
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tls-'));
  directories.push(directory);
  [clock, metrics, log, stopping] = [new FakeClock(), createMetrics(), recordingLogger(), new AbortController()];
  await mount(FIRST);
});

afterEach(async () => {
  stopping.abort();
  await Promise.all(running.splice(0));
});

afterAll(() => Promise.all(directories.map((each) => rm(each, { recursive: true, force: true }))));

describe('the certificate of a server', () => {
  it('is read again each minute', async () => {
    const files = await load();
    const changes: string[] = [];
    files.onChange(({ cert }) => void changes.push(cert));
    running.push(files.run(stopping.signal));
    await mount(SECOND);
    await minute(async () => changes.length > 0);
    expect(changes).toEqual([SECOND.certificate]);
    expect(files.current()).toEqual({ cert: SECOND.certificate, key: SECOND.privateKey });
    expect(await reloads()).toEqual({ ok: 1, error: 0 });
  });

  it('stays when the new key is of another certificate, which is reported once', async () => {
    const files = await load();
    running.push(files.run(stopping.signal));
    await mount({ certificate: SECOND.certificate, privateKey: FIRST.privateKey });
    await minute(async () => (await reloads()).error === 1);
    clock.advance(60_000);
    await settle();
    expect(files.current().cert).toBe(FIRST.certificate);
    expect(
      log.lines.filter(({ msg }) => msg === 'certificate cannot be used: the previous one stays in use'),
    ).toHaveLength(1);
    await mount(SECOND);
    await minute(async () => (await reloads()).ok === 1);
    expect(files.current().cert).toBe(SECOND.certificate);
  });

  it('that is none is an error at the start', async () => {
    await mount({ certificate: 'none', privateKey: 'none' });
    await expect(load()).rejects.toThrow();
  });
});

describe('a server with a certificate', () => {
  it('shows a new one to new connections, and keeps those that are open', async () => {
    const files = await load();
    const app = probesApp(() => ({}));
    const server = new HttpServer({ name: 'webhooks', port: 0, app, tls: files, clock, logger: log.logger, metrics });
    running.push(server.run(stopping.signal), files.run(stopping.signal));
    let line = log.lines.find(({ msg }) => msg === 'listening');
    for (; line === undefined; line = log.lines.find(({ msg }) => msg === 'listening')) await settle();
    const port = Number(line.port);
    const ask = (agent: Agent | false) =>
      new Promise<TLSSocket>((resolve, reject) => {
        const options = { host: '127.0.0.1', port, path: '/healthz', ca: authority.certificate, agent };
        const asked = request(options, (response) => {
          // A kept socket is taken off the response at its end.
          const socket = response.socket as TLSSocket;
          response.resume().once('end', () => resolve(socket));
        });
        asked.once('error', reject);
        asked.end();
      });
    const nameOf = (socket: TLSSocket) => socket.getPeerCertificate().subject.CN;
    const agent = new Agent({ keepAlive: true });
    const open = await ask(agent);
    expect(nameOf(open)).toBe('first');
    await mount(SECOND);
    await minute(async () => (await reloads()).ok === 1);
    const fresh = await ask(false);
    expect([nameOf(fresh), fresh.getProtocol()]).toEqual(['second', 'TLSv1.3']);
    expect(await ask(agent)).toBe(open);
    agent.destroy();
  });
});
