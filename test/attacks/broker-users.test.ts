import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { Mosquitto } from '../../samples/broker/mosquitto.ts';
import { CONTROLLER_ACCESS, passwordOf, startDocumentedMosquitto } from '../support/documented-mosquitto.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { isSchedulable, nodes } from '../support/observe.ts';
import { createPod, readyPod, removePod } from '../support/pod-life.ts';
import { Spectator } from '../support/spectator.ts';
import { startWorld } from '../support/start-world.ts';
import { MqttTransport } from '../support/transport.ts';
import type { ControllerProcess, World } from '../support/world.ts';

/** Mosquitto as docs/install.md describes it. One of its users is in the wrong hands. */
const HOSTILE = 'mallory';
const VICTIM = 'alice';
/** A base that only listens. */
const WITNESS = 'bob';
const USERS = [HOSTILE, VICTIM, WITNESS];
const CONTROLLER_ID = 'koupleless@@@controller-0';
/** Longer than silence is borne. */
const ATTACK_MS = 27_000;

let broker: Mosquitto;
let world: World;
let controller: ControllerProcess;
let fleet: Fleet;

beforeAll(async () => {
  broker = await startDocumentedMosquitto(USERS);
  world = await startWorld({ transport: new MqttTransport(broker) });
  controller = await world.startController(CONTROLLER_ACCESS);
  fleet = await world.startFleet({ username: VICTIM, password: passwordOf(VICTIM), bases: [{ identity: VICTIM }] });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(1));
});

afterAll(() => world?.stop());

interface Connection extends IClientOptions {
  /** Default: that of bases. */
  readonly url?: string;
}

async function as(username: string, password: string, { url = broker.url, ...more }: Connection = {}) {
  const options = { protocolVersion: 4, reconnectPeriod: 0, username, password, ...more } as const;
  const client = await connectAsync(url, options);
  onTestFinished(() => client.endAsync(true));
  return client;
}

const asHostile = (more: Connection = {}): Promise<MqttClient> => as(HOSTILE, passwordOf(HOSTILE), more);
const controllersUrl = (): string => `mqtt://127.0.0.1:${broker.port}`;
const asController = (more: Connection = {}): Promise<MqttClient> =>
  as(CONTROLLER_ACCESS.MQTT_USERNAME, CONTROLLER_ACCESS.MQTT_PASSWORD, { url: controllersUrl(), ...more });

function heartOf(identity: string, state = 'ACTIVATED'): string {
  const baseMetadata = { identity, name: 'forged', version: '1' };
  const data = { baseMetadata, localIP: '198.51.100.66', localHostName: 'forged', port: 0, state };
  return JSON.stringify({ publishTimestamp: Date.now(), data });
}

/** How often the controller has lost its link, and what its log says of it. */
const lostLinks = (): number => controller.lines.filter(({ msg }) => msg === 'no link to the broker').length;
const heard = (type: string): Promise<number> =>
  controller.metric('module_controller_tunnel_messages_total', `type="${type}"`);

/** A message of the hostile base about itself: all that it sent before on this connection was taken or dropped by then. */
async function afterAllOf(client: MqttClient): Promise<void> {
  const before = await heard('health');
  await client.publishAsync(`koupleless_dev/${HOSTILE}/base/health`, '{}', { qos: 1 });
  await eventually(async () => expect(await heard('health')).toBeGreaterThan(before));
}

const commandsTo = (bizName: string) => fleet.history.records({ bizName });

describe('a user of a base', () => {
  it('throws out neither the controller nor another base by their client ids', async () => {
    const spectator = await Spectator.watch(world.admin, '/api/v1/nodes');
    const hearts = await heard('heart');
    const endsAt = Date.now() + ATTACK_MS;
    let connections = 0;
    while (Date.now() < endsAt) {
      for (const clientId of [CONTROLLER_ID, VICTIM, `koupleless@@@${VICTIM}`]) {
        const client = await asHostile({ clientId });
        connections++;
        await client.endAsync(true);
      }
    }
    await createPod(world.admin, modulePod('during', [{ name: 'during' }], { nodeName: `vnode.${VICTIM}` }));
    await readyPod(world.admin, 'during');
    spectator.stop();
    expect(connections).toBeGreaterThan(100);
    expect(lostLinks()).toBe(0);
    expect(await heard('heart')).toBeGreaterThanOrEqual(hearts + 2);
    expect(spectator.everNotReady()).toEqual([]);
  });

  it('throws itself out, whatever client id it gives: the broker takes its user name for it', async () => {
    const first = await asHostile({ clientId: 'one' });
    const closed = new Promise<void>((resolve) => first.once('close', resolve));
    await asHostile({ clientId: 'another' });
    await closed;
  });

  it('does not come in where controllers do, nor with a wrong password', async () => {
    await expect(asHostile({ url: controllersUrl(), clientId: VICTIM })).rejects.toThrow(/not authorized/i);
    await expect(as(VICTIM, passwordOf(HOSTILE))).rejects.toThrow(/not authorized/i);
    await expect(as('', '')).rejects.toThrow();
  });

  it('does not speak as another base, with a message or a last will', async () => {
    const node = (await nodes(world.admin))[0];
    const hearts = await heard('heart');
    const will = { topic: `koupleless_dev/${VICTIM}/base/heart`, payload: Buffer.from(heartOf(VICTIM, 'DEACTIVATED')) };
    const dying = await asHostile({ will: { ...will, qos: 1, retain: false } });
    dying.stream.destroy();
    const client = await asHostile();
    for (const identity of [VICTIM, 'nobody']) {
      await client.publishAsync(`koupleless_dev/${identity}/base/heart`, heartOf(identity, 'DEACTIVATED'), { qos: 1 });
      await client.publishAsync(`koupleless_dev/${identity}/base/heart`, heartOf(identity), { qos: 1, retain: true });
      await client.publishAsync(`koupleless_dev/${identity}/base/simpleBiz`, '{"data":[]}', { qos: 1 });
    }
    await afterAllOf(client);
    // At most the victim's own, once in 10 s.
    expect((await heard('heart')) - hearts).toBeLessThanOrEqual(1);
    const now = await nodes(world.admin);
    expect(now.map(({ metadata }) => metadata.uid)).toEqual([node?.metadata.uid]);
    expect(now[0]?.metadata.labels?.['base.koupleless.io/name']).not.toBe('forged');
  });

  it('commands no other base', async () => {
    const client = await asHostile();
    const evil = { bizName: 'evil', bizVersion: '1', bizUrl: 'https://evil.example/evil.jar' };
    for (const retain of [false, true])
      await client.publishAsync(`koupleless_dev/${VICTIM}/installBiz`, JSON.stringify(evil), { qos: 1, retain });
    await client.publishAsync(`koupleless_dev/${VICTIM}/base/baseline`, JSON.stringify([evil]), { qos: 1 });
    await afterAllOf(client);
    // The next command arrives behind them.
    await createPod(world.admin, modulePod('behind', [{ name: 'behind' }], { nodeName: `vnode.${VICTIM}` }));
    await readyPod(world.admin, 'behind');
    expect(commandsTo('behind').length).toBeGreaterThan(0);
    expect(commandsTo('evil')).toEqual([]);
  });

  it('hears neither the commands of another base, with their variables, nor its messages, nor the controller', async () => {
    const client = await asHostile();
    const topics: string[] = [];
    client.on('message', (topic) => topics.push(topic));
    const filters = ['#', '+/#', '$SYS/#', `koupleless_dev/${VICTIM}/+`, `koupleless_dev/${VICTIM}/base/+`];
    await client.subscribeAsync([...filters, 'koupleless_dev/controller/#'], { qos: 1 });
    await createPod(world.admin, modulePod('secret', [{ name: 'secret' }], { nodeName: `vnode.${VICTIM}` }));
    await readyPod(world.admin, 'secret');
    // A command of its own comes behind them.
    const operator = await asController();
    await operator.publishAsync(`koupleless_dev/${HOSTILE}/health`, '{}', { qos: 1 });
    await eventually(() => expect(topics).toContain(`koupleless_dev/${HOSTILE}/health`));
    expect(topics.filter((topic) => topic !== `koupleless_dev/${HOSTILE}/health`)).toEqual([]);
    await removePod(world.admin, 'secret');
  });
});

describe('the user of the controller', () => {
  it('does no more than the controller needs: it speaks as no base, hears no command, and is of one ENV', async () => {
    const client = await asController();
    const topics: string[] = [];
    client.on('message', (topic) => topics.push(topic));
    await client.subscribeAsync(['#', '$SYS/#', 'koupleless_dev/+/+', 'koupleless_prod/#'], { qos: 1 });
    const base = await as(WITNESS, passwordOf(WITNESS));
    const forbidden = [
      `koupleless_dev/${WITNESS}/base/heart`,
      `koupleless_dev/${WITNESS}/base/baseline`,
      `koupleless_dev/${WITNESS}/switchBiz`,
      `koupleless_prod/${WITNESS}/installBiz`,
      'elsewhere',
    ];
    const atBase: string[] = [];
    base.on('message', (topic) => atBase.push(topic));
    await base.subscribeAsync([`koupleless_dev/${WITNESS}/+`, `koupleless_dev/${WITNESS}/base/baseline`], { qos: 1 });
    for (const topic of forbidden) await client.publishAsync(topic, heartOf(WITNESS), { qos: 1 });
    await client.publishAsync(`koupleless_dev/${WITNESS}/health`, '{}', { qos: 1 });
    await eventually(() => expect(atBase).toContain(`koupleless_dev/${WITNESS}/health`));
    await base.publishAsync(`koupleless_dev/${WITNESS}/base/heart`, heartOf(WITNESS), { qos: 1 });
    await eventually(() => expect(topics).toContain(`koupleless_dev/${WITNESS}/base/heart`));
    expect(atBase.filter((topic) => !/\/(health|queryAllBiz)$/.test(topic))).toEqual([]);
    // What bases say, and the echo of the controller.
    expect(
      topics.filter((topic) => !/^koupleless_dev\/([^/]+\/base\/[^/]+|controller\/.+\/echo)$/.test(topic)),
    ).toEqual([]);
    expect(topics.filter((topic) => topic === `koupleless_dev/${WITNESS}/base/heart`)).toHaveLength(1);
  });

  it('does not come in where bases do', async () => {
    await expect(asController({ url: broker.url })).rejects.toThrow(/not authorized/i);
  });
});
