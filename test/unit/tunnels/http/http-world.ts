import { systemClock } from '../../../../src/clock.ts';
import { createMetrics } from '../../../../src/metrics.ts';
import { BodyReader } from '../../../../tunnels/http/body-reader.ts';
import { HttpTunnel, type HttpTunnelOptions } from '../../../../tunnels/http/http-tunnel.ts';
import { RecordingHandler } from '../../../contract/tunnel.ts';
import { recordingLogger } from '../mqtt/mqtt-world.ts';

export const TUNNEL = 'http_tunnel_provider';
export const LOOPBACK = [
  { address: '127.0.0.0', prefixLength: 8 },
  { address: '::1', prefixLength: 128 },
];

/** A reader with room for everything. */
export const wideReader = (): BodyReader => new BodyReader({ maxBytes: Number.POSITIVE_INFINITY, onDropped: () => {} });

export function createTestTunnel(options: Partial<HttpTunnelOptions> = {}) {
  const { lines, logger } = recordingLogger();
  const metrics = createMetrics();
  const tunnel = new HttpTunnel({
    port: 0,
    baseNetworks: LOOPBACK,
    installDeadlineMs: 300_000,
    uninstallDeadlineMs: 60_000,
    userAgent: 'module-controller/1.2.3 (replica-1)',
    clock: systemClock,
    logger,
    metrics,
    ...options,
  });
  const port = (): number => Number(lines.find(({ msg }) => msg === 'listening')?.port);
  return { tunnel, metrics, lines, port };
}

export type TestTunnel = Awaited<ReturnType<typeof runTestTunnel>>;

/** A tunnel that listens; `stop` aborts it and waits for its end. */
export async function runTestTunnel(options: Partial<HttpTunnelOptions> = {}) {
  const handler = new RecordingHandler();
  const abort = new AbortController();
  const created = createTestTunnel(options);
  const running = created.tunnel.run(handler, abort.signal);
  await Promise.race([handler.first('linkUp'), running]);
  const stop = async (): Promise<void> => {
    abort.abort();
    await running;
  };
  return { ...created, handler, running, stop };
}

/** What a base posts. */
export const heart = (identity: string, more: object = {}) => ({
  baseMetadata: { clusterName: 'default', identity, name: 'base', version: '1.0.0' },
  localHostName: 'host-1',
  localIP: '127.0.0.1',
  port: 1238,
  state: 'activated',
  ...more,
});

export interface PostOptions {
  readonly path?: string;
  readonly headers?: Record<string, string>;
}

export function post(port: number, body: unknown, { path = '/heartbeat', headers = {} }: PostOptions = {}) {
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

interface Series {
  get(): Promise<{ values: { value: number; labels: object }[] }>;
}

export async function seriesValue(metric: Series, labels: object): Promise<number | undefined> {
  const { values } = await metric.get();
  return values.find((entry) => JSON.stringify(entry.labels) === JSON.stringify({ tunnel: TUNNEL, ...labels }))?.value;
}
