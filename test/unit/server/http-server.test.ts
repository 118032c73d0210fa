import { once } from 'node:events';
import { get } from 'node:http';
import { get as getTls } from 'node:https';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import express from 'express';
import { Gauge } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createCertificateAuthority } from '../../../samples/control-plane/certificates.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { HttpServer, type HttpServerOptions, metricsApp, probesApp } from '../../../src/server/http-server.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { metricOf } from '../../support/metric-text.ts';
import { recordingLogger } from '../tunnels/mqtt/mqtt-world.ts';

const abort: AbortController[] = [];
const running: Promise<unknown>[] = [];

afterEach(async () => {
  for (const controller of abort.splice(0)) controller.abort();
  await Promise.allSettled(running.splice(0));
});

async function serve(app: ReturnType<typeof probesApp>, options: Partial<HttpServerOptions> = {}) {
  const [clock, metrics] = [new FakeClock(), createMetrics()];
  const { lines, logger } = recordingLogger();
  const controller = new AbortController();
  abort.push(controller);
  const server = new HttpServer({ name: 'probes', port: 0, app, clock, logger, metrics, ...options });
  const ended = server.run(controller.signal);
  ended.catch(() => {});
  running.push(ended);
  const listening = async (): Promise<number> => {
    for (;;) {
      const line = lines.find(({ msg }) => msg === 'listening');
      if (line) return line.port as number;
      await new Promise(setImmediate);
    }
  };
  /** Connections that were closed at once, of one source and in all. */
  const refused = async (): Promise<number[]> => {
    const text = await metrics.registry.metrics();
    return ['Source', 'Total'].map((reason) =>
      metricOf(text, 'module_controller_connections_refused_total', (labels) => labels.includes(reason)),
    );
  };
  return { ended, controller, listening, refused, lines, clock };
}

describe('the probes', () => {
  it('say that the process is healthy whether it is ready or not', async () => {
    const { listening } = await serve(probesApp(() => ({ informers: false })));
    const port = await listening();
    for (const path of ['healthz', 'livez']) {
      const answer = await fetch(`http://127.0.0.1:${port}/${path}`);
      expect([answer.status, await answer.text()]).toEqual([200, 'ok']);
    }
  });

  it('are ready when every check is, and name the one that is not', async () => {
    const checks = { informers: true, tunnel: false };
    const { listening } = await serve(probesApp(() => checks));
    const url = `http://127.0.0.1:${await listening()}/readyz`;
    const before = await fetch(url);
    expect(before.status).toBe(503);
    expect(await before.text()).toBe('[+]informers ok\n[-]tunnel failed\nreadyz check failed\n');
    checks.tunnel = true;
    const after = await fetch(url);
    expect(after.status).toBe(200);
    expect(await after.text()).toContain('readyz check passed');
  });
});

describe('the metrics server', () => {
  it('shows every series in the Prometheus format', async () => {
    const metrics = createMetrics();
    metrics.unroutableBases.inc();
    const { listening } = await serve(metricsApp(metrics, new FakeClock()));
    const answer = await fetch(`http://127.0.0.1:${await listening()}/metrics`);
    expect(answer.headers.get('content-type')).toContain('text/plain');
    expect(await answer.text()).toContain('module_controller_unroutable_base_addresses_total 1');
  });

  it('calculates them ten times a second at most after the first fifty, however often they are asked for', async () => {
    const [metrics, clock] = [createMetrics(), new FakeClock()];
    let count = 0;
    const collect = (): void => void count++;
    new Gauge({ name: 'collected', help: 'How often', registers: [metrics.registry], collect });
    const { listening } = await serve(metricsApp(metrics, clock));
    const url = `http://127.0.0.1:${await listening()}/metrics`;
    const ask = async (): Promise<string> => (await fetch(url)).text();
    for (let times = 0; times < 50; times++) await ask();
    const last = await ask();
    metrics.unroutableBases.inc();
    clock.advance(99);
    expect([await ask(), count]).toEqual([last, 50]);
    clock.advance(1);
    expect(await ask()).toContain('module_controller_unroutable_base_addresses_total 1');
    expect(count).toBe(51);
  });
});

describe('an HTTP server', () => {
  it('fails when its port is taken', async () => {
    const { listening } = await serve(probesApp(() => ({})));
    const second = await serve(
      probesApp(() => ({})),
      { port: await listening() },
    );
    await expect(second.ended).rejects.toThrow('EADDRINUSE');
  });

  it('ends at once on abort, also while a client keeps its connection', async () => {
    const { listening, ended, controller } = await serve(probesApp(() => ({})));
    const url = `http://127.0.0.1:${await listening()}/healthz`;
    await (await fetch(url)).text();
    controller.abort();
    await ended;
    await expect(fetch(url)).rejects.toThrow();
  });
});

async function connected(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Resolves with what came when the other side has closed it. */
async function untilClosed(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => (text += chunk));
  if (!socket.closed) await once(socket, 'close');
  return text;
}

/** For tests that open many connections: none may time out before the last is open. */
const PATIENT = { limits: { requestTimeoutMs: 120_000, silenceTimeoutMs: 120_000 } };

const REQUEST = 'GET /healthz HTTP/1.1\r\nhost: x\r\n';

describe('a server that a stranger floods', () => {
  it('leaves the stranger 250 connections, and serves others', async () => {
    const { listening, refused, lines } = await serve(
      probesApp(() => ({})),
      PATIENT,
    );
    const port = await listening();
    const sockets: Socket[] = [];
    for (let count = 0; count < 250; count++) sockets.push(await connected(port));
    expect(await refused()).toEqual([0, 0]);
    for (let count = 0; count < 2; count++) await untilClosed(await connected(port));
    expect(sockets.filter(({ closed }) => closed)).toEqual([]);
    const status = await new Promise((resolve) => {
      get({ port, path: '/healthz', host: '127.0.0.1', localAddress: '127.0.0.2', agent: false }, (response) =>
        resolve(response.resume().statusCode),
      );
    });
    expect([status, await refused()]).toEqual([200, [2, 0]]);
    expect(lines.filter(({ msg }) => msg === 'connections are closed: too many')).toMatchObject([
      { server: 'probes', reason: 'Source', source: '127.0.0.1' },
    ]);
    for (const socket of sockets) socket.destroy();
  });

  it('has 1,000 connections in all', async () => {
    const { listening, refused } = await serve(
      probesApp(() => ({})),
      PATIENT,
    );
    const port = await listening();
    const sockets: Socket[] = [];
    for (let count = 0; count < 1_000; count++) sockets.push(await connected(port, `127.0.0.${1 + (count % 5)}`));
    expect(await refused()).toEqual([0, 0]);
    await untilClosed(await connected(port, '127.0.0.6'));
    expect(await refused()).toEqual([0, 1]);
    for (const socket of sockets) socket.destroy();
  });

  it('counts connections over TLS too, from before the handshake until they are closed', async () => {
    const authority = createCertificateAuthority('test-ca');
    const { certificate, privateKey } = authority.issue({ commonName: 'x', hosts: ['127.0.0.1'] });
    const tls = { current: () => ({ cert: certificate, key: privateKey }), onChange: () => {} };
    const limits = { maxConnectionsOfSource: 2, requestTimeoutMs: 3_000 };
    const { listening, refused } = await serve(
      probesApp(() => ({})),
      { tls, limits },
    );
    const port = await listening();
    const silent = await connected(port);
    const open = connectTls({ port, host: '127.0.0.1', ca: authority.certificate });
    await once(open, 'secureConnect');
    await untilClosed(await connected(port));
    expect(await refused()).toEqual([1, 0]);
    open.destroy();
    // Its handshake takes too long.
    await untilClosed(silent);
    const both = [await connected(port), await connected(port)];
    await untilClosed(await connected(port));
    expect(await refused()).toEqual([2, 0]);
    expect(both.map(({ closed }) => closed)).toEqual([false, false]);
    for (const socket of both) socket.destroy();
  });

  it.each(['http', 'https'])('answers a few more why they are refused, over %s', async (scheme) => {
    const authority = createCertificateAuthority('test-ca');
    const { certificate, privateKey } = authority.issue({ commonName: 'x', hosts: ['127.0.0.1'] });
    const tls = { current: () => ({ cert: certificate, key: privateKey }), onChange: () => {} };
    const limits = { maxConnectionsOfSource: 1, surplusOfSource: 1, requestTimeoutMs: 3_000 };
    const { listening, refused } = await serve(
      probesApp(() => ({})),
      { limits, ...(scheme === 'https' ? { tls } : {}) },
    );
    const port = await listening();
    const options = { port, host: '127.0.0.1', ca: authority.certificate, agent: false };
    const answer = async () => {
      const asked =
        scheme === 'https' ? getTls({ ...options, path: '/healthz' }) : get({ ...options, path: '/healthz' });
      const [response] = await once(asked, 'response');
      let text = '';
      for await (const chunk of response) text += chunk;
      return [response.statusCode, response.headers['retry-after'], response.headers.connection, text];
    };
    expect((await answer())[0]).toBe(200);
    const first = await connected(port);
    const why = 'your address has more than 1 connections: close some of them\n';
    for (let times = 0; times < 3; times++) expect(await answer()).toEqual([429, '10', 'close', why]);
    const surplus = await connected(port);
    await untilClosed(await connected(port));
    expect(await refused()).toEqual([5, 0]);
    for (const socket of [surplus, first]) {
      socket.destroy();
      await untilClosed(socket);
    }
    await vi.waitFor(async () => expect((await answer())[0]).toBe(200));
  });

  it.each([
    ['a header', REQUEST],
    ['a body', `${REQUEST}content-length: 2\r\n\r\n{`],
    ['anything', ''],
  ])('waits for nobody who does not come to the end of %s', async (_what, begin) => {
    const app = express().use(express.json({ type: () => true }));
    const { listening } = await serve(app, { limits: { requestTimeoutMs: 50, checkIntervalMs: 10 } });
    const socket = await connected(await listening());
    socket.write(begin);
    await untilClosed(socket);
  });

  it('waits for nobody who takes nothing of an answer', async () => {
    const closed = Promise.withResolvers<boolean>();
    const app = express().get('/healthz', (_request, response) => {
      response.once('close', () => closed.resolve(response.writableFinished));
      response.send(Buffer.alloc(64 * 1024 * 1024));
    });
    const { listening } = await serve(app, { limits: { silenceTimeoutMs: 100 } });
    const socket = await connected(await listening());
    socket.pause().write(`${REQUEST}\r\n`);
    expect(await closed.promise).toBe(false);
    socket.destroy();
  });

  it('answers nobody who does not wait for the answer before', async () => {
    let count = 0;
    const app = express().get('/healthz', (_request, response) => {
      count++;
      response.send('ok');
    });
    const { listening } = await serve(app);
    const socket = await connected(await listening());
    socket.write(`${REQUEST}\r\n`.repeat(1_000));
    await untilClosed(socket);
    expect(count).toBe(1);
  });

  it('reads a header of 16 KiB', async () => {
    const { listening } = await serve(probesApp(() => ({})));
    const port = await listening();
    const statusOf = async (length: number): Promise<string> => {
      const socket = await connected(port);
      socket.write(`${REQUEST}connection: close\r\nx: ${'x'.repeat(length)}\r\n\r\n`);
      return (await untilClosed(socket)).slice(9, 12);
    };
    expect([await statusOf(16_000), await statusOf(16_400)]).toEqual(['200', '431']);
  });
});
