import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { findPod, isReady, isSchedulable, nodes } from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';
import { startWorld } from '../support/start-world.ts';
import { startTransport } from '../support/transport.ts';
import { type ControllerProcess, podPath, type World } from '../support/world.ts';

/** A module takes so long to install, on one event loop of its base. */
const SLOW_MS = 30_000;
const LONG_MS = 12_000;

let world: World;
let controller: ControllerProcess;
let fleet: Fleet;

beforeAll(async () => {
  // Over HTTP in any project: over MQTT a base takes commands on threads of their own.
  world = await startWorld({ transport: await startTransport('http') });
  controller = await world.startController();
  fleet = await world.startFleet({ bases: [{ identity: 'four' }, { identity: 'two', eventLoops: 2 }] });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(2));
});

afterAll(() => world?.stop());

async function create(name: string, identity: string): Promise<void> {
  const pod = modulePod(name, [{ name }], { nodeName: `vnode.${identity}` });
  await world.admin.post('/api/v1/namespaces/default/pods', pod);
}

async function areReady(names: readonly string[], timeoutMs?: number): Promise<void> {
  await eventually(async () => {
    for (const name of names) expect(await findPod(world.admin, name), name).toSatisfy(isReady);
  }, timeoutMs);
}

function installsOn(base: string): string[] {
  return fleet.history
    .records({ base, command: 'installBiz' })
    .map(({ bizName, outcome }) => `${bizName} ${outcome}`)
    .toSorted();
}

describe('a base over HTTP', () => {
  it('installs and uninstalls other modules, and answers, while one module takes 30 s to install', async () => {
    fleet.base('four').setFault({ command: 'installBiz', bizName: 'slow', installMs: SLOW_MS });
    await create('slow', 'four');
    await eventually(() => expect(installsOn('four')).toEqual(['slow in work']));
    const others = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const name of others) await create(name, 'four');
    await areReady(others, 15_000);
    await world.admin.delete(podPath('a'));
    await eventually(async () => expect(await findPod(world.admin, 'a')).toBeUndefined(), 10_000);
    expect(installsOn('four')).toContain('slow in work');
    await areReady(['slow']);
    expect(installsOn('four')).toEqual([...others, 'slow'].map((name) => `${name} executed`));
    for (const result of ['failed', 'not_connected']) {
      expect(
        await controller.metric('module_controller_tunnel_commands_total', 'http_tunnel_provider', `"${result}"`),
        result,
      ).toBe(0);
    }
  });

  it('whose event loops are all at work is not judged dead, and gets nothing twice', async () => {
    const seen = await Spectator.watch(world.admin, '/api/v1/nodes');
    const modules = ['p', 'q', 'r', 's'];
    fleet.base('two').setFault({ command: 'installBiz', installMs: LONG_MS });
    for (const name of modules) await create(name, 'two');
    await areReady(modules);
    seen.stop();
    expect(installsOn('two')).toEqual(modules.map((name) => `${name} executed`));
    expect(seen.of('vnode.two').filter(({ ready, isGone }) => ready !== 'True' || isGone)).toEqual([]);
    for (const name of modules) {
      expect((await findPod(world.admin, name))?.status?.containerStatuses?.[0]?.restartCount).toBe(0);
    }
  });
});
