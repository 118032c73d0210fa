import { createServer } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { firstExternalAddress } from '../../samples/base-simulator/external-address.ts';
import { eventually } from '../support/eventually.ts';
import { findNode, isReady, nodes } from '../support/observe.ts';
import { startWorld } from '../support/start-world.ts';
import { startTransport } from '../support/transport.ts';
import type { ControllerProcess, World } from '../support/world.ts';
import { type Flood, floodHttp, floodMqtt, type PlaceOf } from './flood.ts';

const HONEST = 10;
/** What may get a Node without an answer, by default. */
const NEW_BASES_PER_MINUTE = 60;
const MIB = 1024 ** 2;

let world: World | undefined;
let flood: Flood | undefined;

afterEach(async () => {
  await flood?.stop();
  await world?.stop();
});

/** Honest bases are Ready before the flood begins. */
async function open(
  transport: 'aedes' | 'http',
  env: Record<string, string> = {},
): Promise<{ world: World; controller: ControllerProcess }> {
  world = await startWorld({ transport: await startTransport(transport) });
  if (transport === 'aedes') world.aedes.recorder.enabled = false;
  const controller = await world.startController(env);
  await world.startFleet({ count: HONEST });
  const { admin } = world;
  await eventually(async () => expect((await nodes(admin)).filter(isReady)).toHaveLength(HONEST));
  return { world, controller };
}

async function newcomerIsReady(at: World, withinMs: number): Promise<void> {
  await at.startFleet({ bases: [{ identity: 'newcomer' }] });
  await eventually(async () => expect(isReady(await findNode(at.admin, 'newcomer'))).toBe(true), withinMs);
}

/** Nobody honest was harmed, and the controller has not grown. */
async function expectBounded({ admin }: World, controller: ControllerProcess): Promise<void> {
  const all = await nodes(admin);
  expect(all.length).toBeLessThanOrEqual(HONEST + 1 + NEW_BASES_PER_MINUTE);
  const honest = all.filter(({ metadata }) => /^vnode\.(base-|newcomer)/.test(metadata.name ?? ''));
  expect(honest.filter(isReady)).toHaveLength(HONEST + 1);
  const harmed = controller.lines.filter(
    ({ msg, ready, node }) => msg === 'tunnel is down' || (ready === 'False' && !`${node}`.startsWith('vnode.flood')),
  );
  expect(harmed).toEqual([]);
  expect(await controller.metric('process_resident_memory_bytes')).toBeLessThan(300 * MIB);
}

it('over MQTT, by new identities on a broker that lets anybody in, makes few Nodes and harms nobody', async () => {
  const { world: at, controller } = await open('aedes');
  flood = await floodMqtt(at.broker.url, 3_000);
  const refused = (): Promise<number> => controller.metric('module_controller_intake_refused_total', '"Unknown"');
  await eventually(async () => expect(await refused()).toBeGreaterThan(10_000));
  // Its first heartbeat may be refused among the flood; the second, 10 s later, is preferred.
  await newcomerIsReady(at, 15_000);
  await eventually(async () => expect(await refused()).toBeGreaterThan(30_000));
  expect(await controller.metric('module_controller_unproven_bases')).toBeLessThanOrEqual(8_000);
  await expectBounded(at, controller);
});

it('a replica asks bases that it does not lead yet, so that they get their Nodes', async () => {
  const { controller } = await open('aedes', { IS_CLUSTER: 'true', NEW_BASES_PER_MINUTE: '0' });
  await eventually(async () => expect(await controller.metric('module_controller_leases_held')).toBe(HONEST));
});

const SOURCE = '127.0.0.2';

/** What a source of its own does over HTTP while a newcomer comes. Returns how many questions for health were sent. */
async function floodOverHttp(at: World, controller: ControllerProcess, placeOf: PlaceOf): Promise<number> {
  const target = Number(new URL(await at.controllerUrl()).port);
  flood = await floodHttp(target, { from: SOURCE, placeOf, perSecond: 500 });
  await eventually(() => expect(flood?.statuses.get(429)).toBeGreaterThan(0));
  await newcomerIsReady(at, 10_000);
  await eventually(() => expect(flood?.sent).toBeGreaterThan(7_500));
  await expectBounded(at, controller);
  return controller.metric('module_controller_tunnel_commands_total', '"health"');
}

const openHttp = () => open('http', { HTTP_TUNNEL_BASE_NETWORKS: `127.0.0.0/8,${firstExternalAddress()}/32` });

it('over HTTP, from a source of its own with the addresses of others, is asked little and makes no Node', async () => {
  const { world: at, controller } = await openHttp();
  // Takes connections and says nothing: what costs the controller most.
  const silent = createServer((socket) => socket.on('error', () => {}));
  await new Promise<void>((resolve) => silent.listen(0, '0.0.0.0', resolve));
  try {
    const { port } = silent.address() as { port: number };
    const placeOf: PlaceOf = (number) => ({ ip: `127.9.${number >> 8}.${number & 255}`, port });
    // 100 and 50 a second.
    expect(await floodOverHttp(at, controller, placeOf)).toBeLessThan(2_000);
    expect(await nodes(at.admin)).toHaveLength(HONEST + 1);
  } finally {
    silent.close();
  }
});

it('over HTTP, from a source of its own with its own address, is asked little and makes few Nodes', async () => {
  const { world: at, controller } = await openHttp();
  const placeOf: PlaceOf = (number) => ({ ip: SOURCE, port: 10_000 + number });
  // 512 and 5 a second.
  expect(await floodOverHttp(at, controller, placeOf)).toBeLessThan(2_000);
  expect(await controller.metric('module_controller_new_bases_refused_total', '"Questions"')).toBeGreaterThan(1_000);
});
