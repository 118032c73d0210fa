import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { createTunnels } from '../../../tunnels/index.ts';
import { RecordingHandler } from '../../contract/tunnel.ts';
import { FakeHttpBase } from './http/fake-http-base.ts';
import { LOOPBACK } from './http/http-world.ts';
import { TestBroker } from './mqtt/test-broker.ts';

describe('createTunnels', () => {
  let broker: TestBroker;
  beforeEach(async () => {
    broker = await TestBroker.start();
  });
  afterEach(() => broker.stop());

  const shared = () => ({
    env: 'dev',
    clientId: 'replica-1',
    version: '1.2.3',
    clock: systemClock,
    logger: silentLogger,
    metrics: createMetrics(),
  });

  it('makes no tunnel that is not configured', async () => {
    expect(await createTunnels(shared())).toEqual([]);
  });

  it('makes a MQTT tunnel that is known to the broker by prefix and client id', async () => {
    const [tunnel] = await createTunnels({ ...shared(), mqtt: { url: broker.url, clientPrefix: 'koupleless' } });
    expect(tunnel?.name).toBe('mqtt_tunnel_provider');
    expect(broker.aedes.connectedClients).toBe(0);
    const clientId = new Promise((resolve) => broker.aedes.once('clientReady', ({ id }) => resolve(id)));
    const abort = new AbortController();
    const running = tunnel?.run(new RecordingHandler(), abort.signal);
    expect(await clientId).toMatch(/^koupleless@@@replica-1@@@[0-9a-f]{24}$/);
    abort.abort();
    await running;
  });

  it('tells both tunnels whom they may command, and the bases over HTTP who does', async () => {
    const base = await FakeHttpBase.start();
    const http = { port: 0, baseNetworks: LOOPBACK, installDeadlineMs: 300_000, uninstallDeadlineMs: 60_000 };
    const mqtt = { url: broker.url, clientPrefix: 'koupleless' };
    const isOurs = (identity: string): boolean => identity === 'base-1';
    const abort = new AbortController();
    const running: Promise<void>[] = [];
    for (const tunnel of await createTunnels({ ...shared(), http, mqtt, isOurs })) {
      const handler = new RecordingHandler();
      running.push(tunnel.run(handler, abort.signal));
      await handler.first('linkUp');
      const address = { ip: '127.0.0.1', port: base.port };
      await tunnel.uninstallModule({ ...address, identity: 'base-1' }, { name: 'biz1', version: '1' });
      const refused = tunnel.queryHealth({ ...address, identity: 'base-2' });
      await expect(refused).rejects.toThrow('command not sent: another replica may lead the base');
    }
    expect((await base.received()).request.headers['user-agent']).toBe('module-controller/1.2.3 (replica-1)');
    expect(base.commands).toEqual(['uninstallBiz']);
    abort.abort();
    await Promise.all(running);
    await base.close();
  });

  it('makes a HTTP tunnel, besides the other', async () => {
    const http = {
      port: 0,
      tokens: undefined,
      baseNetworks: undefined,
      installDeadlineMs: 300_000,
      uninstallDeadlineMs: 60_000,
    };
    const mqtt = { url: broker.url, clientPrefix: 'koupleless' };
    expect((await createTunnels({ ...shared(), http })).map(({ name }) => name)).toEqual(['http_tunnel_provider']);
    expect((await createTunnels({ ...shared(), http, mqtt })).map(({ name }) => name)).toEqual([
      'mqtt_tunnel_provider',
      'http_tunnel_provider',
    ]);
  });
});
