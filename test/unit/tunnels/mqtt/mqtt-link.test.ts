import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { connectAsync } from 'mqtt';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeClock, settle } from '../../../support/fake-clock.ts';
import { FakeMqttBase } from './fake-mqtt-base.ts';
import { createTestTunnel, heart, publishedText, runTestTunnel, type TestTunnel } from './mqtt-world.ts';
import { TestBroker } from './test-broker.ts';

const BASE = { identity: 'base-1', ip: '192.0.2.2', port: 0 };

/** All that our limits of 5 s and more count is this clock; only the network is real. */
describe('the link of a MqttTunnel', () => {
  let broker: TestBroker;
  let clock: FakeClock;
  let world: TestTunnel | undefined;

  beforeEach(async () => {
    broker = await TestBroker.start();
    clock = new FakeClock();
  });

  afterEach(async () => {
    await world?.stop();
    world = undefined;
    expect(clock.pending).toBe(0);
    await broker.stop();
  });

  const start = async (options = {}): Promise<TestTunnel> => {
    world = runTestTunnel(broker.url, { clock, ...options });
    await world.handler.first('linkUp');
    return world;
  };

  /** Lets the tunnel wait out its delay and connect again, until `done`. */
  const reconnectUntil = async (done: Promise<unknown>): Promise<void> => {
    let isDone = false;
    void done.then(() => {
      isDone = true;
    });
    while (!isDone) {
      if (world && !world.tunnel.isUp()) clock.advance(100);
      await settle();
    }
  };

  /** Lets 5 s pass, in which the link is quiet but for a ping, its answer and the heartbeat behind it. */
  const passKeepalive = async ({ handler }: TestTunnel): Promise<void> => {
    const heartbeats = handler.calls.filter(({ on }) => on === 'heartbeat').length;
    const ping = new Promise((resolve) => broker.aedes.once('ping', resolve));
    clock.advance(5_000);
    await ping;
    await broker.publish('koupleless_default/base-1/base/heart', publishedText(heart('base-1')));
    await handler.first('heartbeat', heartbeats + 1);
  };

  it('has counts of all kinds, which begin at 0, and shows whether it is up', async () => {
    const { metrics } = createTestTunnel(broker.url);
    const seriesOf = async ({ registry }: typeof metrics) =>
      (await registry.metrics()).split('\n').filter((line) => line.includes('tunnel="mqtt_tunnel_provider"'));
    expect((await seriesOf(metrics)).length).toBeGreaterThan(20);
    expect((await seriesOf(metrics)).filter((line) => !line.endsWith(' 0'))).toEqual([]);
    const running = await start();
    expect(await seriesOf(running.metrics)).toContain('module_controller_tunnel_up{tunnel="mqtt_tunnel_provider"} 1');
    await running.stop();
    expect(await seriesOf(running.metrics)).toContain('module_controller_tunnel_up{tunnel="mqtt_tunnel_provider"} 0');
  });

  it('comes back with all its subscriptions after the broker died', async () => {
    const { handler, tunnel, metrics } = await start();
    const { port } = broker;
    await broker.stop();
    await handler.first('linkDown');
    expect(tunnel.isUp()).toBe(false);
    expect((await metrics.tunnelUp.get()).values).toMatchObject([{ value: 0 }]);
    await expect(tunnel.queryHealth(BASE)).rejects.toMatchObject({ code: 'Tunnel.NotConnected' });

    broker = await TestBroker.start({ port });
    await reconnectUntil(handler.first('linkUp', 2));
    await broker.publish('koupleless_default/base-1/base/heart', publishedText(heart('base-1')));
    await broker.publish('koupleless_default/base-1/base/queryBaseline', publishedText(heart('base-1').baseMetadata));
    await broker.publish('koupleless_default/base-1/base/simpleBiz', publishedText([]));
    await broker.publish('koupleless_default/base-1/base/biz', publishedText([]));
    await broker.publish('koupleless_default/base-1/base/health', publishedText({ code: 'FAILED' }));
    const response = { code: 'FAILED', message: 'no' };
    await broker.publish(
      'koupleless_default/base-1/base/bizOperation',
      publishedText({ command: 'installBiz', response }),
    );
    await broker.publish('koupleless_default/base-1/base/batchInstallBizResponse', publishedText({ response }));
    await handler.first('operationResult', 2);
    expect(handler.calls.map(({ on }) => on)).toEqual([
      'linkUp',
      'linkDown',
      'linkUp',
      'heartbeat',
      'baselineQuery',
      'moduleList',
      'moduleList',
      'health',
      'operationResult',
      'operationResult',
    ]);
    expect(await tunnel.probeLink(5_000)).toBe(true);
    expect((await metrics.tunnelUp.get()).values).toMatchObject([{ value: 1 }]);
    expect(await metrics.registry.metrics()).toContain(
      'module_controller_tunnel_reconnects_total{tunnel="mqtt_tunnel_provider"} 1',
    );
  });

  it('does not send again what the broker never acknowledged', async () => {
    broker.aedes.authorizePublish = () => {};
    const { handler, tunnel } = await start();
    const { port } = broker;
    const sent = tunnel.installModule(BASE, { name: 'a', version: '1', url: 'file:///a.jar', args: [], envs: {} });
    sent.catch(() => {});
    await broker.stop();
    await expect(sent).rejects.toMatchObject({ code: 'Tunnel.SendFailed' });

    broker = await TestBroker.start({ port });
    const base = await FakeMqttBase.connect(broker.url, 'default', BASE.identity);
    await reconnectUntil(handler.first('linkUp', 2));
    await tunnel.queryHealth(BASE);
    expect(await base.received()).toMatchObject({ command: 'health' });
    await base.close();
  });

  it('gives a command up that is not acknowledged within 10 s', async () => {
    broker.aedes.authorizePublish = () => {};
    const { tunnel, metrics } = await start();
    let isOver = false;
    const sent = tunnel.queryHealth(BASE).finally(() => {
      isOver = true;
    });
    sent.catch(() => {});
    if (world) await passKeepalive(world);
    await clock.advanceAsync(4_999);
    expect(isOver).toBe(false);
    await clock.advanceAsync(1);
    await expect(sent).rejects.toMatchObject({ code: 'Tunnel.SendFailed' });
    expect(await metrics.registry.metrics()).toMatch(
      /module_controller_tunnel_commands_total\{.*command="health",result="failed"\} 1/,
    );
  });

  it('is not up while one subscription is refused, says which, and tries again', async () => {
    const filter = 'koupleless_default/+/base/health';
    broker.aedes.authorizeSubscribe = (_client, subscription, done) =>
      done(null, subscription.topic === filter ? null : subscription);
    world = runTestTunnel(broker.url, { clock });
    await new Promise((resolve) => broker.aedes.once('clientDisconnect', resolve));
    expect(world.tunnel.isUp()).toBe(false);
    expect(world.handler.calls).toEqual([]);

    broker.aedes.authorizeSubscribe = (_client, subscription, done) => done(null, subscription);
    await reconnectUntil(world.handler.first('linkUp'));
    const [complaint] = world.lines.filter(({ msg }) => msg === 'no link to the broker');
    expect(complaint?.err).toMatchObject({ message: `the broker refused to subscribe ${filter}` });
  });

  it('warns at the start of a password that it sends without TLS', async () => {
    await start({ username: 'controller', password: 'of-the-test' });
    expect(world?.lines[0]).toMatchObject({
      level: 40,
      msg: expect.stringContaining('MQTT_PASSWORD is sent without TLS'),
    });
    expect(JSON.stringify(world?.lines)).not.toContain('of-the-test');
    await world?.stop();
    await start();
    expect(JSON.stringify(world?.lines)).not.toContain('MQTT_PASSWORD');
  });

  it.each(['reset', 'end'] as const)('says that a broker may want TLS which answers by %s only', async (how) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => (how === 'reset' ? socket.resetAndDestroy() : socket.end()));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    world = runTestTunnel(`mqtt://127.0.0.1:${port}`, { clock });
    while (world.lines.length === 0) await settle();
    expect(world.lines[0]).toMatchObject({
      msg: 'no link to the broker',
      hint: expect.stringContaining('MQTT_CA_PATH'),
    });
    server.close();
  });

  it('suspects no missing TLS where the broker answers', async () => {
    broker.aedes.authenticate = (_client, _name, _password, done) =>
      done(Object.assign(new Error('no'), { returnCode: 5 as const }), null);
    world = runTestTunnel(broker.url, { clock });
    while (world.lines.length === 0) await settle();
    expect(world.lines[0]).toMatchObject({ msg: 'no link to the broker' });
    expect(world.lines[0]).not.toHaveProperty('hint');
  });

  it('notices 7.5 s after the last sign of life that nobody answers any more', async () => {
    const { handler, tunnel } = await start();
    clock.advance(1_000);
    expect(await tunnel.probeLink(60_000)).toBe(true);
    const rest = broker.freeze();
    const lastProbe = tunnel.probeLink(60_000);
    clock.advance(7_499);
    await settle();
    expect(tunnel.isUp()).toBe(true);
    clock.advance(1);
    await handler.first('linkDown');
    expect(await lastProbe).toBe(false);
    expect(tunnel.downSince()).toBe(1_000);
    expect((await rest()).isReset).toBe(true);
  });

  it('is down since the start while it has never been up, and since the last word of the broker later', async () => {
    const { port } = broker;
    await broker.stop();
    clock.advance(1_000);
    world = runTestTunnel(broker.url, { clock });
    const { tunnel, handler, lines } = world;
    while (lines.length === 0) await settle();
    clock.advance(200);
    expect(tunnel.downSince()).toBe(1_000);

    broker = await TestBroker.start({ port });
    expect(tunnel.upSince()).toBeUndefined();
    await reconnectUntil(handler.first('linkUp'));
    expect(tunnel.downSince()).toBeUndefined();
    expect(tunnel.upSince()).toBe(clock.now());
    clock.advance(700);
    const heardAt = clock.now();
    await broker.publish('koupleless_default/base-1/base/heart', publishedText(heart('base-1')));
    await handler.first('heartbeat');
    clock.advance(800);
    broker.hangUp();
    await handler.first('linkDown');
    expect(tunnel.downSince()).toBe(heardAt);

    // A connection that does not come up changes nothing.
    broker.aedes.authenticate = (_client, _username, _password, done) => done(null, false);
    const known = lines.length;
    while (lines.length <= known) {
      clock.advance(100);
      await settle();
    }
    expect(tunnel.downSince()).toBe(heardAt);
    broker.aedes.authenticate = (_client, _username, _password, done) => done(null, true);
    await reconnectUntil(handler.first('linkUp', 2));
    expect(tunnel.downSince()).toBeUndefined();
  });

  it('stays up when it is abandoned with nothing under way', async () => {
    const { tunnel, handler } = await start();
    expect(tunnel.downSince()).toBeUndefined();
    await tunnel.queryHealth(BASE);
    tunnel.abandon();
    expect(tunnel.isUp()).toBe(true);
    await tunnel.queryHealth(BASE);
    expect(handler.calls.map(({ on }) => on)).toEqual(['linkUp']);
  });

  it('is reset when it is abandoned while a command is not acknowledged, also one that was given up', async () => {
    broker.aedes.authorizePublish = () => {};
    const started = await start();
    const { tunnel, handler } = started;
    const sent = expect(tunnel.queryHealth(BASE)).rejects.toMatchObject({ code: 'Tunnel.SendFailed' });
    await passKeepalive(started);
    await passKeepalive(started);
    await sent;
    const rest = broker.freeze();
    tunnel.abandon();
    expect(tunnel.isUp()).toBe(false);
    await handler.first('linkDown');
    expect((await rest()).isReset).toBe(true);
    await reconnectUntil(handler.first('linkUp', 2));
  });

  it('takes back what the broker has not received when it is abandoned', async () => {
    const { tunnel, handler } = await start();
    const rest = broker.freeze();
    const envs = { KEY: 'x'.repeat(100_000) };
    const installs = Array.from({ length: 100 }, (_, index) =>
      tunnel.installModule(BASE, { name: `biz${index}`, version: '1', url: 'file:///a.jar', args: [], envs }),
    );
    const ends = Promise.allSettled(installs);
    await settle();
    tunnel.abandon();
    for (const end of await ends) expect(end).toMatchObject({ reason: { code: 'Tunnel.SendFailed' } });
    await handler.first('linkDown');
    const { isReset, byteCount } = await rest();
    expect(isReset).toBe(true);
    expect(byteCount).toBeLessThan(10_000_000);
  });

  it('stays up for a quiet ten minutes', async () => {
    const started = await start();
    const { handler, tunnel } = started;
    for (let count = 1; count <= 120; count++) await passKeepalive(started);
    expect(clock.now()).toBe(600_000);
    expect(tunnel.isUp()).toBe(true);
    expect(handler.calls.filter(({ on }) => on === 'linkDown')).toEqual([]);
  });

  it('is not thrown out by whoever knows its name, nor at the next connection by whoever has seen its client id', async () => {
    const ids: string[] = [];
    broker.aedes.on('clientReady', ({ id }) => ids.push(id));
    const { handler } = await start();
    const [first = ''] = ids;
    const thief = async (clientId: string): Promise<void> => {
      const client = await connectAsync(broker.url, { clientId, reconnectPeriod: 0 });
      await client.endAsync(true);
    };
    const name = 'module-controller@@@test';
    for (const clientId of [name, `${name}@@@`]) await thief(clientId);
    expect(handler.calls.filter(({ on }) => on === 'linkDown')).toEqual([]);
    await thief(first);
    await handler.first('linkDown');
    while (ids.filter((id) => id.startsWith(`${name}@@@`) && id !== first && id !== `${name}@@@`).length === 0) {
      clock.advance(1_000);
      await settle();
    }
  });

  it('takes nothing but its own echo, in time, for a proof', async () => {
    const { handler, tunnel } = await start();
    const ids: string[] = [];
    broker.aedes.authorizeForward = (_client, packet) => {
      if (!packet.topic.endsWith('/echo') || String(packet.payload) === 'not an id') return packet;
      ids.push(String(packet.payload));
      return null;
    };
    const probes = [tunnel.probeLink(3_000), tunnel.probeLink(3_000)];
    await broker.publish('koupleless_default/controller/module-controller@@@test/echo', 'not an id');
    await broker.publish('koupleless_default/base-1/base/heart', publishedText(heart('base-1')));
    await handler.first('heartbeat');
    await clock.advanceAsync(3_000);
    expect(await Promise.all(probes)).toEqual([false, false]);
    expect(new Set(ids).size).toBe(2);
  });

  it('gives a broker up that does not answer, and ends while it waits to try again', async () => {
    const connected = new Promise((resolve) => {
      broker.aedes.preConnect = resolve;
    });
    world = runTestTunnel(broker.url, { clock });
    await connected;
    expect(world.lines).toEqual([]);
    clock.advance(10_000);
    while (world.lines.length === 0) await settle();
    expect(world.lines[0]?.err).toMatchObject({ message: 'no connection and subscription within 10000 ms' });
    await world.stop();
    expect(clock.pending).toBe(0);
    expect(world.handler.calls).toEqual([]);
  });

  it('ends at once while the broker has not answered yet', async () => {
    const connected = new Promise((resolve) => {
      broker.aedes.preConnect = resolve;
    });
    world = runTestTunnel(broker.url, { clock });
    await connected;
    await world.stop();
    expect([clock.now(), world.handler.calls]).toEqual([0, []]);
  });

  it('waits for ever longer after connections that did not live', async () => {
    broker.aedes.authenticate = (_client, _username, _password, done) => done(null, false);
    world = runTestTunnel(broker.url, { clock });
    const { lines } = world;
    for (let failures = 1; failures <= 10; failures++) {
      while (lines.length < failures) await settle();
      expect(lines.at(-1)).toMatchObject({ msg: 'no link to the broker', failures });
      expect(lines.at(-1)?.delayMs).toBeLessThanOrEqual(Math.min(5_000, 500 * 2 ** failures));
      expect(clock.nextIn).toBe(lines.at(-1)?.delayMs);
      clock.advance(clock.nextIn ?? 0);
    }
  });

  it('forgets its failures after a connection that lived 10 s, not after a shorter one', async () => {
    const { handler, lines } = await start();
    const failuresAfter = async (upForMs: number, rounds: number): Promise<unknown> => {
      clock.advance(upForMs);
      broker.hangUp();
      await handler.first('linkDown', rounds);
      await reconnectUntil(handler.first('linkUp', rounds + 1));
      return lines.findLast(({ msg }) => msg === 'no link to the broker')?.failures;
    };
    expect(await failuresAfter(9_999, 1)).toBe(1);
    expect(await failuresAfter(0, 2)).toBe(2);
    expect(await failuresAfter(10_000, 3)).toBe(0);
  });

  it('does not come up any more when it is already aborted', async () => {
    const subscribed = new Promise<void>((resolve) => {
      // The SUBACK is written and not yet read.
      broker.aedes.once('subscribe', () => resolve(world?.stop()));
    });
    world = runTestTunnel(broker.url, { clock });
    await subscribed;
    expect(world.handler.calls).toEqual([]);
  });

  it('ends within a second of the abort, though the broker does not hang up', async () => {
    const { tunnel, running, stop } = await start();
    broker.freeze();
    const sent = tunnel.queryHealth(BASE);
    let isOver = false;
    void running.then(() => {
      isOver = true;
    });
    const stopped = stop();
    await expect(sent).rejects.toMatchObject({ code: 'Tunnel.SendFailed' });
    expect(isOver).toBe(false);
    expect(tunnel.isUp()).toBe(false);
    clock.advance(1_000);
    // Only the socket is still to be closed.
    for (let turn = 0; turn < 10; turn++) await settle();
    expect(isOver).toBe(true);
    await stopped;
  });
});
