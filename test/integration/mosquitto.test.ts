import { connectAsync } from 'mqtt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { CONTROLLER_ACCESS, passwordOf, startDocumentedMosquitto } from '../support/documented-mosquitto.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { findPod, isReady, isSchedulable, nodes } from '../support/observe.ts';
import { startWorld } from '../support/start-world.ts';
import { MqttTransport } from '../support/transport.ts';
import { type ControllerProcess, podPath, type World } from '../support/world.ts';

/** Mosquitto as docs/install.md describes it: its ACL, a user for each base, its settings. */
const BASES = ['b1', 'b2'];

let world: World;
let controller: ControllerProcess;
const fleets = new Map<string, Fleet>();

beforeAll(async () => {
  const broker = await startDocumentedMosquitto(BASES);
  world = await startWorld({ transport: new MqttTransport(broker) });
  controller = await world.startController(CONTROLLER_ACCESS);
  for (const identity of BASES) {
    const fleet = await world.startFleet({
      username: identity,
      password: passwordOf(identity),
      bases: [{ identity }],
    });
    fleets.set(identity, fleet);
  }
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES.length));
});

afterAll(() => world?.stop());

async function ready(name: string): Promise<void> {
  await eventually(async () => expect(isReady(await findPod(world.admin, name))).toBe(true));
}

describe('Mosquitto with the acl_file and the settings of docs/install.md', () => {
  it('lets the controller find bases, install and uninstall', async () => {
    const pod = modulePod('biz1', [{ name: 'biz1' }], { nodeName: 'vnode.b1' });
    await world.admin.post('/api/v1/namespaces/default/pods', pod);
    await ready('biz1');
    await world.admin.delete(podPath('biz1'));
    await eventually(async () => expect(await findPod(world.admin, 'biz1')).toBeUndefined());
    const commands = fleets.get('b1')?.history.records({ bizName: 'biz1' });
    expect(commands?.map(({ command, outcome }) => `${command} ${outcome}`)).toEqual([
      'installBiz executed',
      'uninstallBiz executed',
    ]);
  });

  it('proves the link after the broker was killed, by the echo topic: bases are judged again at once', async () => {
    await world.broker.pause();
    const frozen = () => controller.metric('module_controller_liveness_frozen', 'mqtt_tunnel_provider');
    await eventually(async () => expect(await frozen()).toBe(1));
    await world.broker.resume();
    await controller.line(({ msg }) => msg === 'link is proven, silent bases are asked');
    await eventually(async () => expect(await frozen()).toBe(0));
    const pod = modulePod('biz2', [{ name: 'biz2' }], { nodeName: 'vnode.b2' });
    await world.admin.post('/api/v1/namespaces/default/pods', pod);
    await ready('biz2');
  });

  it('lets no base command another one, nor speak in its name', async () => {
    const thief = await connectAsync(world.broker.url, { username: 'b1', password: passwordOf('b1') });
    const install = { bizName: 'evil', bizVersion: '1', bizUrl: 'https://evil.example/evil.jar' };
    const data = { baseMetadata: { identity: 'b9' }, localIP: '198.51.100.99', localHostName: 'b9', port: 0 };
    await thief.publishAsync('koupleless_dev/b2/installBiz', JSON.stringify(install), { qos: 1 });
    await thief.publishAsync('koupleless_dev/b9/base/heart', JSON.stringify({ publishTimestamp: 1, data }), { qos: 1 });
    // Its own word goes through, so what came before it was dropped.
    const before = await controller.metric('module_controller_tunnel_invalid_messages_total', 'Arklet.InvalidMessage');
    await thief.publishAsync('koupleless_dev/b1/base/heart', 'no json', { qos: 1 });
    await eventually(async () =>
      expect(await controller.metric('module_controller_tunnel_invalid_messages_total', 'Arklet.InvalidMessage')).toBe(
        before + 1,
      ),
    );
    await thief.endAsync();
    expect((await nodes(world.admin)).map(({ metadata }) => metadata.name).sort()).toEqual(['vnode.b1', 'vnode.b2']);
    expect(fleets.get('b2')?.history.records({ bizName: 'evil' })).toEqual([]);
  });

  it('refuses a stranger', async () => {
    await expect(connectAsync(world.broker.url, { reconnectPeriod: 0 })).rejects.toThrow(/not authorized/i);
  });
});
