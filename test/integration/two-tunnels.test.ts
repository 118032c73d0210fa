import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstExternalAddress } from '../../samples/base-simulator/external-address.ts';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { eventsOf, findNode, findPod, isReady, nodes } from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const TUNNEL_LABEL = 'vnode.koupleless.io/tunnel';

let world: World;
let controller: ControllerProcess;
let overMqtt: Fleet;
let overHttp: Fleet;

beforeAll(async () => {
  world = await startWorld();
  controller = await world.startController({ ENABLE_HTTP_TUNNEL: 'true', HTTP_TUNNEL_LISTEN_PORT: '0' });
  const { port } = await controller.line(
    (line) => line.msg === 'listening' && JSON.stringify(line).includes('http_tunnel_provider'),
  );
  overMqtt = await world.startFleet({ count: 2, identityPrefix: 'm-' });
  overHttp = await world.startFleet({
    brokerUrl: undefined,
    controllerUrl: `http://${firstExternalAddress()}:${port}`,
    count: 2,
    identityPrefix: 'h-',
  });
});

afterAll(() => world?.stop());

async function tunnelOf(identity: string): Promise<string | undefined> {
  return (await findNode(world.admin, identity))?.metadata.labels?.[TUNNEL_LABEL];
}

async function install(name: string, identity: string) {
  await world.admin.post(
    '/api/v1/namespaces/default/pods',
    modulePod(name, [{ name }], { nodeName: `vnode.${identity}` }),
  );
  await eventually(async () => expect(await findPod(world.admin, name)).toSatisfy(isReady));
}

describe('a controller with both tunnels', () => {
  it('has the bases of both as Nodes, and installs on each through its own', async () => {
    await eventually(async () => expect((await nodes(world.admin)).filter(isReady)).toHaveLength(4));
    expect(await tunnelOf('m-1')).toBe('mqtt_tunnel_provider');
    expect(await tunnelOf('h-1')).toBe('http_tunnel_provider');
    await Promise.all([install('biz-m', 'm-1'), install('biz-h', 'h-1')]);
    expect(overMqtt.history.records({ bizName: 'biz-m' }).map(({ tunnel }) => tunnel)).toEqual(['mqtt']);
    expect(overHttp.history.records({ bizName: 'biz-h' }).map(({ tunnel }) => tunnel)).toEqual(['http']);
  });

  it('lets the first that is heard keep an identity, and refuses the second while the first speaks', async () => {
    const impostor = await overHttp.add({ identity: 'm-2' });
    await eventually(async () => {
      const events = await eventsOf(world.admin, 'Node', 'vnode.m-2');
      expect(events.map(({ reason }) => reason)).toContain('BaseRefused');
    });
    expect(await controller.metric('module_controller_refused_bases_total', 'http_tunnel_provider')).toBeGreaterThan(0);
    await install('biz-2', 'm-2');
    expect(overMqtt.base('m-2').modules()).toHaveLength(1);
    expect(impostor.modules()).toEqual([]);
    expect(await tunnelOf('m-2')).toBe('mqtt_tunnel_provider');
    await impostor.kill();
  });

  it('finds a base that moved to the other tunnel, as another Node, when its own is gone because of the silence', async () => {
    const base = overMqtt.base('m-1');
    const before = await findNode(world.admin, 'm-1');
    const { controllerUrl } = { controllerUrl: `http://${firstExternalAddress()}:${await httpPort()}` };
    await base.moveTo({ controllerUrl });
    await eventually(async () => expect(await tunnelOf('m-1')).toBe('http_tunnel_provider'), 90_000);
    const after = await findNode(world.admin, 'm-1');
    expect(after?.metadata.uid).not.toBe(before?.metadata.uid);
    expect(await findPod(world.admin, 'biz-m')).toBeUndefined();
    await install('biz-moved', 'm-1');
    expect(overMqtt.history.records({ bizName: 'biz-moved' }).map(({ tunnel }) => tunnel)).toEqual(['http']);
  });

  it('finds at once a base that moved away from an address where nobody listens any more', async () => {
    const watch = await Spectator.watch(world.admin, '/api/v1/nodes');
    const base = overHttp.base('h-1');
    await base.restart({ port: 'new' });
    // The old port refuses: the new process need not wait for the silence of the old one.
    await eventually(async () => {
      const pod = await findPod(world.admin, 'biz-h');
      expect(pod?.status?.containerStatuses?.[0]?.restartCount).toBe(1);
      expect(isReady(pod)).toBe(true);
    }, 25_000);
    watch.stop();
    expect(watch.sightings.filter(({ name, ready }) => name === 'vnode.h-1' && ready !== 'True')).toEqual([]);
  });

  it('finds within a minute that a base over HTTP was started anew in the same place, by what it says of itself', async () => {
    await install('biz-again', 'h-2');
    await overHttp.base('h-2').restart();
    await eventually(async () => {
      const pod = await findPod(world.admin, 'biz-again');
      expect(pod?.status?.containerStatuses?.[0]?.restartCount).toBe(1);
      expect(isReady(pod)).toBe(true);
    }, 90_000);
    expect(overHttp.base('h-2').modules()).toHaveLength(1);
  });

  async function httpPort(): Promise<number> {
    const line = await controller.line(
      (entry) => entry.msg === 'listening' && JSON.stringify(entry).includes('http_tunnel_provider'),
    );
    return Number(line.port);
  }
});
