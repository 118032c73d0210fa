import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { BaseAddress } from '../../../../src/tunnel/tunnel.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';
import { httpAnswers, httpHealthAnswer } from '../recordings.ts';
import { FakeHttpBase, type Responder } from './fake-http-base.ts';
import { heart, post, runTestTunnel, seriesValue, type TestTunnel, TUNNEL } from './http-world.ts';
import { CONTINUE, RawBase } from './raw-base.ts';

const BIZ = { name: 'biz1-web-single-host', version: '0.0.1-SNAPSHOT' };
const URL = 'file:///app/biz1/biz1-web-single-host-0.0.1-SNAPSHOT-ark-biz.jar';
const SPEC = { ...BIZ, url: URL, args: [], envs: {} };
const INSTALL_REQUEST = `{"bizName":"${BIZ.name}","bizVersion":"${BIZ.version}","bizUrl":"${URL}"}`;
const UNINSTALL_REQUEST = `{"bizName":"${BIZ.name}","bizVersion":"${BIZ.version}"}`;

const HAS_IPV6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));

const NOT_CONNECTED = { code: 'Tunnel.NotConnected' };
const SEND_FAILED = { code: 'Tunnel.SendFailed' };

/** Resolves when the connection has ended, by RST too. */
const closeOf = ({ socket }: IncomingMessage): Promise<unknown> =>
  new Promise((resolve) => socket.once('close', resolve));

describe('commands over HTTP', () => {
  let clock: FakeClock;
  let world: TestTunnel;
  let fakeBase: FakeHttpBase;
  let base: BaseAddress;

  beforeEach(async () => {
    clock = new FakeClock();
    clock.advance(1_000);
    fakeBase = await FakeHttpBase.start();
    base = { identity: 'base-1', ip: '127.0.0.1', port: fakeBase.port };
    world = await runTestTunnel({ clock });
  });

  afterEach(async () => {
    await world.stop();
    await fakeBase.close();
    expect(clock.pending).toBe(0);
  });

  const heard = () => world.handler.calls.map(({ on }) => on);
  const results = () =>
    world.handler.calls
      .flatMap((call) => (call.on === 'operationResult' ? [call.result] : []))
      .map(({ command, module, outcome, code, state }) =>
        [command, module?.name, outcome, code, state].filter(Boolean).join(' '),
      );

  describe('as a real base answered them', () => {
    const answering = (command: string, answers: readonly string[]): void => {
      const left = [...answers];
      fakeBase.respond(command, ({ response }) => void response.end(left.shift()));
    };

    it('install, once and again', async () => {
      answering('installBiz', httpAnswers(`POST /installBiz ${INSTALL_REQUEST}`));
      await world.tunnel.installModule(base, SPEC);
      await world.tunnel.installModule(base, SPEC);
      expect((await fakeBase.received()).body).toBe(INSTALL_REQUEST);
      expect(results()).toEqual([
        'install biz1-web-single-host done SUCCESS ACTIVATED',
        'install biz1-web-single-host already REPEAT_BIZ',
      ]);
    });

    it('uninstall, once and again', async () => {
      answering('uninstallBiz', httpAnswers(`POST /uninstallBiz ${UNINSTALL_REQUEST}`));
      await world.tunnel.uninstallModule(base, BIZ);
      await world.tunnel.uninstallModule(base, BIZ);
      expect((await fakeBase.received()).body).toBe(UNINSTALL_REQUEST);
      expect(results()).toEqual([
        'uninstall biz1-web-single-host done SUCCESS',
        'uninstall biz1-web-single-host already NOT_FOUND_BIZ',
      ]);
    });

    it('its health where no command may leave, to find out who is there', async () => {
      answering('health', [httpHealthAnswer]);
      const other = await runTestTunnel({ clock, isOurs: () => false });
      await expect(other.tunnel.queryHealth(base)).rejects.toMatchObject({ code: 'Tunnel.NotConnected' });
      await other.tunnel.identify(base);
      expect(other.handler.calls.at(-1)).toMatchObject({
        on: 'health',
        envelope: { identity: 'base-1', answeredBy: '192.0.2.2', place: { ip: base.ip, port: base.port } },
      });
      await other.stop();
    });

    it('list and health, with the time when they were asked for and whose they say they are', async () => {
      answering('queryAllBiz', httpAnswers('POST /queryAllBiz {}'));
      answering('health', [httpHealthAnswer]);
      await world.tunnel.queryModules(base);
      clock.advance(7);
      await world.tunnel.queryModules(base);
      await world.tunnel.queryHealth(base);
      const envelope = (askedAt: number) => ({
        tunnel: TUNNEL,
        identity: 'base-1',
        publishedAt: undefined,
        askedAt,
        place: { ip: base.ip, port: base.port },
        answeredBy: '192.0.2.2',
      });
      expect(world.handler.calls.slice(1)).toEqual([
        { on: 'moduleList', envelope: envelope(1_000), modules: [] },
        { on: 'moduleList', envelope: envelope(1_007), modules: [{ ...BIZ, state: 'ACTIVATED' }] },
        {
          on: 'health',
          envelope: envelope(1_007),
          health: {
            metaspaceUsedBytes: 61_100_704,
            metaspaceCommittedBytes: 61_669_376,
            metaspaceMaxBytes: undefined,
            runTimeSeconds: 18.076,
            javaVersion: '17.0.15',
          },
        },
      ]);
    });
  });

  it.each([
    ['done', { code: 'SUCCESS' }],
    ['done', { code: 'SUCCESS', data: { code: 'SUCCESS', message: 'switched' } }],
    ['failed', { code: 'FAILED', data: { code: 'NOT_FOUND_BIZ' } }],
    ['failed', { code: 'SUCCESS', data: { code: 'FAILED' } }],
    ['failed', { code: 'FAILED' }],
    ['busy', { code: 'FAILED', message: 'a:1 conflict, exist unfinished command(installBiz)' }],
  ])('a switch is %s with %j', async (outcome, answer) => {
    fakeBase.answer('switchBiz', answer);
    await world.tunnel.switchModule(base, BIZ);
    expect(await world.handler.first('operationResult')).toMatchObject([
      { result: { command: 'switch', module: BIZ, outcome, state: undefined } },
    ]);
  });

  it('are plain requests: JSON, no compression, no browser', async () => {
    await world.tunnel.queryHealth(base);
    const { request } = await fakeBase.received();
    expect(request.method).toBe('POST');
    expect(request.headers).toMatchObject({ 'content-type': 'application/json', 'accept-encoding': 'identity' });
  });

  it('say who sends them', async () => {
    await world.tunnel.queryHealth(base);
    const { request } = await fakeBase.received();
    expect(request.headers['user-agent']).toBe('module-controller/1.2.3 (replica-1)');
  });

  it.skipIf(!HAS_IPV6)('go to a base at an IPv6 address', async () => {
    const other = await FakeHttpBase.start('::1');
    await world.tunnel.queryModules({ identity: 'base-6', ip: '::1', port: other.port }).catch(() => {});
    expect((await other.received()).command).toBe('queryAllBiz');
    await other.close();
  });

  it('count by what became of them', async () => {
    fakeBase.answer('queryAllBiz', []);
    await world.tunnel.queryModules(base);
    const { tunnelCommands, tunnelMessages, tunnelUp } = world.metrics;
    expect(await seriesValue(tunnelCommands, { command: 'queryAllBiz', result: 'sent' })).toBe(1);
    expect(await seriesValue(tunnelMessages, { type: 'queryAllBiz' })).toBe(1);
    expect(await seriesValue(tunnelUp, {})).toBe(1);
    await world.stop();
    expect(await seriesValue(tunnelUp, {})).toBe(0);
  });

  it('that nobody is there to take have not left, and the handler hears of it', async () => {
    await fakeBase.close();
    await expect(world.tunnel.installModule(base, SPEC)).rejects.toMatchObject(NOT_CONNECTED);
    expect(world.handler.calls.slice(1)).toEqual([{ on: 'connectionRefused', tunnel: TUNNEL, base }]);
    expect(await seriesValue(world.metrics.tunnelCommands, { command: 'installBiz', result: 'not_connected' })).toBe(1);
    const questions = [world.tunnel.queryHealth(base), world.tunnel.queryHealth(base)];
    for (const question of questions) await expect(question).rejects.toMatchObject(NOT_CONNECTED);
    expect(heard()).toEqual(['linkUp', 'connectionRefused', 'connectionRefused']);
  });

  it('that get no connection within 5 s have not left', async () => {
    const open = await runTestTunnel({ clock, baseNetworks: [{ address: '198.51.100.0', prefixLength: 24 }] });
    const asked = open.tunnel.queryHealth({ ...base, ip: '198.51.100.1' });
    clock.advance(5_000);
    await expect(asked).rejects.toMatchObject(NOT_CONNECTED);
    await settle();
    expect(clock.pending).toBe(0);
    await open.stop();
  });

  it.each<[string, BaseAddress['ip'], number]>([
    ['an address that is not allowed', '10.0.0.1', 1238],
    ['an address that is none', '', 1238],
    ['a name', 'localhost', 1238],
    ['no port', '127.0.0.1', 0],
  ])('never go to %s', async (_what, ip, port) => {
    const address = { identity: 'base-1', ip, port };
    for (const sent of [world.tunnel.queryModules(address), world.tunnel.installModule(address, SPEC)])
      await expect(sent).rejects.toMatchObject(NOT_CONNECTED);
    expect(heard()).toEqual(['linkUp']);
  });

  it.each<[string, Responder]>([
    ['the connection is reset', ({ request }) => request.socket.resetAndDestroy()],
    ['the base hangs up', ({ request }) => request.socket.end()],
    ['the base says what is no HTTP', ({ request }) => request.socket.end('no http\r\n\r\n')],
    [
      'the answer breaks off',
      ({ request }) => request.socket.end('HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{"code":"SUCCESS"}'),
    ],
    ['the base answers 500', ({ response }) => response.writeHead(500).end('{"code":"SUCCESS"}')],
    ['the base answers 404', ({ response }) => response.writeHead(404).end()],
  ])('may have arrived when %s', async (_what, responder) => {
    fakeBase.respond('installBiz', responder);
    await expect(world.tunnel.installModule(base, SPEC)).rejects.toMatchObject(SEND_FAILED);
    expect(heard()).toEqual(['linkUp']);
    expect(await seriesValue(world.metrics.tunnelCommands, { command: 'installBiz', result: 'failed' })).toBe(1);
  });

  it.each<[string, Responder]>([
    ['is no JSON', ({ response }) => response.end('<html>')],
    ['is empty', ({ response }) => response.end()],
    ['does not fit', ({ response }) => response.end('[{"bizName":"biz1"}]')],
    ['says that it failed', ({ response }) => response.end('{"code":"FAILED","data":[]}')],
    ['is longer than 1 MiB', ({ response }) => response.end(JSON.stringify('x'.repeat(2 * 1024 * 1024)))],
  ])('are counted as invalid when the answer %s', async (_what, responder) => {
    fakeBase.respond('queryAllBiz', responder);
    await expect(world.tunnel.queryModules(base)).rejects.toMatchObject(SEND_FAILED);
    expect(await seriesValue(world.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })).toBe(1);
    expect(heard()).toEqual(['linkUp']);
  });

  it('follow no redirect', async () => {
    const other = await FakeHttpBase.start();
    const location = `http://127.0.0.1:${other.port}/queryAllBiz`;
    fakeBase.respond('queryAllBiz', ({ response }) => response.writeHead(302, { location }).end());
    await expect(world.tunnel.queryModules(base)).rejects.toMatchObject(SEND_FAILED);
    expect(other.commands).toEqual([]);
    await other.close();
  });

  it('use no proxy of the environment', async () => {
    const proxy = createServer((_request, response) => response.writeHead(502).end()).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy']) vi.stubEnv(name, url);
    for (const name of ['NO_PROXY', 'no_proxy']) vi.stubEnv(name, '');
    try {
      await world.tunnel.installModule(base, SPEC);
      expect(fakeBase.commands).toEqual(['installBiz']);
    } finally {
      vi.unstubAllEnvs();
      proxy.close();
    }
  });

  it.each([
    ['queryHealth', 10_000],
    ['queryModules', 10_000],
    ['uninstallModule', 70_000],
    ['installModule', 310_000],
    ['switchModule', 70_000],
  ] as const)('%s may take %i ms', async (method, timeoutMs) => {
    for (const command of ['queryAllBiz', 'health', 'installBiz', 'uninstallBiz', 'switchBiz'])
      fakeBase.respond(command, () => {});
    const sent = world.tunnel[method](base, SPEC);
    const failed = expect(sent).rejects.toMatchObject({
      ...SEND_FAILED,
      message: expect.stringContaining('no answer'),
    });
    const { request } = await fakeBase.received();
    const closed = closeOf(request);
    expect([clock.pending, clock.nextIn]).toEqual([1, timeoutMs]);
    clock.advance(timeoutMs - 1);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    await failed;
    await closed;
  });

  describe('with long answers', () => {
    const KIB = 1024;
    const invalid = (tunnel: TestTunnel) =>
      seriesValue(tunnel.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' });

    it('refuse a health above 64 KiB of a base that is not known, as invalid', async () => {
      const strange = await runTestTunnel({ clock, senderOf: () => 'Asked' });
      fakeBase.respond('health', ({ response }) => response.end(httpHealthAnswer.padEnd(64 * KIB)));
      await strange.tunnel.queryHealth(base);
      fakeBase.respond('health', ({ response }) => response.end(httpHealthAnswer.padEnd(64 * KIB + 1)));
      await expect(strange.tunnel.queryHealth(base)).rejects.toMatchObject({
        ...SEND_FAILED,
        message: expect.stringContaining('payload has 65537 bytes, 65536 are allowed'),
      });
      expect(await invalid(strange)).toBe(1);
      await strange.stop();
    });

    it.each([
      ['queryHealth', 'Known'],
      ['identify', 'Known'],
      ['identify', 'Unknown'],
    ] as const)('take a health of 1 MiB by %s of a base that is %s', async (method, sender) => {
      const other = await runTestTunnel({ clock, senderOf: () => sender });
      fakeBase.respond('health', ({ response }) => response.end(httpHealthAnswer.padEnd(KIB * KIB)));
      await other.tunnel[method](base);
      expect(other.handler.calls.at(-1)).toMatchObject({ on: 'health' });
      await other.stop();
    });

    it('that never end are held in 32 MiB of memory, if they are of strangers: the oldest are dropped', async () => {
      fakeBase.respond('health', ({ response }) => response.write(' '.repeat(KIB * KIB)));
      const failed: string[] = [];
      const asked = Array.from({ length: 34 }, (_, index) =>
        world.tunnel.identify({ ...base, identity: `stalls-${index}` }).catch(({ message }) => failed.push(message)),
      );
      await expect.poll(() => failed.length).toBe(3);
      expect(new Set(failed)).toEqual(new Set(['command not answered: too much is under way that has not ended']));
      expect(await seriesValue(world.metrics.intakeRefused, { reason: 'Unfinished' })).toBe(3);
      fakeBase.respond('health', ({ response }) => response.end(httpHealthAnswer));
      await world.tunnel.identify(base);
      expect(failed).toHaveLength(3);
      world.tunnel.abandon();
      await Promise.all(asked);
    });
  });

  it('are asked once though they are asked twice at a time', async () => {
    const arrived = holding('queryAllBiz');
    const first = world.tunnel.queryModules(base);
    const second = world.tunnel.queryModules(base);
    const health = world.tunnel.queryHealth(base).catch(() => {});
    const other = world.tunnel.queryModules({ ...base, identity: 'base-2' });
    const held = [await arrived(), await arrived()];
    await health;
    for (const { response } of held) response.end('[]');
    await Promise.all([first, second, other]);
    expect(fakeBase.commands.toSorted()).toEqual(['health', 'queryAllBiz', 'queryAllBiz']);
    expect(heard().filter((on) => on === 'moduleList')).toHaveLength(2);
  });

  it('are asked anew by a handler that is just hearing an answer', async () => {
    fakeBase.answer('queryAllBiz', []);
    let again: Promise<void> | undefined;
    world.handler.throwOn = ({ on }) => {
      if (on === 'moduleList') again ??= world.tunnel.queryModules(base);
      return undefined;
    };
    await world.tunnel.queryModules(base);
    await again;
    expect(fakeBase.commands).toEqual(['queryAllBiz', 'queryAllBiz']);
  });

  it('wait for one of 8 places at the base, but questions and other bases do not', async () => {
    const arrived = holding('installBiz');
    fakeBase.answer('queryAllBiz', []);
    const specs = Array.from({ length: 9 }, (_, index) => ({ ...SPEC, name: `biz${index}` }));
    const installs = specs.map((spec) => world.tunnel.installModule(base, spec));
    const held = [];
    for (let count = 0; count < 8; count++) held.push(await arrived());
    const refused = expect(world.tunnel.uninstallModule(base, BIZ)).rejects.toMatchObject(NOT_CONNECTED);
    await world.tunnel.queryModules(base);
    await world.tunnel.uninstallModule({ ...base, identity: 'base-2' }, BIZ);
    expect(fakeBase.commands).toEqual([...Array(8).fill('installBiz'), 'queryAllBiz', 'uninstallBiz']);
    held[0]?.response.end('{"code":"SUCCESS"}');
    const ninth = await arrived();
    expect(ninth.body).toContain('"biz8"');
    clock.advance(10_000);
    await refused;
    for (const { response } of [...held.slice(1), ninth]) response.end('{"code":"SUCCESS"}');
    await Promise.all(installs);
    expect(fakeBase.commands).toHaveLength(11);
  });

  it('leave for a base one after the other, so that no two are told of one free event loop', async () => {
    const raw = await RawBase.start();
    const address = { ...base, port: raw.port };
    const installs = ['a', 'b'].map((name) => world.tunnel.installModule(address, { ...SPEC, name }));
    const first = await raw.next();
    await first.head();
    // Whoever connected before is accepted before.
    const fence = connect(raw.port, '127.0.0.1');
    await once(fence, 'connect');
    expect((await raw.next()).socket.remotePort).toBe(fence.localPort);
    fence.destroy();
    for (const name of ['a', 'b']) {
      const connection = name === 'a' ? first : await raw.next();
      await connection.head();
      connection.socket.write(CONTINUE);
      expect(await connection.payload(20)).toContain(`"bizName":"${name}"`);
      connection.socket.end('HTTP/1.1 200 OK\r\n\r\n{"code":"SUCCESS"}');
    }
    await Promise.all(installs);
    await raw.close();
  });

  it('are ended at once when the tunnel is stopped, those that wait too', async () => {
    const arrived = holding('installBiz');
    const installs = Array.from({ length: 9 }, () => world.tunnel.installModule(base, SPEC));
    const ends = installs.map((install) => install.catch((error: unknown) => error));
    const held = [];
    for (let count = 0; count < 8; count++) held.push(await arrived());
    const closed = held.map(({ request }) => closeOf(request));
    await world.stop();
    await Promise.all(closed);
    const failures = await Promise.all(ends);
    expect(failures).toMatchObject([...Array(8).fill(SEND_FAILED), NOT_CONNECTED]);
    expect(heard()).toEqual(['linkUp', 'linkDown']);
  });

  it('share a connection that is closed after 4 s of rest', async () => {
    fakeBase.answer('queryAllBiz', []);
    for (let count = 0; count < 15; count++) {
      await world.tunnel.queryModules(base);
      await settle();
    }
    expect(fakeBase.connectionCount).toBe(1);
    const { request } = await fakeBase.received();
    clock.advance(3_999);
    await settle();
    expect(await fakeBase.openConnections()).toBe(1);
    const closed = closeOf(request);
    clock.advance(1);
    await closed;
    await world.tunnel.queryModules(base);
    expect(fakeBase.connectionCount).toBe(2);
  });

  it('prove the link by their answer', async () => {
    fakeBase.answer('queryAllBiz', []);
    const probe = world.tunnel.probeLink(5_000);
    await world.tunnel.queryModules(base);
    expect(await probe).toBe(true);
  });

  it('cannot prove the link when nobody speaks in time, or by what is refused', async () => {
    const probe = world.tunnel.probeLink(5_000);
    expect((await post(world.port(), heart('base-1', { localIP: '10.0.0.1' }))).status).toBe(403);
    clock.advance(5_000);
    expect(await probe).toBe(false);
  });

  it('have not proven it when the tunnel is stopped', async () => {
    const probe = world.tunnel.probeLink(5_000);
    await world.stop();
    expect(await probe).toBe(false);
  });

  it('never show what a module gets by its environment', async () => {
    fakeBase.respond('installBiz', ({ request }) => request.socket.resetAndDestroy());
    const install = world.tunnel.installModule(base, { ...SPEC, envs: { PASSWORD: 'hunter2' } });
    const error = await install.catch((thrown: Error) => thrown);
    expect(JSON.stringify([String(error), Object(error).cause, Object(Object(error).cause).config])).not.toContain(
      'hunter2',
    );
  });

  /** Lets commands hang; each call gives the next one that has come. */
  function holding(command: string) {
    const held: Parameters<Responder>[0][] = [];
    const waiting: ((delivery: Parameters<Responder>[0]) => void)[] = [];
    fakeBase.respond(command, (delivery) => {
      const wake = waiting.shift();
      if (wake) wake(delivery);
      else held.push(delivery);
    });
    return async (): Promise<Parameters<Responder>[0]> =>
      held.shift() ?? new Promise((resolve) => waiting.push(resolve));
  }
});
