import { afterEach, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../support/fake-clock.ts';
import { command, type HttpRig, isListening, RawConnection, receiptOf, startHttpRig } from './http-rig.ts';
import { BIZ } from './rig.ts';

let rig: HttpRig;
afterEach(() => rig.stop());

/** Makes the base post something that comes after all it posted before. */
async function fence(): Promise<void> {
  const count = rig.controller.posts.filter((post) => post.path === '/fence').length;
  rig.base.publishRaw('fence', '{}');
  await rig.controller.received('/fence', count + 1);
}

/** Resolves when no post is under way any more: each would be given up 10 s later. */
async function settled(clock: FakeClock): Promise<void> {
  // The next heartbeat of each base.
  await vi.waitFor(() => expect(clock.pending).toBe(rig.fleet.bases.length), { interval: 5 });
}

function pathsOf(): string[] {
  return rig.controller.posts.map((post) => post.path).filter((path) => path !== '/fence');
}

describe('a base with listenDelayMs', () => {
  it('names its port in heartbeats and refuses connections until it has bound it, also after a restart', async () => {
    const clock = new FakeClock();
    rig = await startHttpRig({ clock, listenDelayMs: 300 });
    for (const count of [1, 2]) {
      const beats = await rig.controller.received('/heartbeat', count);
      const { port } = rig.base;
      expect(JSON.parse(beats.at(-1)?.text ?? '')).toMatchObject({ port });
      expect(await isListening(rig.base.port)).toBe(false);
      await clock.advanceAsync(300);
      await vi.waitFor(async () => expect(await isListening(rig.base.port)).toBe(true), { interval: 5 });
      expect(rig.base.port).toBe(port);
      if (count === 1) await rig.base.restart();
    }
  });
});

describe('heartbeats over HTTP', () => {
  it('come at the announcement and then every 12 s, on one connection', async () => {
    const clock = new FakeClock();
    rig = await startHttpRig({ clock, announce: false });
    await fence();
    expect(pathsOf()).toEqual([]);
    rig.fleet.announce();
    await settled(clock);
    clock.advance(11_999);
    await fence();
    expect(pathsOf()).toEqual(['/heartbeat']);
    await settled(clock);
    clock.advance(1);
    await settled(clock);
    clock.advance(12_000);
    const beats = await rig.controller.received('/heartbeat', 3);
    expect(new Set(beats.map((beat) => beat.remotePort)).size).toBe(1);
  });

  it('of bases that announce at one moment spread out later', async () => {
    const clock = new FakeClock();
    rig = await startHttpRig({ clock, bases: [{}, {}, {}] });
    await settled(clock);
    const secondBeats = [11_880, 60, 60];
    for (const [index, delay] of secondBeats.entries()) {
      clock.advance(delay);
      await settled(clock);
      expect(pathsOf()).toHaveLength(4 + index);
    }
  });

  it('go on after a controller that was away, cut the connection, or did not answer', async () => {
    const clock = new FakeClock();
    rig = await startHttpRig({ clock });
    await settled(clock);
    rig.controller.cutConnections();
    clock.advance(12_000);
    await settled(clock);
    expect(pathsOf()).toHaveLength(2);
    await rig.controller.stop();
    clock.advance(12_000);
    await settled(clock);
    expect(pathsOf()).toHaveLength(2);
    await rig.controller.start();
    rig.controller.isDeaf = true;
    clock.advance(12_000);
    await rig.controller.received('/heartbeat', 3);
    rig.controller.isDeaf = false;
    clock.advance(12_000);
    await rig.controller.received('/heartbeat', 4);
  });

  it('ask for the baseline only when told to, once in a process, and install it', async () => {
    rig = await startHttpRig({ bases: [{}, { identity: 'asks', queriesBaseline: true }], announce: false });
    rig.controller.baseline = [BIZ];
    rig.fleet.announce();
    await rig.fleet.history.waitFor({ base: 'asks', command: 'batchInstallBiz', outcome: 'executed' });
    await fence();
    expect(pathsOf().toSorted()).toEqual(['/heartbeat', '/heartbeat', '/queryBaseline']);
    const metadata = { clusterName: 'default', identity: 'asks', name: 'base', version: '1.0.0' };
    const [query] = await rig.controller.received('/queryBaseline', 1);
    expect(JSON.parse(query?.text ?? '')).toEqual(metadata);
    expect(rig.fleet.base('asks').modules()).toMatchObject([{ bizName: 'biz1', state: 'ACTIVATED' }]);
    expect(rig.base.modules()).toEqual([]);
  });

  it('may be any bytes', async () => {
    rig = await startHttpRig();
    rig.base.publishRaw('heart', 'not json');
    rig.base.setPayloadIdentity('base-9');
    rig.base.beat();
    const beats = await rig.controller.received('/heartbeat', 3);
    expect(beats[1]?.text).toBe('not json');
    expect(JSON.parse(beats[2]?.text ?? '').baseMetadata.identity).toBe('base-9');
    expect(() => rig.base.announceModules()).toThrow('announceModules: over HTTP a base tells its modules only when');
  });
});

describe('silence over HTTP', () => {
  it('takes commands and neither runs nor answers them, on connections that stay', async () => {
    const clock = new FakeClock();
    rig = await startHttpRig({ clock });
    await rig.controller.received('/heartbeat', 1);
    rig.base.silence();
    const connection = new RawConnection(rig.base);
    connection.post('installBiz', JSON.stringify(BIZ));
    await rig.fleet.history.waitFor({ outcome: 'ignored:silent' });
    clock.advance(60_000);
    expect([connection.isOpen, connection.received]).toEqual([true, '']);
    expect(rig.base.modules()).toEqual([]);
    rig.base.speak();
    await rig.controller.received('/heartbeat', 2);
    expect((await command(rig.base, 'queryAllBiz', {})).data).toEqual([]);
    expect(connection.received).toBe('');
    expect(rig.fleet.history.records()[0]).toMatchObject({ command: 'installBiz', bizName: 'biz1', tunnel: 'http' });
    connection.end();
  });

  it('swallows the answer of an install in work, which goes on', async () => {
    rig = await startHttpRig({ installMs: 20 });
    rig.fleet.history.subscribe((record) => record.outcome === 'in work' && rig.base.silence());
    const connection = new RawConnection(rig.base);
    connection.post('installBiz', JSON.stringify(BIZ));
    await rig.fleet.history.waitFor({ outcome: 'executed' });
    rig.base.speak();
    await fence();
    expect([connection.isOpen, connection.received]).toEqual([true, '']);
    expect(rig.base.modules()).toMatchObject([{ bizName: 'biz1', state: 'ACTIVATED' }]);
    connection.end();
  });
});

describe('a base over HTTP whose network is gone', () => {
  it('cuts old and new connections, sends nothing, and goes on', async () => {
    rig = await startHttpRig({ installMs: 20 });
    const { base } = rig;
    await rig.controller.received('/heartbeat', 1);
    const received = receiptOf(rig.fleet, 'installBiz');
    const broken = expect(command(base, 'installBiz', BIZ)).rejects.toThrow();
    await received;
    await base.disconnect();
    await broken;
    expect(base.isConnected).toBe(false);
    await expect(command(base, 'queryAllBiz', {})).rejects.toThrow();
    base.beat();
    await rig.fleet.history.waitFor({ command: 'installBiz', outcome: 'executed' });
    await base.reconnect();
    expect(base.isConnected).toBe(true);
    expect((await command(base, 'queryAllBiz', {})).data).toMatchObject([{ bizName: 'biz1' }]);
    await fence();
    expect(pathsOf()).toEqual(['/heartbeat']);
  });
});

describe('the end of a process over HTTP', () => {
  it('cuts all connections, frees the port and aborts the heartbeat under way', async () => {
    rig = await startHttpRig({ installMs: 30 });
    const { base } = rig;
    await rig.controller.received('/heartbeat', 1);
    rig.controller.isDeaf = true;
    base.beat();
    await rig.controller.received('/heartbeat', 2);
    const idle = new RawConnection(base);
    const received = receiptOf(rig.fleet, 'installBiz');
    const broken = expect(command(base, 'installBiz', BIZ)).rejects.toThrow();
    await received;
    await base.kill();
    await Promise.all([broken, idle.closed]);
    expect(rig.fleet.history.records()).toMatchObject([{ outcome: 'died' }]);
    expect(await isListening(base.port)).toBe(false);
    await vi.waitFor(() => expect(rig.controller.connectionCount).toBe(0));
    base.beat();
  });

  it.each([
    [{}, true],
    [{ port: 'same' }, true],
    [{ port: 'new' }, false],
  ] as const)('is followed by a new one; after restart(%j) on the same port: %s', async (options, isSame) => {
    const clock = new FakeClock();
    rig = await startHttpRig({ clock, installMs: 0 });
    const { base } = rig;
    await command(base, 'installBiz', BIZ);
    clock.advance(60_000);
    const { port } = base;
    const posts = rig.controller.posts.length;
    await base.restart(options);
    expect(base.port === port).toBe(isSame);
    expect(await isListening(port)).toBe(isSame);
    await vi.waitFor(() => expect(rig.controller.posts.length).toBeGreaterThan(posts));
    expect(JSON.parse(rig.controller.posts.at(-1)?.text ?? '')).toMatchObject({ port: base.port });
    expect((await command(base, 'queryAllBiz', {})).data).toEqual([]);
    const { data } = await command(base, 'health', {});
    expect(data.healthData.jvm['run time(s)']).toBe(0);
  });
});
