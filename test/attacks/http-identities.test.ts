import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { SimulatedBase } from '../../samples/base-simulator/simulated-base.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { findNode, findPod, isReady } from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

let world: World;
let controller: ControllerProcess;
/** Posts from the address that it names. */
let direct: Fleet;
/** Posts from another one, as through a sidecar, SNAT or a proxy: it is proven by its answers. */
let proxied: Fleet;
/** Where a stranger posts to, from an address that no base names. */
let strangersUrl: string;

beforeAll(async () => {
  world = await startWorld();
  controller = await world.startController();
  strangersUrl = `http://127.0.0.1:${new URL(await world.controllerUrl()).port}`;
  direct = await world.startFleet({ identityPrefix: 'direct-', count: 2, installMs: 3_000 });
  proxied = await world.startFleet({ identityPrefix: 'proxied-', count: 1, controllerUrl: strangersUrl });
});

afterAll(() => world?.stop());

async function forge(base: SimulatedBase, more: object = {}): Promise<void> {
  const { identity, localIP, port } = base;
  await post('heartbeat', { baseMetadata: metadataOf(identity), localIP, port, state: 'ACTIVATED', ...more });
}

async function post(path: string, body: object): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${strangersUrl}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(answer.status).toBe(200);
}

function metadataOf(identity: string): object {
  return { identity, name: 'forged', version: '1.0.0', clusterName: 'default' };
}

async function install(name: string, identity: string): Promise<string | undefined> {
  await world.controlPlane.apply([modulePod(name, [{ name }], { nodeName: `vnode.${identity}` })]);
  await eventually(async () => expect(isReady(await findPod(world.admin, name))).toBe(true));
  return (await findPod(world.admin, name))?.metadata.uid;
}

it('a base is found and takes modules, whether its heartbeats come from its own address or not', async () => {
  for (const identity of ['direct-1', 'proxied-1']) {
    await eventually(async () => expect(isReady(await findNode(world.admin, identity))).toBe(true));
    await install(`on-${identity}`, identity);
  }
});

it('a stranger who says goodbye for a base deletes neither its Node nor its Pod, and keeps nobody out', async () => {
  for (const base of [direct.base('direct-1'), proxied.base('proxied-1')]) {
    const node = await findNode(world.admin, base.identity);
    const pod = await findPod(world.admin, `on-${base.identity}`);
    const spectator = await Spectator.watch(world.admin, '/api/v1/nodes');
    await forge(base, { state: 'DEACTIVATED' });
    await forge(base, { port: 1 });
    // What comes after the goodbye in the same base's queue has been decided after it.
    await install(`after-${base.identity}`, base.identity);
    spectator.stop();
    expect((await findNode(world.admin, base.identity))?.metadata.uid).toBe(node?.metadata.uid);
    expect((await findPod(world.admin, `on-${base.identity}`))?.metadata.uid).toBe(pod?.metadata.uid);
    expect(spectator.sightings.filter(({ name, ready }) => name.endsWith(base.identity) && ready !== 'True')).toEqual(
      [],
    );
    expect(base.modules()).toHaveLength(2);
  }
});

it('a stranger who asks for the baseline has no command repeated', async () => {
  await world.controlPlane.apply([modulePod('slow', [{ name: 'slow' }], { nodeName: 'vnode.direct-1' })]);
  const installs = () => direct.history.records({ command: 'installBiz', bizName: 'slow' });
  await eventually(() => expect(installs()).toHaveLength(1));
  for (let times = 0; times < 6; times++) await post('queryBaseline', metadataOf('direct-1'));
  await eventually(async () => expect(isReady(await findPod(world.admin, 'slow'))).toBe(true));
  expect(installs()).toHaveLength(1);
});

it('a stranger with an address of its own that is heard first after a restart gets no base', async () => {
  const { identity, localIP } = direct.base('direct-1');
  const url = await world.controllerUrl();
  const stranger = createServer((_, response) => response.end('{}'));
  await new Promise<void>((listening) => stranger.listen(0, localIP, listening));
  const { port } = stranger.address() as { port: number };
  const body = JSON.stringify({ baseMetadata: metadataOf(identity), localIP, port, state: 'ACTIVATED' });
  const spectator = await Spectator.watch(world.admin, '/api/v1/nodes');
  await controller.stop('SIGKILL');
  const attack = new AbortController();
  let heard = 0;
  const attacking = (async () => {
    while (!attack.signal.aborted) {
      const headers = { 'content-type': 'application/json' };
      // Nobody listens before the controller has started.
      const answer = await fetch(`${url}/heartbeat`, { method: 'POST', headers, body }).catch(() => undefined);
      if (answer?.status === 200) heard++;
      await pause(20);
    }
  })();
  controller = await world.startController();
  await eventually(() => expect(heard).toBeGreaterThan(0));
  await install('after-restart', identity);
  attack.abort();
  await attacking;
  spectator.stop();
  stranger.close();
  expect(spectator.sightings.filter(({ labels }) => labels['vnode.koupleless.io/name'] === 'forged')).toEqual([]);
  expect(JSON.stringify(direct.base(identity).modules())).toContain('after-restart');
});

it('forged heartbeats keep no dead base Ready, while one that answers stays Ready', async () => {
  const dead = direct.base('direct-2');
  await eventually(async () => expect(isReady(await findNode(world.admin, 'direct-2'))).toBe(true));
  const spectator = await Spectator.watch(world.admin, '/api/v1/nodes');
  await dead.kill();
  await eventually(async () => {
    await forge(dead);
    expect(isReady(await findNode(world.admin, 'direct-2'))).toBe(false);
  }, 32_000);
  spectator.stop();
  expect(spectator.sightings.filter(({ name, ready }) => name === 'vnode.proxied-1' && ready !== 'True')).toEqual([]);
  expect((await findNode(world.admin, 'direct-2'))?.metadata.labels?.['vnode.koupleless.io/name']).not.toBe('forged');
});
