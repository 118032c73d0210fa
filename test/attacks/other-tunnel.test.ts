import { afterAll, beforeAll, expect, it } from 'vitest';
import { firstExternalAddress } from '../../samples/base-simulator/external-address.ts';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { startBroker } from '../../samples/broker/broker.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { eventsOf, findNode, findPod, isReady } from '../support/observe.ts';
import { createPod, readyPod } from '../support/pod-life.ts';
import { Spectator } from '../support/spectator.ts';
import { startWorld } from '../support/start-world.ts';
import { MqttTransport } from '../support/transport.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const TUNNEL_LABEL = 'vnode.koupleless.io/tunnel';
const MQTT = 'mqtt_tunnel_provider';
/** A base over MQTT, whose identity a stranger takes who reaches the HTTP port: there is no HTTP_TUNNEL_TOKEN. */
const VICTIM = 'victim';
const ACCESS = { username: 'everybody', password: 'secret of everybody' };

let world: World;
let controller: ControllerProcess;
let overMqtt: Fleet;
let overHttp: Fleet;

beforeAll(async () => {
  world = await startWorld({ transport: new MqttTransport(await startBroker({ credentials: ACCESS })) });
  controller = await startController();
  overMqtt = await world.startFleet({ ...ACCESS, bases: [{ identity: VICTIM }] });
  overHttp = await world.startFleet({ ...(await strangersTarget()), bases: [{ identity: 'honest' }] });
});

afterAll(() => world?.stop());

function startController(): Promise<ControllerProcess> {
  return world.startController({
    ENABLE_HTTP_TUNNEL: 'true',
    HTTP_TUNNEL_LISTEN_PORT: '0',
    MQTT_USERNAME: ACCESS.username,
    MQTT_PASSWORD: ACCESS.password,
  });
}

async function strangersTarget() {
  const { port } = await controller.line(
    (line) => line.msg === 'listening' && JSON.stringify(line).includes('http_tunnel_provider'),
  );
  return { brokerUrl: undefined, controllerUrl: `http://${firstExternalAddress()}:${port}` };
}

async function tunnelOf(identity: string): Promise<string | undefined> {
  return (await findNode(world.admin, identity))?.metadata.labels?.[TUNNEL_LABEL];
}

async function install(name: string, identity: string): Promise<void> {
  await createPod(world.admin, modulePod(name, [{ name }], { nodeName: `vnode.${identity}` }));
  await readyPod(world.admin, name);
}

it('both tunnels have their bases', async () => {
  for (const identity of [VICTIM, 'honest']) {
    await eventually(async () => expect(isReady(await findNode(world.admin, identity))).toBe(true));
    await install(`on-${identity}`, identity);
  }
});

it('a stranger over HTTP never gets the Node of a silent base over MQTT, also after a restart of the controller', async () => {
  const before = await findNode(world.admin, VICTIM);
  const spectator = await Spectator.watch(world.admin, '/api/v1/nodes');
  await overMqtt.base(VICTIM).kill();
  await controller.stop('SIGKILL');
  controller = await startController();
  const stranger = await world.startFleet({ ...(await strangersTarget()), bases: [{ identity: VICTIM }] });
  // Bound before the controller sees that the base is silent, as a scheduler may do it.
  await createPod(world.admin, modulePod('secret', [{ name: 'secret' }], { nodeName: `vnode.${VICTIM}` }));
  await eventually(async () => expect(isReady(await findNode(world.admin, VICTIM))).toBe(false), 60_000);
  await eventually(async () => {
    const events = await eventsOf(world.admin, 'Node', `vnode.${VICTIM}`);
    expect(events.map(({ reason }) => reason)).toContain('BaseRefused');
  }, 60_000);
  // Its Node goes because of the silence, with its Pods.
  await eventually(async () => {
    const deleted = spectator.of(`vnode.${VICTIM}`).filter(({ isGone }) => isGone);
    expect(deleted.map(({ uid }) => uid)).toContain(before?.metadata.uid);
  }, 90_000);
  const ofItsNode = spectator.of(`vnode.${VICTIM}`).filter(({ uid }) => uid === before?.metadata.uid);
  expect(new Set(ofItsNode.map(({ labels }) => labels[TUNNEL_LABEL]))).toEqual(new Set([MQTT]));
  expect(stranger.history.records({ bizName: 'secret' })).toEqual([]);
  expect(stranger.history.records({ bizName: `on-${VICTIM}` })).toEqual([]);
  spectator.stop();
}, 240_000);

it('the base over MQTT has its identity back at its first heartbeat, while the stranger goes on', async () => {
  // The stranger has a Node by now: it has made up an identity that nobody had.
  await eventually(async () => expect(await tunnelOf(VICTIM)).toBe('http_tunnel_provider'), 60_000);
  const startedAt = Date.now();
  await overMqtt.base(VICTIM).restart();
  await eventually(async () => expect(await tunnelOf(VICTIM)).toBe(MQTT));
  expect(Date.now() - startedAt).toBeLessThan(5_000);
  await install('again', VICTIM);
  expect(overMqtt.base(VICTIM).modules()).toHaveLength(1);
  expect(overMqtt.history.records({ bizName: 'again' })).toHaveLength(1);
  expect(overHttp.base('honest').modules()).toHaveLength(1);
  expect(isReady(await findPod(world.admin, 'on-honest'))).toBe(true);
});
