import { Writable } from 'node:stream';
import { pino } from 'pino';
import { systemClock } from '../../../../src/clock.ts';
import { createMetrics } from '../../../../src/metrics.ts';
import { MqttTunnel, type MqttTunnelOptions } from '../../../../tunnels/mqtt/mqtt-tunnel.ts';
import { RecordingHandler } from '../../../contract/tunnel.ts';

/** A logger and the lines it has written. */
export function recordingLogger() {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  return { lines, logger: pino({ level: 'trace' }, stream) };
}

export function createTestTunnel(url: string, options: Partial<MqttTunnelOptions> = {}) {
  const { lines, logger } = recordingLogger();
  const metrics = createMetrics();
  const tunnel = new MqttTunnel({
    url,
    clientId: 'module-controller@@@test',
    env: 'default',
    clock: systemClock,
    logger,
    metrics,
    ...options,
  });
  return { tunnel, metrics, lines };
}

export type TestTunnel = ReturnType<typeof runTestTunnel>;

/** A running tunnel; `stop` aborts it and waits for its end. */
export function runTestTunnel(url: string, options: Partial<MqttTunnelOptions> = {}) {
  const handler = new RecordingHandler();
  const abort = new AbortController();
  const created = createTestTunnel(url, options);
  const running = created.tunnel.run(handler, abort.signal);
  const stop = async (): Promise<void> => {
    abort.abort();
    await running;
  };
  return { ...created, handler, running, stop };
}

export const heart = (identity: string) => ({
  baseMetadata: { clusterName: 'default', identity, name: 'base', version: '1.0.0' },
  localHostName: 'host-1',
  localIP: '192.0.2.2',
  port: 0,
  state: 'activated',
});

/** As a base wraps it. */
export const publishedText = (data: unknown, publishTimestamp = 1_795_246_950_484): string =>
  JSON.stringify({ publishTimestamp, data });
