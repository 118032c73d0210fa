import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { createTunnels } from '../../../tunnels/index.ts';
import { RecordingHandler } from '../../contract/tunnel.ts';
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
    clock: systemClock,
    logger: silentLogger,
    metrics: createMetrics(),
  });

  it('makes no tunnel that is not configured', () => {
    expect(createTunnels(shared())).toEqual([]);
  });

  it('makes a MQTT tunnel that is known to the broker by prefix and client id', async () => {
    const [tunnel] = createTunnels({ ...shared(), mqtt: { url: broker.url, clientPrefix: 'koupleless' } });
    expect(tunnel?.name).toBe('mqtt_tunnel_provider');
    expect(broker.aedes.connectedClients).toBe(0);
    const clientId = new Promise((resolve) => broker.aedes.once('clientReady', ({ id }) => resolve(id)));
    const abort = new AbortController();
    const running = tunnel?.run(new RecordingHandler(), abort.signal);
    expect(await clientId).toBe('koupleless@@@replica-1');
    abort.abort();
    await running;
  });

  it('makes a HTTP tunnel, besides the other', () => {
    const http = {
      port: 0,
      token: undefined,
      baseNetworks: undefined,
      installDeadlineMs: 300_000,
      uninstallDeadlineMs: 60_000,
    };
    const mqtt = { url: broker.url, clientPrefix: 'koupleless' };
    expect(createTunnels({ ...shared(), http }).map(({ name }) => name)).toEqual(['http_tunnel_provider']);
    expect(createTunnels({ ...shared(), http, mqtt }).map(({ name }) => name)).toEqual([
      'mqtt_tunnel_provider',
      'http_tunnel_provider',
    ]);
  });
});
