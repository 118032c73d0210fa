import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Fleet, type FleetOptions, startFleet } from '../../../../samples/base-simulator/fleet.ts';
import type { BaseAddress } from '../../../../src/tunnel/tunnel.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { receiptOf } from '../../../tooling/base-simulator/http-rig.ts';
import { runTestTunnel, type TestTunnel } from './http-world.ts';

const SLOW_MS = 40_000;
const specOf = (name: string) => ({ name, version: '1', url: `file:///${name}.jar`, args: [], envs: {} });

/** Of the base: an install is in work for as long as it stands still. */
let clock: FakeClock;
let fleet: Fleet;
let world: TestTunnel;
let base: BaseAddress;

async function start(options: Partial<FleetOptions> = {}, tunnelOptions: { clock?: FakeClock } = {}): Promise<void> {
  clock = new FakeClock();
  world = await runTestTunnel(tunnelOptions);
  fleet = await startFleet({
    controllerUrl: `http://127.0.0.1:${world.port()}`,
    env: 'dev',
    clock,
    installMs: 0,
    uninstallMs: 0,
    announce: false,
    bases: [{ identity: 'base-1', localIP: '127.0.0.1' }],
    ...options,
  });
  fleet.setFault({ bizName: 'slow', installMs: SLOW_MS });
  base = { identity: 'base-1', ip: '127.0.0.1', port: fleet.base('base-1').port };
}

afterEach(async () => {
  await world.stop();
  await fleet.stop();
});

function commandsOf(name: string): string[] {
  return fleet.history.records({ bizName: name }).map(({ command, outcome }) => `${command} ${outcome}`);
}

describe('a base whose event loops are at work', () => {
  it('installs other modules and answers questions at once while one module takes long to install', async () => {
    await start();
    const { tunnel } = world;
    const received = receiptOf(fleet, 'installBiz');
    const install = tunnel.installModule(base, specOf('slow'));
    await received;
    // More than twice around its four loops.
    const others = ['a', 'b', 'c'];
    for (const name of others) await tunnel.installModule(base, specOf(name));
    for (let count = 0; count < 3; count++) await Promise.all([tunnel.queryHealth(base), tunnel.queryModules(base)]);
    expect(commandsOf('slow')).toEqual(['installBiz in work']);
    for (const name of others) expect(commandsOf(name)).toEqual(['installBiz executed']);
    clock.advance(SLOW_MS);
    await install;
    expect(fleet.base('base-1').modules()).toHaveLength(4);
    expect(await world.handler.first('health', 3)).toHaveLength(3);
    expect(await world.handler.first('moduleList', 3)).toHaveLength(3);
  });

  it('never gets what was given up before a loop was free', async () => {
    const tunnelClock = new FakeClock();
    await start({ eventLoops: 1 }, { clock: tunnelClock });
    const { tunnel } = world;
    await tunnel.queryHealth(base);
    const notSent = { code: 'Tunnel.NotConnected' };
    const received = receiptOf(fleet, 'installBiz');
    const install = tunnel.installModule(base, specOf('slow'));
    const others = ['a', 'b', 'c'].map((name) =>
      expect(tunnel.installModule(base, specOf(name))).rejects.toMatchObject(notSent),
    );
    await received;
    await tenConnections(tunnelClock);
    await Promise.all(others);
    const uninstall = expect(tunnel.uninstallModule(base, specOf('slow'))).rejects.toMatchObject(notSent);
    await tenConnections(tunnelClock);
    await uninstall;
    clock.advance(SLOW_MS);
    await install;
    await tunnel.queryModules(base);
    expect(fleet.history.records().map(({ command, bizName }) => [command, bizName])).toEqual([
      ['health', undefined],
      ['installBiz', 'slow'],
      ['queryAllBiz', undefined],
    ]);
  });

  /** Each waits a second for 100 Continue. */
  async function tenConnections(tunnelClock: FakeClock): Promise<void> {
    for (let count = 0; count < 10; count++) {
      await vi.waitFor(() => expect(tunnelClock.nextIn).toBe(1_000), { timeout: 5_000, interval: 1 });
      tunnelClock.advance(1_000);
    }
  }
});
