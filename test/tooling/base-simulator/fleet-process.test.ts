import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { forkFleet, type RemoteFleet } from '../../../samples/base-simulator/fleet-process.ts';
import { command, startHttpRig } from './http-rig.ts';
import { BIZ, ENV, type Rig, startRig } from './rig.ts';

let rig: Rig;
let fleet: RemoteFleet;

beforeAll(async () => {
  rig = await startRig({ count: 0 });
  fleet = await forkFleet({
    brokerUrl: rig.broker.url,
    env: ENV,
    count: 2,
    installMs: 1,
    uninstallMs: 1,
    reconnectMs: 10,
  });
});
afterAll(async () => {
  await fleet.stop();
  await rig.stop();
});

describe('a fleet in a process of its own', () => {
  it('runs bases and tells what commands they received', async () => {
    await rig.controller.nth(2, { kind: 'heart' });
    expect(await fleet.identities()).toEqual(['base-1', 'base-2']);
    const mark = await fleet.mark();
    rig.controller.send('base-1', 'installBiz', BIZ);
    rig.controller.send('base-2', 'health', {});
    const ended = await fleet.waitFor({ since: mark, outcome: 'executed' }, { count: 2 });
    expect(ended.map((record) => record.base).toSorted()).toEqual(['base-1', 'base-2']);
    rig.controller.send('base-1', 'installBiz', BIZ);
    await fleet.waitFor({ since: mark, outcome: 'refused:REPEAT_BIZ' }, {});
    const none = { installBiz: 0, uninstallBiz: 0, queryAllBiz: 0, health: 0, batchInstallBiz: 0 };
    expect(await fleet.historySummary(mark)).toEqual({
      commands: { ...none, installBiz: 2, health: 1 },
      perBase: { 'base-1': { ...none, installBiz: 2 }, 'base-2': { ...none, health: 1 } },
      installs: [{ base: 'base-1', bizName: 'biz1', bizVersion: '1.0.0', count: 1 }],
      installsWhileActiveOrInWork: 1,
    });
    expect(await fleet.records({ since: mark, base: 'base-2' })).toMatchObject([{ command: 'health' }]);
    expect(await fleet.modules('base-1')).toMatchObject([{ bizName: 'biz1', state: 'ACTIVATED' }]);
  });

  it('takes faults for one base and for all, and takes them back', async () => {
    const mark = await fleet.mark();
    await fleet.setFault('base-2', { bizName: 'one', failure: 'java.lang.Error: one' });
    await fleet.setFault(undefined, { bizName: 'all', failure: 'java.lang.Error: all' });
    for (const bizName of ['one', 'all']) rig.controller.send('base-2', 'installBiz', { ...BIZ, bizName });
    expect(await fleet.waitFor({ since: mark, outcome: 'failed' }, { count: 2 })).toHaveLength(2);
    await fleet.clearFaults(undefined);
    for (const bizName of ['one', 'all']) rig.controller.send('base-2', 'installBiz', { ...BIZ, bizName });
    expect(await fleet.waitFor({ since: mark, outcome: 'executed' }, { count: 2 })).toHaveLength(2);
  });

  it('adds, silences, kills and restarts bases', async () => {
    expect(await fleet.add({ identity: 'shop' })).toBe('shop');
    await rig.controller.nth(1, { identity: 'shop', kind: 'heart' });
    await fleet.placeModule('shop', { bizName: 'biz9', bizVersion: '1' }, 'ACTIVATED');
    await fleet.crashModule('shop', 'biz9', '1', 'BROKEN');
    await fleet.announceModules('shop');
    const { data } = await rig.controller.nth(1, { identity: 'shop', kind: 'simpleBiz' });
    expect(data).toMatchObject([{ name: 'biz9', state: 'broken' }]);
    await fleet.silence('shop');
    rig.controller.send('shop', 'queryAllBiz', {});
    await fleet.waitFor({ base: 'shop', outcome: 'ignored:silent' }, {});
    await fleet.speak('shop');
    await rig.controller.nth(2, { identity: 'shop', kind: 'heart' });
    await fleet.kill('shop');
    await vi.waitFor(() => expect(rig.broker.clientIds()).not.toContain('koupleless@@@shop'));
    await fleet.restart('shop');
    await rig.controller.nth(2, { identity: 'shop', kind: 'queryBaseline' });
    expect(await fleet.modules('shop')).toEqual([]);
  });

  it('runs bases over HTTP, and moves them', async () => {
    const http = await startHttpRig();
    try {
      const target = { controllerUrl: http.controller.url, localIP: '127.0.0.1' };
      await fleet.add({ identity: 'web', ...target });
      const address = await fleet.addressOf('web');
      expect(address).toMatchObject({ tunnel: 'http', localIP: '127.0.0.1' });
      expect(await command(address, 'installBiz', BIZ)).toMatchObject({ code: 'SUCCESS' });
      await fleet.beat('web');
      await fleet.publishRaw('web', 'heart', 'raw');
      const posts = await http.controller.received('/heartbeat', 4);
      expect(posts.at(-1)?.text).toBe('raw');
      await expect(fleet.announceModules('web')).rejects.toThrow('announceModules: over HTTP');
      await fleet.restart('web', { port: 'new' });
      expect((await fleet.addressOf('web')).port).not.toBe(address.port);
      await fleet.moveTo('web', { brokerUrl: rig.broker.url });
      await rig.controller.nth(1, { identity: 'web', kind: 'heart' });
      await fleet.moveTo('web', target);
      expect(await fleet.addressOf('web')).toMatchObject({ tunnel: 'http', localIP: '127.0.0.1' });
    } finally {
      await fleet.kill('web');
      await http.stop();
    }
  });

  it('passes errors on by name', async () => {
    await expect(fleet.kill('nobody')).rejects.toThrow('identity: no base nobody in this fleet');
    const unknown = (fleet as unknown as Record<string, () => Promise<void>>).shutdown;
    await expect(unknown?.()).rejects.toThrow('call: this process knows no call shutdown');
    rig.broker.refuse((clientId) => clientId === 'koupleless@@@late');
    await expect(fleet.add({ identity: 'late' })).rejects.toThrow(/late cannot connect to .*: .*Not authorized/);
    await expect(forkFleet({ brokerUrl: 'mqtt://127.0.0.1:1', env: ENV })).rejects.toThrow(
      'brokerUrl: koupleless@@@base-1',
    );
  });

  it('ends with its process, after which calls fail', async () => {
    await fleet.stop();
    await fleet.stop();
    await expect(fleet.mark()).rejects.toThrow('fleet process ended');
    await vi.waitFor(() => expect(rig.broker.clientIds()).toEqual(['controller']));
  });
});
