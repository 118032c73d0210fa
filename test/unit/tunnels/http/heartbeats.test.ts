import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { rules } from '../../../../src/config/rules.ts';
import type { InvalidMessage } from '../../../../src/tunnel/tunnel.ts';
import { BodyReader } from '../../../../tunnels/http/body-reader.ts';
import { heartbeatApp } from '../../../../tunnels/http/heartbeat-app.ts';
import { settle } from '../../../support/fake-clock.ts';
import { recordingLogger } from '../mqtt/mqtt-world.ts';
import { httpHeartbeats, RECORDED_IDENTITY } from '../recordings.ts';
import {
  createTestTunnel,
  heart,
  post,
  runTestTunnel,
  seriesValue,
  type TestTunnel,
  TUNNEL,
  wideReader,
} from './http-world.ts';

const KIB = 1024;

describe('heartbeats over HTTP', () => {
  let world: TestTunnel;
  const open = async (options: Parameters<typeof runTestTunnel>[0] = {}): Promise<void> => {
    await world?.stop();
    world = await runTestTunnel(options);
  };
  const heard = () => world.handler.calls.map(({ on }) => on);

  beforeEach(() => open());
  afterEach(() => world.stop());

  it('are answered as a real base expects it', async () => {
    await open({ baseNetworks: undefined });
    for (const body of httpHeartbeats) {
      const answer = await post(world.port(), body);
      expect([answer.status, await answer.text()]).toEqual([200, 'SUCCESS']);
      expect(answer.headers.get('x-powered-by')).toBeNull();
    }
    const [heartbeat] = await world.handler.first('heartbeat', 5);
    expect(heartbeat).toEqual({
      on: 'heartbeat',
      envelope: {
        tunnel: TUNNEL,
        identity: RECORDED_IDENTITY,
        publishedAt: undefined,
        sender: '127.0.0.1',
        source: '127.0.0.1',
      },
      base: {
        identity: RECORDED_IDENTITY,
        name: 'TO_BE_IMPLEMENTED',
        version: '1.0.0',
        clusterName: 'default',
        ip: '192.0.2.2',
        hostName: '192.0.2.2',
        port: 1238,
      },
    });
    expect(await seriesValue(world.metrics.tunnelMessages, { type: 'heart' })).toBe(5);
  });

  it('may say that the base goes down', async () => {
    expect((await post(world.port(), heart('base-1', { state: 'Deactivated' }))).status).toBe(200);
    expect(heard()).toEqual(['linkUp', 'goingDown']);
  });

  it('have a sister, the question for the baseline: nothing is to be installed by it', async () => {
    const answer = await post(world.port(), heart('base-1').baseMetadata, { path: '/queryBaseline' });
    expect([answer.status, await answer.json()]).toEqual([200, []]);
    expect(world.handler.calls.at(-1)).toMatchObject({ on: 'baselineQuery', envelope: { identity: 'base-1' } });
  });

  const withoutPort = heart('base-1', { port: undefined });
  it.each([
    [400, 'Arklet.InvalidMessage', 'payload is not JSON', ''],
    [400, 'Arklet.InvalidMessage', 'payload is not JSON', '{"a":'],
    [400, 'Arklet.InvalidMessage', 'payload is not an object', '[]'],
    [400, 'Arklet.InvalidMessage', 'localIP is missing', 'null'],
    [400, 'Arklet.InvalidMessage', 'localIP is missing', heart('base-1', { localIP: undefined })],
    [400, 'Arklet.InvalidMessage', 'localIP is not an IP address', heart('base-1', { localIP: 'evil.example' })],
    [400, 'Arklet.InvalidMessage', 'baseMetadata.identity is missing', heart('base-1', { baseMetadata: {} })],
    [400, 'Arklet.InvalidMessage', 'baseMetadata is not an object', heart('base-1', { baseMetadata: 7 })],
    [400, 'Arklet.InvalidMessage', 'port is missing or 0', withoutPort],
    [400, 'Arklet.InvalidMessage', 'port is missing or 0', heart('base-1', { port: 0 })],
    [400, 'Arklet.InvalidMessage', 'port is not a port', heart('base-1', { port: 65_536 })],
    [400, 'Arklet.InvalidMessage', 'port is not a port', heart('base-1', { port: 1.5 })],
    [400, 'Arklet.InvalidIdentity', 'identity is not a lower-case RFC 1123 subdomain', heart('Base_1')],
    [403, 'Arklet.AddressRefused', 'localIP 10.0.0.1 is in no network', heart('base-1', { localIP: '10.0.0.1' })],
    [413, 'Arklet.InvalidMessage', 'payload has more than 16384 bytes', heart('x'.repeat(16 * KIB))],
  ])('are refused with %i %s: %s', async (status, code, fault, body) => {
    const answer = await post(world.port(), body);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toEqual({ code, message: expect.stringContaining(fault) });
    expect(heard()).toEqual(['linkUp']);
    expect(await seriesValue(world.metrics.tunnelInvalidMessages, { code })).toBe(1);
  });

  it('are refused without a body', async () => {
    expect(await statusLineOf(world.port(), `${HEADER}\r\n`)).toBe('HTTP/1.1 400 Bad Request');
  });

  it('may have 16 KiB', async () => {
    const text = JSON.stringify(heart('base-1'));
    expect((await post(world.port(), text.padEnd(16 * KIB))).status).toBe(200);
    expect((await post(world.port(), text.padEnd(16 * KIB + 1))).status).toBe(413);
  });

  it.each([
    [16, '200 OK'],
    [17, '413 Payload Too Large'],
  ])('may come in chunks, as long as all together: with %i KiB they get %s', async (kib, status) => {
    const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
    const text = JSON.stringify(heart('base-1')).padEnd(kib * KIB);
    const chunks = [text.slice(0, 7), text.slice(7, 8), text.slice(8)].map(chunk).join('');
    expect(await statusLineOf(world.port(), `${HEADER}transfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`)).toBe(
      `HTTP/1.1 ${status}`,
    );
  });

  it('are counted where their connection breaks in them', async () => {
    const socket = await connected(world.port());
    socket.end(`${HEADER}content-length: 200\r\n\r\n{`);
    await ended(socket);
    const refused = () => seriesValue(world.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' });
    await expect.poll(refused).toBe(1);
  });

  it.each(['169.254.169.254', '127.0.0.1', '::ffff:127.0.0.1', '0.0.0.0'])(
    'cannot aim the controller at %s',
    async (localIP) => {
      await open({ baseNetworks: undefined });
      expect((await post(world.port(), heart('base-1', { localIP }))).status).toBe(403);
      expect(heard()).toEqual(['linkUp']);
    },
  );

  it.each([
    [415, { 'content-type': 'text/plain' }],
    [415, { 'content-type': 'application/x-www-form-urlencoded' }],
    [415, { 'content-encoding': 'gzip' }],
    [200, { 'content-type': 'application/json; charset=utf-8' }],
    [200, { 'content-type': 'Application/JSON' }],
  ])('get %i with %j', async (status, headers) => {
    expect((await post(world.port(), heart('base-1'), { headers: headers as Record<string, string> })).status).toBe(
      status,
    );
  });

  it('are posted, and nothing else is there', async () => {
    const url = `http://127.0.0.1:${world.port()}`;
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
      const answer = await fetch(`${url}/heartbeat`, { method });
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, 'POST']);
    }
    expect((await fetch(`${url}/`)).status).toBe(404);
    expect((await post(world.port(), {}, { path: '/installBiz' })).status).toBe(404);
    expect(await seriesValue(world.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })).toBe(0);
  });

  it('say in the log once a minute why they are refused, by sender or base', async () => {
    for (let round = 0; round < 3; round++) await post(world.port(), '{');
    await post(world.port(), heart('base-1', { localIP: '10.0.0.1' }));
    const refusals = world.lines.filter(({ msg }) => msg === 'message of a base refused');
    expect(refusals.map(({ code, identity, sender }) => [code, identity, sender])).toEqual([
      ['Arklet.InvalidMessage', undefined, '127.0.0.1'],
      ['Arklet.AddressRefused', 'base-1', '127.0.0.1'],
    ]);
  });

  it.each<[string | undefined, string, string?]>([
    ['192.0.2.7', '127.0.0.1'],
    ['192.0.2.7', '192.0.2.7', '127.0.0.1/32'],
    ['198.51.100.9, 192.0.2.7', '192.0.2.7', '127.0.0.1/32'],
    ['192.0.2.7, 10.0.0.1', '192.0.2.7', '127.0.0.1/32,10.0.0.0/8'],
    ['192.0.2.7, 10.0.0.1', '10.0.0.1', '127.0.0.1/32'],
    ['::ffff:192.0.2.7', '192.0.2.7', '127.0.0.1/32'],
    ['2001:DB8:0::7', '2001:db8::7', '127.0.0.1/32'],
    ['192.0.2.7', '127.0.0.1', '10.0.0.0/8'],
    [undefined, '127.0.0.1', '127.0.0.1/32'],
  ])('with X-Forwarded-For %s are from %s where the proxies are %s', async (forwarded, sender, proxies) => {
    const trustedProxies = proxies === undefined ? undefined : rules.networks.parse(proxies);
    await open({ trustedProxies });
    const headers: Record<string, string> = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
    await post(world.port(), heart('base-1'), { headers });
    await post(world.port(), heart('base-1').baseMetadata, { path: '/queryBaseline', headers });
    expect(world.handler.calls.slice(1)).toMatchObject([{ envelope: { sender } }, { envelope: { sender } }]);
  });

  describe('with a token', () => {
    const TOKEN = 'correct-horse-battery';
    const OLD_TOKEN = 'former-horse-battery';
    beforeEach(() => open({ tokens: [TOKEN, OLD_TOKEN] }));

    it.each([
      [200, `Bearer ${TOKEN}`],
      [200, `bearer ${TOKEN}`],
      [200, `Bearer ${OLD_TOKEN}`],
      [401, `Bearer ${TOKEN},${OLD_TOKEN}`],
      [401, undefined],
      [401, `Bearer ${TOKEN}x`],
      [401, `Bearer ${TOKEN.slice(1)}`],
      [401, `Basic ${TOKEN}`],
      [401, TOKEN],
      [401, 'Bearer '],
    ])('get %i for %j', async (status, authorization) => {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      for (const path of ['/heartbeat', '/queryBaseline']) {
        const body = path === '/heartbeat' ? heart('base-1') : heart('base-1').baseMetadata;
        expect((await post(world.port(), body, { path, headers })).status).toBe(status);
      }
      const refused = status === 401 ? 2 : 0;
      expect(await seriesValue(world.metrics.tunnelInvalidMessages, { code: 'Arklet.Unauthenticated' })).toBe(refused);
      expect(heard()).toHaveLength(3 - refused);
      expect(JSON.stringify(world.lines)).not.toContain(TOKEN.slice(1));
    });

    it('say in the log who has sent them without a token, and name no base that nobody has proven', async () => {
      await post(world.port(), heart('base-1'));
      await post(world.port(), heart('base-1'), { headers: { authorization: `Bearer ${TOKEN}x` } });
      const [line] = world.lines.filter(({ msg }) => msg === 'message of a base refused');
      expect(line).toMatchObject({
        code: 'Arklet.Unauthenticated',
        sender: '127.0.0.1',
        reason: 'there is no Authorization header with a token',
      });
      expect(line).not.toHaveProperty('identity');
    });

    it('are refused before their body is read', async () => {
      const socket = connect(world.port(), '127.0.0.1');
      socket.write(
        'POST /heartbeat HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n',
      );
      const [answer] = (await once(socket, 'data')) as [Buffer];
      expect(answer.toString()).toMatch(/^HTTP\/1.1 401 /);
      await ended(socket);
    });
  });

  it('without a token are warned of once, at the start', async () => {
    const warned = () => world.lines.filter(({ msg }) => String(msg).startsWith('HTTP_TUNNEL_TOKEN is not set'));
    await post(world.port(), heart('base-1'));
    expect(warned()).toHaveLength(1);
    await open({ tokens: ['correct-horse-battery'] });
    expect(warned()).toHaveLength(0);
  });

  describe('when there are too many', () => {
    const limit = { burst: 3, refillMs: 3_600_000 };

    it('are refused with 429 before the token and the body are read, and counted', async () => {
      await open({ intake: { known: limit, unknown: limit, allUnknown: limit } });
      for (let index = 0; index < 3; index++) expect((await post(world.port(), 'no JSON')).status).toBe(400);
      const answer = await post(world.port(), heart('base-1'));
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '12']);
      expect(heard()).toEqual(['linkUp']);
      expect(await seriesValue(world.metrics.intakeRefused, { reason: 'Source' })).toBe(1);
    });

    it('are taken from the address of a known base all the same', async () => {
      await open({
        intake: { known: limit, unknown: { ...limit, burst: 1 }, allUnknown: limit },
        senderOf: () => 'Known',
      });
      for (let index = 0; index < 3; index++) expect((await post(world.port(), heart('base-1'))).status).toBe(200);
    });

    it('are refused after the first from the address of an unknown one', async () => {
      await open({
        intake: { known: limit, unknown: { ...limit, burst: 1 }, allUnknown: limit },
        senderOf: () => 'Unknown',
      });
      expect((await post(world.port(), heart('base-1'))).status).toBe(200);
      expect((await post(world.port(), heart('base-2'))).status).toBe(429);
    });

    it('are refused after a question for the baseline: it does not prove where a known base is', async () => {
      await open({
        intake: { known: limit, unknown: { ...limit, burst: 1 }, allUnknown: limit },
        senderOf: () => 'Known',
      });
      const question = await post(world.port(), heart('base-1').baseMetadata, { path: '/queryBaseline' });
      expect([question.status, (await post(world.port(), heart('base-1'))).status]).toEqual([200, 429]);
    });

    it('so are the connections of one source, above 2,000', async () => {
      // No connection may time out before the last is open.
      await open({ limits: { headersTimeoutMs: 120_000, requestTimeoutMs: 120_000 } });
      const sockets: Socket[] = [];
      for (let count = 0; count < 2_000; count++) sockets.push(await connected(world.port()));
      expect(await seriesValue(world.metrics.intakeRefused, { reason: 'Sockets' })).toBe(0);
      await ended(await connected(world.port()));
      expect(await seriesValue(world.metrics.intakeRefused, { reason: 'Sockets' })).toBe(1);
      expect(sockets.filter(({ destroyed }) => destroyed)).toEqual([]);
      for (const socket of sockets) socket.destroy();
    });

    it('and as many of it may come when all have gone', async () => {
      await open({ limits: { maxConnectionsOfSource: 2 } });
      for (let times = 0; times < 3; times++) {
        const first = await connected(world.port());
        first.end();
        await ended(first);
      }
      const both = [await connected(world.port()), await connected(world.port())];
      for (const socket of both) socket.write(`${HEADER}\r\n`);
      await Promise.all(both.map((socket) => once(socket, 'data')));
      expect(await seriesValue(world.metrics.intakeRefused, { reason: 'Sockets' })).toBe(0);
      for (const socket of both) socket.destroy();
    });

    it('which may come again when others have gone', async () => {
      await open({ limits: { maxConnectionsOfSource: 2 } });
      const sockets = await Promise.all(
        Array.from({ length: 3 }, async () => {
          const socket = connect(world.port(), '127.0.0.1');
          await once(socket, 'connect');
          return socket;
        }),
      );
      await Promise.any(sockets.map((socket) => once(socket, 'close')));
      expect(await seriesValue(world.metrics.intakeRefused, { reason: 'Sockets' })).toBe(1);
      for (const socket of sockets) socket.destroy();
      await Promise.all(sockets.filter(({ closed }) => !closed).map((socket) => once(socket, 'close')));
      await expect
        .poll(() =>
          post(world.port(), heart('base-1')).then(
            ({ status }) => status,
            () => 0,
          ),
        )
        .toBe(200);
    });
  });
});

async function connected(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

/** Resolves when the other side has closed it. */
async function ended(socket: Socket): Promise<void> {
  socket.on('error', () => {});
  socket.resume();
  if (!socket.closed) await once(socket, 'close');
}

const HEADER = 'POST /heartbeat HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n';
/** The header of a heartbeat with a field of some length. */
const headerOf = (length: number): string => `${HEADER}x: ${'x'.repeat(length)}\r\ncontent-length: 0\r\n\r\n`;
async function statusLineOf(port: number, request: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(request);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return String(answer).split('\r\n', 1).join();
}

describe('the heartbeat server', () => {
  it.each([
    ['a header', HEADER],
    ['a body', `${HEADER}content-length: 200\r\n\r\n{`],
    ['anything', ''],
  ])('waits for nobody who does not come to the end of %s', async (_what, begin) => {
    // The post beside it has to come to its end within these, on a machine under load too.
    const limits = { headersTimeoutMs: 2_000, requestTimeoutMs: 2_500, checkIntervalMs: 20 };
    const world = await runTestTunnel({ limits });
    const slow = connect(world.port(), '127.0.0.1');
    slow.write(begin);
    const closed = ended(slow);
    expect((await post(world.port(), heart('base-1'))).status).toBe(200);
    await closed;
    expect(world.handler.calls.map(({ on }) => on)).toEqual(['linkUp', 'heartbeat']);
    await world.stop();
  });

  it.each([
    [8_000, 'HTTP/1.1 400 Bad Request'],
    [8_200, 'HTTP/1.1 431 Request Header Fields Too Large'],
  ])('reads a header of 8 KiB: with a field of %i bytes it answers %s', async (length, statusLine) => {
    const world = await runTestTunnel();
    expect(await statusLineOf(world.port(), headerOf(length))).toBe(statusLine);
    await world.stop();
  });

  it('keeps an idle connection for 5 s', async () => {
    const world = await runTestTunnel();
    const answer = await post(world.port(), heart('base-1'));
    expect(answer.headers.get('keep-alive')).toBe('timeout=5');
    await world.stop();
  });

  it('answers 500 when a message cannot be taken through no fault of its sender, and refuses nothing', async () => {
    const { lines, logger } = recordingLogger();
    const refused: InvalidMessage[] = [];
    const app = heartbeatApp({
      tunnel: TUNNEL,
      logger,
      bodies: wideReader(),
      admits: () => true,
      onMessage: () => {
        throw new Error('out of order');
      },
      onInvalid: (invalid) => refused.push(invalid),
    });
    const server = createServer(app).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const answer = await post((server.address() as AddressInfo).port, heart('base-1'));
    expect([answer.status, await answer.json()]).toEqual([500, { message: 'internal error' }]);
    expect(lines).toMatchObject([{ level: 50, err: { message: 'out of order' } }]);
    expect(refused).toEqual([]);
    server.close();
  });

  it('drops the oldest body that does not end when all together take too much memory, and takes others', async () => {
    const dropped: string[] = [];
    const taken: string[] = [];
    const app = heartbeatApp({
      tunnel: TUNNEL,
      logger: recordingLogger().logger,
      bodies: new BodyReader({ maxBytes: 20 * KIB, onDropped: (source) => dropped.push(source) }),
      admits: () => true,
      onMessage: (_type, _sender, body) => void taken.push(String(body)),
      onInvalid: () => {},
    });
    const server = createServer(app).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const begin = `${HEADER}content-length: 16000\r\n\r\n${' '.repeat(12 * KIB)}`;
    const first = statusLineOf(port, begin);
    await settle();
    const second = connect(port, '127.0.0.1');
    second.write(begin);
    expect(await first).toBe('HTTP/1.1 429 Too Many Requests');
    expect(dropped).toEqual(['127.0.0.1']);
    expect((await post(port, '{}')).status).toBe(200);
    expect(taken).toEqual(['{}']);
    second.destroy();
    server.close();
  });

  it('takes no more connections than it can hold', async () => {
    const world = await runTestTunnel({ limits: { maxConnections: 1 } });
    const first = connect(world.port(), '127.0.0.1');
    await once(first, 'connect');
    first.write(HEADER);
    const second = connect(world.port(), '127.0.0.1');
    await ended(second);
    expect(first.destroyed).toBe(false);
    first.destroy();
    await world.stop();
  });

  it('names the variable when its port is taken', async () => {
    const world = await runTestTunnel();
    const second = createTestTunnel({ port: world.port() });
    const running = second.tunnel.run(world.handler, new AbortController().signal);
    await expect(running).rejects.toMatchObject({
      message: `HTTP_TUNNEL_LISTEN_PORT=${world.port()}: cannot listen there`,
      cause: { code: 'EADDRINUSE' },
    });
    expect(second.tunnel.isUp()).toBe(false);
    await world.stop();
  });

  it('ends at once though bases keep their connections', async () => {
    const world = await runTestTunnel();
    await (await post(world.port(), heart('base-1'))).text();
    const idle = connect(world.port(), '127.0.0.1');
    await once(idle, 'connect');
    const closed = ended(idle);
    await world.stop();
    await closed;
    expect(world.handler.calls.map(({ on }) => on)).toEqual(['linkUp', 'heartbeat', 'linkDown']);
    await expect(post(world.port(), heart('base-1'))).rejects.toThrow();
  });

  it('does not even come up when it is stopped before', async () => {
    const { tunnel } = createTestTunnel();
    const { handler, stop } = await runTestTunnel();
    await stop();
    const before = handler.calls.length;
    await tunnel.run(handler, AbortSignal.abort());
    expect(tunnel.isUp()).toBe(false);
    expect(handler.calls).toHaveLength(before);
  });
});

describe('a HttpTunnel that does not run', () => {
  it('has every series at 0', async () => {
    const { metrics } = createTestTunnel();
    const text = await metrics.registry.metrics();
    const series = text.split('\n').filter((line) => line.startsWith('module_controller_tunnel_'));
    expect(series).toHaveLength(7 + 4 + 5 * 3 + 1);
    for (const line of series) expect(line).toMatch(/tunnel="http_tunnel_provider".* 0$/);
  });

  it('is not up, proves nothing and sends nothing', async () => {
    const { tunnel, metrics } = createTestTunnel();
    const base = { identity: 'base-1', ip: '127.0.0.1', port: 1 };
    expect(tunnel.isUp()).toBe(false);
    expect(await tunnel.probeLink(5_000)).toBe(false);
    await expect(tunnel.queryModules(base)).rejects.toMatchObject({ code: 'Tunnel.NotConnected' });
    expect(await seriesValue(metrics.tunnelCommands, { command: 'queryAllBiz', result: 'not_connected' })).toBe(1);
  });
});
