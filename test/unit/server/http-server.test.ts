import { afterEach, describe, expect, it } from 'vitest';
import { createMetrics } from '../../../src/metrics.ts';
import { HttpServer, metricsApp, probesApp } from '../../../src/server/http-server.ts';
import { recordingLogger } from '../tunnels/mqtt/mqtt-world.ts';

const abort: AbortController[] = [];
const running: Promise<unknown>[] = [];

afterEach(async () => {
  for (const controller of abort.splice(0)) controller.abort();
  await Promise.allSettled(running.splice(0));
});

async function serve(app: ReturnType<typeof probesApp>, port = 0) {
  const { lines, logger } = recordingLogger();
  const controller = new AbortController();
  abort.push(controller);
  const server = new HttpServer({ name: 'probes', port, app, logger });
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
  return { ended, controller, listening };
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
    const { listening } = await serve(metricsApp(metrics));
    const answer = await fetch(`http://127.0.0.1:${await listening()}/metrics`);
    expect(answer.headers.get('content-type')).toContain('text/plain');
    expect(await answer.text()).toContain('module_controller_unroutable_base_addresses_total 1');
  });
});

describe('an HTTP server', () => {
  it('fails when its port is taken', async () => {
    const { listening } = await serve(probesApp(() => ({})));
    const second = await serve(
      probesApp(() => ({})),
      await listening(),
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
