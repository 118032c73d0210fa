import { afterEach, describe, expect, it, vi } from 'vitest';
import { startFleet } from '../../../samples/base-simulator/fleet.ts';
import { localAddressOf } from '../../../samples/base-simulator/local-address.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { BIZ, type Rig, startRig } from './rig.ts';
import { startTcpTap } from './tcp-tap.ts';

/** An MQTT DISCONNECT packet. */
const DISCONNECT = 'e000';

let rig: Rig;
afterEach(() => rig.stop());

function kindsOf(identity: string): string[] {
  return rig.controller.all({ identity }).map((one) => one.kind);
}

/** Makes the base say something that comes after all it said before. */
async function fence(identity: string): Promise<void> {
  const count = rig.controller.all({ identity, kind: 'fence' }).length;
  rig.fleet.base(identity).publishRaw('fence', '{}');
  await rig.controller.nth(count + 1, { identity, kind: 'fence' });
}

async function install(identity: string): Promise<void> {
  const count = rig.controller.all({ identity, kind: 'bizOperation' }).length;
  rig.controller.send(identity, 'installBiz', BIZ);
  await rig.controller.nth(count + 1, { identity, kind: 'bizOperation' });
}

describe('heartbeats', () => {
  it('come at the announcement and then every 10 s', async () => {
    const clock = new FakeClock();
    rig = await startRig({ clock });
    await fence('base-1');
    clock.advance(9_999);
    await fence('base-1');
    expect(kindsOf('base-1').filter((kind) => kind === 'heart')).toHaveLength(1);
    clock.advance(1);
    await rig.controller.nth(2, { kind: 'heart' });
    clock.advance(10_000);
    const third = await rig.controller.nth(3, { kind: 'heart' });
    expect(third.publishTimestamp).toBe(clock.wallTime().getTime());
  });

  it('of bases that announce at one moment spread out later', async () => {
    const clock = new FakeClock();
    rig = await startRig({ clock, count: 20, announce: false });
    rig.fleet.announce();
    await rig.controller.nth(20, { kind: 'heart' });
    clock.advance(10_000);
    await rig.controller.nth(40, { kind: 'heart' });
    const moments = rig.controller
      .all({ kind: 'heart' })
      .slice(20)
      .map((one) => JSON.parse(one.text).publishTimestamp);
    expect(new Set(moments).size).toBe(20);
  });

  it('of bases that are announced over some time come one after the other', async () => {
    const clock = new FakeClock();
    rig = await startRig({ clock, count: 4, announce: false });
    const announced = rig.fleet.announceOver(1_200);
    for (let count = 1; count <= 4; count++) {
      const { publishTimestamp } = await rig.controller.nth(count, { kind: 'heart' });
      expect(publishTimestamp).toBe(clock.wallTime().getTime());
      if (count < 4) clock.advance(300);
    }
    await announced;
  });

  it('wait for the announcement, which happens once', async () => {
    rig = await startRig({ announce: false });
    await fence('base-1');
    expect(kindsOf('base-1')).toEqual(['fence']);
    rig.fleet.announce();
    rig.fleet.base('base-1').announce();
    await fence('base-1');
    expect(kindsOf('base-1')).toEqual(['fence', 'queryBaseline', 'heart', 'fence']);
  });
});

describe('silence', () => {
  it('drops commands and says nothing, on a connection that stays', async () => {
    const clock = new FakeClock();
    rig = await startRig({ clock });
    const base = rig.fleet.base('base-1');
    await rig.controller.nth(1, { kind: 'heart' });
    base.silence();
    rig.controller.send('base-1', 'installBiz', BIZ);
    rig.controller.send('base-1', 'health', {});
    await rig.fleet.history.waitFor({ outcome: 'ignored:silent' }, { count: 2 });
    clock.advance(60_000);
    expect(base.isConnected).toBe(true);
    expect(base.modules()).toEqual([]);
    base.speak();
    await rig.controller.nth(2, { kind: 'heart' });
    expect(kindsOf('base-1')).toEqual(['queryBaseline', 'heart', 'heart']);
    expect(rig.fleet.history.records()).toMatchObject([
      { command: 'installBiz', bizName: 'biz1', bizVersion: '1.0.0', outcome: 'ignored:silent' },
      { command: 'health', outcome: 'ignored:silent' },
    ]);
  });

  it('swallows the answer of an install in work, which goes on', async () => {
    rig = await startRig({ installMs: 20 });
    const base = rig.fleet.base('base-1');
    rig.fleet.history.subscribe((record) => record.outcome === 'in work' && base.silence());
    rig.controller.send('base-1', 'installBiz', BIZ);
    await rig.fleet.history.waitFor({ outcome: 'executed' });
    base.speak();
    await fence('base-1');
    expect(kindsOf('base-1')).not.toContain('bizOperation');
    expect(base.modules()).toMatchObject([{ bizName: 'biz1', state: 'ACTIVATED' }]);
  });
});

describe('disconnect and reconnect', () => {
  it('keeps the process: modules stay, no second baseline query, nothing said in between arrives', async () => {
    rig = await startRig();
    const base = rig.fleet.base('base-1');
    await install('base-1');
    await base.disconnect();
    expect(base.isConnected).toBe(false);
    base.beat();
    base.announceModules();
    await base.reconnect();
    rig.controller.send('base-1', 'queryAllBiz', {});
    const list = await rig.controller.nth(1, { kind: 'simpleBiz' });
    expect(list.data).toMatchObject([{ name: 'biz1', state: 'activated' }]);
    expect(kindsOf('base-1')).toEqual(['queryBaseline', 'heart', 'bizOperation', 'simpleBiz']);
  });

  it('comes back by itself after the broker was away, and takes commands again', async () => {
    rig = await startRig({ count: 2 });
    await rig.broker.pause();
    await vi.waitFor(() => expect(rig.fleet.bases.map((base) => base.isConnected)).toEqual([false, false]));
    rig.fleet.base('base-1').beat();
    rig.broker.recorder.clear();
    await rig.broker.resume();
    const isSubscribed = (): boolean => rig.fleet.bases.every((base) => base.isConnected);
    await vi.waitFor(() => expect(isSubscribed()).toBe(true));
    rig.fleet.base('base-1').publishRaw('fence', '{}');
    await rig.broker.recorder.waitFor({ topic: '+/base-1/base/fence' });
    expect(rig.broker.recorder.records().map((record) => record.topic)).toEqual(['koupleless_dev/base-1/base/fence']);
    await vi.waitFor(() => {
      rig.controller.send('base-2', 'health', {});
      expect(rig.fleet.history.records({ base: 'base-2', command: 'health' })).not.toEqual([]);
    });
  });
});

describe('the end of a process', () => {
  it.each([
    ['kill', false],
    ['disconnect', true],
  ] as const)('by %s: the last word is a DISCONNECT: %s', async (way, isPolite) => {
    rig = await startRig({ count: 0 });
    const tap = await startTcpTap(rig.broker.port);
    const fleet = await startFleet({ brokerUrl: `mqtt://127.0.0.1:${tap.port}`, env: 'dev' });
    await fleet.base('base-1')[way]();
    const sent = (await tap.sent).toString('hex');
    expect(sent.endsWith(DISCONNECT)).toBe(isPolite);
    await fleet.stop();
    await tap.stop();
  });

  it('answers nothing more, not even what is in work', async () => {
    rig = await startRig({ installMs: 30 });
    const base = rig.fleet.base('base-1');
    const died = new Promise<void>((resolve) => {
      rig.fleet.history.subscribe((record) => {
        if (record.outcome === 'in work') void base.kill().then(resolve);
      });
    });
    rig.controller.send('base-1', 'installBiz', BIZ);
    await died;
    expect(base.isAlive).toBe(false);
    expect(base.isConnected).toBe(false);
    expect(rig.fleet.history.records()).toMatchObject([{ outcome: 'died' }]);
    base.beat();
    await base.restart();
    await fence('base-1');
    expect(kindsOf('base-1')).toEqual(['queryBaseline', 'heart', 'queryBaseline', 'heart', 'fence']);
  });

  it('is followed, after a restart, by a new one: no modules, run time from zero, a baseline query', async () => {
    const clock = new FakeClock();
    rig = await startRig({ clock, installMs: 0 });
    const base = rig.fleet.base('base-1');
    await install('base-1');
    clock.advance(60_000);
    rig.controller.send('base-1', 'health', {});
    const before = await rig.controller.nth(1, { kind: 'health' });
    await base.restart();
    expect(base.modules()).toEqual([]);
    rig.controller.send('base-1', 'health', {});
    const after = await rig.controller.nth(2, { kind: 'health' });
    const runTimeOf = ({ data }: typeof before): number => data.data.healthData.jvm['run time(s)'];
    expect([runTimeOf(before), runTimeOf(after)]).toEqual([60, 0]);
    expect(kindsOf('base-1').filter((kind) => kind === 'queryBaseline')).toHaveLength(2);
  });
});

describe('a fleet', () => {
  it('grows while it runs', async () => {
    rig = await startRig({ count: 2 });
    const added = await rig.fleet.add();
    await rig.fleet.add({ identity: 'shop', installMs: 1 });
    expect(rig.fleet.bases.map((base) => base.identity)).toEqual(['base-1', 'base-2', 'base-3', 'shop']);
    await rig.controller.nth(1, { identity: added.identity, kind: 'heart' });
    await install('shop');
    await expect(rig.fleet.add({ identity: 'shop' })).rejects.toThrow('identity: shop is in this fleet already');
    expect(() => rig.fleet.base('nobody')).toThrow('identity: no base nobody in this fleet');
  });

  it('gives documentation addresses, all different for 762 bases', async () => {
    rig = await startRig({ count: 255, sharesConnection: true });
    expect(rig.fleet.base('base-255').localIP).toBe('203.0.113.1');
    const addresses = Array.from({ length: 762 }, (_, index) => localAddressOf(index + 1));
    expect([addresses[0], addresses[253], addresses[254], addresses[761]]).toEqual([
      '198.51.100.1',
      '198.51.100.254',
      '203.0.113.1',
      '192.0.2.254',
    ]);
    expect(new Set(addresses).size).toBe(762);
    expect(localAddressOf(763)).toBe('198.51.100.1');
  });

  it('names the broker it cannot reach, and leaves nothing running', async () => {
    rig = await startRig({ count: 0 });
    await rig.broker.pause();
    const clock = new FakeClock();
    const start = startFleet({ brokerUrl: rig.broker.url, env: 'dev', count: 3, clock });
    await expect(start).rejects.toThrow(
      /^brokerUrl: koupleless@@@base-\d cannot connect to mqtt:\/\/127\.0\.0\.1:\d+$/,
    );
    expect(clock.pending).toBe(0);
    await rig.broker.resume();
  });

  it('is gone from the broker after stop, which may be called again', async () => {
    rig = await startRig({ count: 3 });
    await rig.fleet.stop();
    await rig.fleet.stop();
    await vi.waitFor(() => expect(rig.broker.clientIds()).toEqual(['controller']));
  });
});
