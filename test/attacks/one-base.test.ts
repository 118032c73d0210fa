import { setTimeout } from 'node:timers/promises';
import { connectAsync, type MqttClient } from 'mqtt';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { NodeObject } from '../../src/kube/objects.ts';
import { CONTROLLER_ACCESS, passwordOf, startDocumentedMosquitto } from '../support/documented-mosquitto.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { findNode, isSchedulable, nodes } from '../support/observe.ts';
import { createPod, readyPod, removePod } from '../support/pod-life.ts';
import { MqttTransport } from '../support/transport.ts';
import { CONTROLLER_USER, type ControllerProcess, type OwnWorld, startOwnWorld } from '../support/world.ts';
import { beginAttack } from './begin-attack.ts';

/** One base is in the wrong hands: it has its own credential, and the rights that docs/install.md gives to a base. */
const HOSTILE = 'mallory';
const HONEST = 'alice';
const NEWCOMER = 'bob';
const LIST_SIZE = 2_000;
const ROUND_MS = 50;
const HONEST_PODS = 10;
/** The honest Pods come one after the other. Without the bounds the first was not Ready after 60 s. */
const READY_WITHIN_MS = 8_000;
/** On a slow machine the limit is this many times what the slowest of three Pods took before the flood. */
const TIMES_CALM = 10;

let world: OwnWorld;
let controller: ControllerProcess;
let honest: Fleet;
let client: MqttClient;

beforeAll(async () => {
  const broker = await startDocumentedMosquitto([HOSTILE, HONEST, NEWCOMER]);
  world = await startOwnWorld({ auditLog: true }, { transport: new MqttTransport(broker) });
  controller = await world.startController(CONTROLLER_ACCESS);
  honest = await startBase(HONEST);
  client = await connectAsync(broker.url, { username: HOSTILE, password: passwordOf(HOSTILE) });
  await say('heart', heartOf(0));
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(2));
});

afterAll(async () => {
  await client?.endAsync(true);
  await world?.stop();
});

const isUsable = (node: NodeObject | undefined): boolean => node !== undefined && isSchedulable(node);

function startBase(identity: string): Promise<Fleet> {
  return world.startFleet({ username: identity, password: passwordOf(identity), bases: [{ identity }] });
}

async function say(type: string, data: unknown): Promise<void> {
  const payload = JSON.stringify({ publishTimestamp: Date.now(), data });
  await client.publishAsync(`koupleless_dev/${HOSTILE}/base/${type}`, payload, { qos: 1 });
}

function heartOf(index: number) {
  const baseMetadata = { identity: HOSTILE, name: `name-${index}`, version: `${index}`, clusterName: `c-${index}` };
  return { baseMetadata, localIP: '198.51.100.66', localHostName: `host-${index}`, port: 0, state: 'ACTIVATED' };
}

/** Names that no list had before. */
function listOf(round: number) {
  const nameOf = (index: number): string => `r${round}-${index}`;
  return Array.from({ length: LIST_SIZE }, (_, index) => ({ name: nameOf(index), version: '1', state: 'ACTIVATED' }));
}

/** 20 rounds a second, or fewer, until `signal` is aborted. Returns how many lists and heartbeats were sent. */
async function flood(signal: AbortSignal): Promise<{ lists: number; hearts: number }> {
  const sent = { lists: 0, hearts: 0 };
  const response = { code: 'FAILED', message: 'nobody asked' };
  for (let round = 1; !signal.aborted; round++) {
    const messages = [say('simpleBiz', listOf(round)), say('queryBaseline', heartOf(round).baseMetadata)];
    for (let part = 0; part < 5; part++) {
      sent.hearts++;
      messages.push(say('heart', heartOf(sent.hearts)));
      messages.push(
        say('bizOperation', { command: 'installBiz', bizName: `r${round}-${part}`, bizVersion: '1', response }),
      );
    }
    sent.lists++;
    await Promise.all([...messages, setTimeout(ROUND_MS)]);
  }
  return sent;
}

/** Resolves with how long a new Pod of the honest base took to be Ready, ms. */
async function honestPod(name: string, withinMs?: number): Promise<number> {
  const startedAt = Date.now();
  await createPod(world.admin, modulePod(name, [{ name }], { nodeName: `vnode.${HONEST}` }));
  await readyPod(world.admin, name, withinMs);
  return Date.now() - startedAt;
}

it('one base that floods does not slow down another one, nor fill the API server, the log or the memory', async ({
  annotate,
}) => {
  const { admin, controlPlane } = world;
  const calmMs = [await honestPod('calm-0'), await honestPod('calm-1'), await honestPod('calm-2')];
  const withinMs = Math.max(READY_WITHIN_MS, TIMES_CALM * Math.max(...calmMs));
  const since = await controlPlane.mark();
  const lineCount = controller.lines.length;
  const startedAt = Date.now();
  const endFlood = beginAttack(flood);

  const honestMs: number[] = [];
  for (let index = 0; index < HONEST_PODS; index++) honestMs.push(await honestPod(`honest-${index}`, withinMs));
  await annotate(
    `a Pod was Ready after at most ${Math.max(...calmMs)} ms, and ${Math.max(...honestMs)} ms in the flood`,
  );
  // Enough of it that a write, a line or a list for each message would show.
  await eventually(async () =>
    expect(await controller.metric('module_controller_tunnel_messages_total', 'type="heart"')).toBeGreaterThan(1_000),
  );
  const sent = await endFlood();
  const seconds = (Date.now() - startedAt) / 1_000;

  const skipped = await controller.metric('module_controller_skipped_lists_total', 'reason="rate"');
  expect(sent.lists).toBeGreaterThan(3 * seconds);
  expect(skipped).toBeGreaterThan(0.5 * (sent.lists - 3 * seconds));

  const writes = await controlPlane.requestCounts({ user: CONTROLLER_USER, verb: 'patch', since });
  // Of both Nodes: labels and what follows from them in the status, once in 10 s, and the metaspace as often.
  const nodeWrites = writes.count({ resource: 'nodes' }) + writes.count({ resource: 'nodes/status' });
  expect(nodeWrites).toBeLessThan(10 + 0.6 * seconds);

  const lines = controller.lines.slice(lineCount).filter(({ node }) => node === `vnode.${HOSTILE}`);
  expect(lines.length).toBeLessThan(40 + 0.2 * seconds);
  expect(lines.some(({ suppressed }) => Number(suppressed) > 0) || lines.length < 30).toBe(true);

  // No Pod of the honest base was ended, and nothing was uninstalled.
  expect(honest.history.records({ command: 'uninstallBiz' })).toEqual([]);
  // The hostile base is a base: its Node stays, and shows one of its names.
  expect((await findNode(admin, HOSTILE))?.metadata.labels?.['base.koupleless.io/name']).toMatch(/^name-/);
  expect(await controller.metric('module_controller_unknown_modules')).toBeLessThanOrEqual(4_000);
  await removePod(admin, 'honest-0');
});

it('one base that says goodbye and comes back all the time gets a Node now and then, and keeps nobody out', async () => {
  const { admin, controlPlane } = world;
  const since = await controlPlane.mark();
  const startedAt = Date.now();
  const refused = (): Promise<number> =>
    controller.metric('module_controller_new_bases_refused_total', 'reason="Flapping"');
  const come = () => say('heart', heartOf(0));
  const go = () => say('heart', { ...heartOf(0), state: 'DEACTIVATED' });
  // Each time it waits until its Node is made, so that every round costs what it can.
  for (let round = 0; (await refused()) === 0; round++) {
    expect(round).toBeLessThan(10);
    await go();
    await eventually(async () => expect(await findNode(admin, HOSTILE)).toBeUndefined());
    await eventually(async () => {
      await come();
      expect((await refused()) > 0 || (await findNode(admin, HOSTILE)) !== undefined).toBe(true);
    });
  }
  const endFlapping = beginAttack(async (signal) => {
    while (!signal.aborted) await Promise.all([come(), go(), setTimeout(ROUND_MS)]);
  });
  await startBase(NEWCOMER);
  await eventually(async () => expect(await findNode(admin, NEWCOMER).then(isUsable)).toBe(true), 10_000);
  await endFlapping();
  const seconds = (Date.now() - startedAt) / 1_000;
  const made = await controlPlane.requestCounts({ user: CONTROLLER_USER, verb: 'create', since });
  // At least one of the hostile base, and that of the newcomer. At most five at once, and one every 15 s.
  expect(made.count({ resource: 'nodes' })).toBeGreaterThanOrEqual(2);
  expect(made.count({ resource: 'nodes' })).toBeLessThanOrEqual(6 + Math.ceil(seconds / 15));
});
