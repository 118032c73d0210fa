import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { firstExternalAddress } from '../../samples/base-simulator/external-address.ts';
import { startBroker } from '../../samples/broker/broker.ts';
import { ApiError } from '../../samples/control-plane/api-client.ts';
import type { NodeObject } from '../../src/kube/objects.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { eventsOf, findNode, findPod, isReady } from '../support/observe.ts';
import { createPod, readyPod } from '../support/pod-life.ts';
import { startWorld } from '../support/start-world.ts';
import { MqttTransport } from '../support/transport.ts';
import type { World } from '../support/world.ts';

/** Says that its address is that of a server which it may not reach, and what it is in control characters and markup. */
const HOSTILE = 'mallory';
const HONEST = 'alice';
const HONEST_IP = '198.51.100.7';
const NAME = '<img src=x>\u001b[2J\u202e[a](b)';

let world: World;
let server: Server;

beforeAll(async () => {
  server = createServer((_, response) => response.end('the secret'));
  await new Promise<void>((listening) => server.listen(0, firstExternalAddress(), listening));
  world = await startWorld({ transport: new MqttTransport(await startBroker()) });
  await world.startFleet({
    bases: [
      { identity: HOSTILE, localIP: firstExternalAddress(), name: NAME, version: '1\u0007', localHostName: NAME },
      { identity: HONEST, localIP: HONEST_IP },
      { identity: 'local', localIP: '127.0.0.1' },
    ],
    // What the controller reads of the bases comes soon after its start.
    heartbeatMs: 1_000,
  });
});

afterAll(async () => {
  await world?.stop();
  server?.close();
});

const addressesOf = (node: NodeObject | undefined) =>
  node?.status?.addresses?.filter(({ type }) => type === 'InternalIP').map(({ address }) => address);

/** As a tenant whose Pod it is: the API server calls the address that the status shows. */
async function readThrough(podName: string): Promise<string> {
  const { port } = server.address() as { port: number };
  try {
    return String(await world.admin.get(`/api/v1/namespaces/default/pods/${podName}:${port}/proxy/`));
  } catch (error) {
    if (error instanceof ApiError) return 'refused';
    throw error;
  }
}

it('without BASE_NETWORKS the API server reads an address that a base names, for whoever may use its Pod', async () => {
  const controller = await world.startController();
  for (const identity of [HOSTILE, HONEST]) {
    await eventually(async () => expect(isReady(await findNode(world.admin, identity))).toBe(true));
    await createPod(
      world.admin,
      modulePod(`on-${identity}`, [{ name: `on-${identity}` }], { nodeName: `vnode.${identity}` }),
    );
    await readyPod(world.admin, `on-${identity}`);
  }
  expect(await readThrough(`on-${HOSTILE}`)).toBe('the secret');
  expect(addressesOf(await findNode(world.admin, 'local'))).toEqual([]);
  await controller.stop();
});

it('with BASE_NETWORKS neither Nodes nor Pods show other addresses, also those that they showed before', async () => {
  await world.startController({ BASE_NETWORKS: '198.51.100.0/24' });
  await eventually(async () => {
    expect(addressesOf(await findNode(world.admin, HOSTILE))).toEqual([]);
    const { podIP, podIPs, hostIP, hostIPs } = (await findPod(world.admin, `on-${HOSTILE}`))?.status ?? {};
    expect([podIP, podIPs, hostIP, hostIPs]).toEqual([undefined, undefined, undefined, undefined]);
  });
  expect(await readThrough(`on-${HOSTILE}`)).toBe('refused');
  // Both still work.
  for (const identity of [HOSTILE, HONEST]) {
    await createPod(
      world.admin,
      modulePod(`new-${identity}`, [{ name: `new-${identity}` }], { nodeName: `vnode.${identity}` }),
    );
    await readyPod(world.admin, `new-${identity}`);
  }
  expect((await findPod(world.admin, `new-${HOSTILE}`))?.status?.podIP).toBeUndefined();
  expect((await findPod(world.admin, `new-${HONEST}`))?.status?.podIP).toBe(HONEST_IP);
  expect(addressesOf(await findNode(world.admin, HONEST))).toEqual([HONEST_IP]);
  // Nothing is written again and again; what is new of the base may still be.
  let count = 0;
  await eventually(async () => {
    const name = `last-${count++}`;
    const version = (await findNode(world.admin, HOSTILE))?.metadata.resourceVersion;
    await createPod(world.admin, modulePod(name, [{ name }], { nodeName: `vnode.${HOSTILE}` }));
    await readyPod(world.admin, name);
    expect((await findNode(world.admin, HOSTILE))?.metadata.resourceVersion).toBe(version);
  });
});

it('what a base says of itself is plain text in its Node and in events', async () => {
  const node = await findNode(world.admin, HOSTILE);
  expect(node?.status?.nodeInfo?.osImage).toBe('img src=x 2J a (b) 1');
  const events = await eventsOf(world.admin, 'Node', `vnode.${HOSTILE}`);
  expect(events.length).toBeGreaterThan(0);
  const { labels, annotations } = node?.metadata ?? {};
  const texts = [labels, annotations, node?.spec, node?.status, events.map(({ message }) => message)];
  for (const text of textsIn(texts)) expect(text).not.toMatch(/[\p{Cc}\p{Cf}<>`[\]]/u);
});

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)]);
}
