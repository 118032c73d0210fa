import { afterEach, describe, expect, it, vi } from 'vitest';
import { startFleet } from '../../../samples/base-simulator/fleet.ts';
import { command, HttpController, type HttpRig, isListening, startHttpRig } from './http-rig.ts';
import { BIZ, ENV, startRig } from './rig.ts';

let rig: HttpRig;
afterEach(() => rig.stop());

describe('a move to the other tunnel', () => {
  it('takes the process along: from HTTP to MQTT and back', async () => {
    rig = await startHttpRig();
    const mqtt = await startRig({ count: 0 });
    try {
      const { base } = rig;
      await rig.controller.received('/heartbeat', 1);
      await command(base, 'installBiz', BIZ);
      const { port } = base;
      await base.moveTo({ brokerUrl: mqtt.broker.url });
      expect([base.tunnel, base.port]).toEqual(['mqtt', 0]);
      expect(await isListening(port)).toBe(false);
      const beat = await mqtt.controller.nth(1, { identity: 'base-1', kind: 'heart' });
      expect(beat.data).toMatchObject({ localIP: '127.0.0.1', port: 0 });
      mqtt.controller.send('base-1', 'queryAllBiz', {});
      const list = await mqtt.controller.nth(1, { identity: 'base-1', kind: 'simpleBiz' });
      expect(list.data).toMatchObject([{ name: 'biz1', state: 'activated' }]);

      await base.moveTo({ controllerUrl: rig.controller.url });
      await vi.waitFor(() => expect(mqtt.broker.clientIds()).toEqual(['controller']));
      const [, second] = await rig.controller.received('/heartbeat', 2);
      expect(JSON.parse(second?.text ?? '')).toMatchObject({ localIP: '127.0.0.1', port: base.port });
      expect((await command(base, 'queryAllBiz', {})).data).toMatchObject([{ bizName: 'biz1' }]);
      expect(rig.fleet.history.records({ tunnel: 'mqtt' })).toMatchObject([{ command: 'queryAllBiz' }]);

      await base.moveTo({ brokerUrl: mqtt.broker.url });
      await mqtt.controller.nth(2, { identity: 'base-1', kind: 'heart' });
      expect(mqtt.controller.all({ kind: 'queryBaseline' })).toHaveLength(1);
    } finally {
      await rig.fleet.stop();
      await mqtt.stop();
    }
  });
});

describe('a move to another controller', () => {
  it('keeps address, port and modules', async () => {
    rig = await startHttpRig();
    const other = new HttpController();
    await other.start();
    try {
      const { base } = rig;
      await command(base, 'installBiz', BIZ);
      const { port } = base;
      await base.moveTo({ controllerUrl: other.url });
      const [beat] = await other.received('/heartbeat', 1);
      expect(JSON.parse(beat?.text ?? '')).toMatchObject({ localIP: '127.0.0.1', port });
      expect((await command(base, 'queryAllBiz', {})).data).toHaveLength(1);
      await base.kill();
      await base.moveTo({ controllerUrl: rig.controller.url, localIP: '127.0.0.2' });
      expect(await isListening(port)).toBe(false);
      await base.restart();
      const [, again] = await rig.controller.received('/heartbeat', 2);
      expect(JSON.parse(again?.text ?? '')).toMatchObject({ localIP: '127.0.0.2', port });
    } finally {
      await rig.fleet.stop();
      await other.stop();
    }
  });
});

describe('a fleet', () => {
  it('mixes bases of both tunnels', async () => {
    rig = await startHttpRig();
    const mqtt = await startRig({ bases: [{ controllerUrl: rig.controller.url, localIP: '127.0.0.1' }, {}] });
    try {
      await mqtt.fleet.add({ identity: 'late', controllerUrl: rig.controller.url, localIP: '127.0.0.1' });
      expect(mqtt.fleet.bases.map(({ identity, tunnel }) => [identity, tunnel])).toEqual([
        ['base-1', 'http'],
        ['base-2', 'mqtt'],
        ['late', 'http'],
      ]);
      await rig.controller.received('/heartbeat', 3);
      await mqtt.controller.nth(1, { identity: 'base-2', kind: 'heart' });
      expect(mqtt.controller.all({ kind: 'heart' })).toHaveLength(1);
    } finally {
      await mqtt.stop();
    }
  });

  it.each([
    [{}, 'brokerUrl: a base needs either brokerUrl or controllerUrl, and not both'],
    [{ brokerUrl: 'mqtt://127.0.0.1:1', controllerUrl: 'http://127.0.0.1:1' }, 'brokerUrl: a base needs either'],
    [{ controllerUrl: '127.0.0.1:7777' }, "controllerUrl: must be an URL like http://127.0.0.1:7777, got '127.0.0.1"],
    [
      { controllerUrl: 'http://127.0.0.1:1', bases: [{ localIP: '198.51.100.1' }] },
      'listenAddress: base-1 cannot listen',
    ],
  ])('refuses %j', async (options, message) => {
    rig = await startHttpRig();
    await expect(startFleet({ env: ENV, ...options })).rejects.toThrow(message);
  });
});

describe('100 bases over HTTP', () => {
  it('announce at one moment and install 3 modules each: nothing is lost, nothing happens twice', async () => {
    const bases = Array.from({ length: 100 }, () => ({}));
    rig = await startHttpRig({ bases, announce: false });
    rig.fleet.announce();
    const modules = ['a', 'b', 'c'].map((bizName) => ({ ...BIZ, bizName, bizUrl: `file:///${bizName}.jar` }));
    const answers = await Promise.all(
      rig.fleet.bases.flatMap((base) => modules.map((module) => command(base, 'installBiz', module))),
    );
    expect(answers.every(({ code }) => code === 'SUCCESS')).toBe(true);
    expect(rig.fleet.history.installCounts().filter(({ count }) => count === 1)).toHaveLength(300);
    const beats = await rig.controller.received('/heartbeat', 100);
    expect(new Set(beats.map(({ text }) => JSON.parse(text).port)).size).toBe(100);
  });
});
