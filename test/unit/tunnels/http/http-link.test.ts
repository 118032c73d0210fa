import { describe, expect, it } from 'vitest';
import { RecordingHandler } from '../../../contract/tunnel.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { createTestTunnel } from './http-world.ts';

describe('the link of a HttpTunnel', () => {
  it('is down from the start until it listens, and from its end on', async () => {
    const clock = new FakeClock();
    const { tunnel } = createTestTunnel({ clock });
    const handler = new RecordingHandler();
    const abort = new AbortController();
    clock.advance(1_000);
    expect(tunnel.downSince()).toBeUndefined();
    const running = tunnel.run(handler, abort.signal);
    expect(tunnel.downSince()).toBe(1_000);
    expect(tunnel.upSince()).toBeUndefined();
    await handler.first('linkUp');
    expect(tunnel.downSince()).toBeUndefined();
    expect(tunnel.upSince()).toBe(1_000);
    clock.advance(1_000);
    abort.abort();
    await running;
    expect(tunnel.downSince()).toBe(2_000);
    expect(tunnel.upSince()).toBeUndefined();
  });

  it('has counts of all kinds, which begin at 0, and shows whether it is up', async () => {
    const { tunnel, metrics } = createTestTunnel();
    const series = async () =>
      (await metrics.registry.metrics()).split('\n').filter((line) => line.includes('tunnel="http_tunnel_provider"'));
    expect((await series()).length).toBeGreaterThan(20);
    expect((await series()).filter((line) => !line.endsWith(' 0'))).toEqual([]);
    const handler = new RecordingHandler();
    const abort = new AbortController();
    const running = tunnel.run(handler, abort.signal);
    await handler.first('linkUp');
    expect(await series()).toContain('module_controller_tunnel_up{tunnel="http_tunnel_provider"} 1');
    abort.abort();
    await running;
    expect(await series()).toContain('module_controller_tunnel_up{tunnel="http_tunnel_provider"} 0');
  });

  it('stays up when it is abandoned', async () => {
    const { tunnel } = createTestTunnel();
    const handler = new RecordingHandler();
    const abort = new AbortController();
    const running = tunnel.run(handler, abort.signal);
    await handler.first('linkUp');
    tunnel.abandon();
    expect(tunnel.isUp()).toBe(true);
    abort.abort();
    await running;
    expect(handler.calls.map(({ on }) => on)).toEqual(['linkUp', 'linkDown']);
  });
});
