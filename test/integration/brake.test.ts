import { describe, expect, it, type TestContext } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { conditionOf, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

/** Three ENVs in one cluster, so that one wait serves all. */
const ENVS = [
  { env: 'one', bases: 1, dying: 1, replicas: 1 },
  { env: 'two', bases: 2, dying: 1, replicas: 2 },
  { env: 'ten', bases: 10, dying: 6, replicas: 4 },
];

interface Fleets {
  readonly world: World;
  readonly fleets: ReadonlyMap<string, Fleet>;
  readonly controllers: readonly ControllerProcess[];
}

/** Stops with the test. */
async function start({ onTestFinished }: TestContext): Promise<Fleets> {
  const world = await startWorld();
  onTestFinished(() => world.stop());
  const fleets = new Map<string, Fleet>();
  const controllers: ControllerProcess[] = [];
  for (const { env, bases, replicas } of ENVS) {
    controllers.push(await world.startController({ ENV: env, CLIENT_ID: `controller-${env}` }));
    fleets.set(env, await world.startFleet({ env, count: bases, identityPrefix: `${env}-` }));
    await world.controlPlane.apply(moduleWorkload(`app-${env}`, [{ name: `app-${env}` }], { env, replicas }));
  }
  await eventually(async () => {
    expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(13);
    expect((await pods(world.admin)).filter(isReady)).toHaveLength(7);
  }, 30_000);
  return { world, fleets, controllers };
}

function commandsSince(fleets: Fleets['fleets'], marks: ReadonlyMap<string, number>): string[] {
  return [...fleets].flatMap(([env, fleet]) =>
    fleet.history
      .records({ since: marks.get(env) ?? 0 })
      .filter(({ command }) => command === 'installBiz' || command === 'uninstallBiz')
      .map(({ base, command }) => `${base} ${command}`),
  );
}

/** They wait for long, each in a world of its own. */
describe.concurrent('the brake', () => {
  it('is on while a broker is down for 75 s: nobody is judged, nothing installed or uninstalled that is as wanted', async (context) => {
    const { world, fleets, controllers } = await start(context);
    const { admin, broker } = world;
    const nodesSeen = await Spectator.watch(admin, '/api/v1/nodes');
    const podsSeen = await Spectator.watch(admin, '/api/v1/namespaces/default/pods');
    const marks = new Map([...fleets].map(([env, fleet]) => [env, fleet.history.mark()]));
    const downAt = performance.now();
    await broker.pause();
    await eventually(async () => {
      for (const controller of controllers) {
        expect(await controller.metric('module_controller_liveness_frozen', 'mqtt_tunnel_provider')).toBe(1);
      }
    });
    // The outage itself is the time that passes; what is waited for is what it brings about after 25 s.
    await eventually(async () => {
      for (const node of await nodes(admin)) {
        expect(conditionOf(node, 'BaseReachable')).toMatchObject({ status: 'Unknown', reason: 'LivenessFrozen' });
      }
      expect(performance.now() - downAt).toBeGreaterThan(75_000);
    }, 90_000);
    await broker.resume();
    await eventually(async () => {
      for (const node of await nodes(admin)) expect(conditionOf(node, 'BaseReachable')?.status).toBe('True');
      for (const controller of controllers) {
        expect(await controller.metric('module_controller_liveness_frozen', 'mqtt_tunnel_provider')).toBe(0);
      }
    }, 60_000);
    nodesSeen.stop();
    podsSeen.stop();
    expect(nodesSeen.everNotReady()).toEqual([]);
    expect(podsSeen.everNotReady()).toEqual([]);
    expect(commandsSince(fleets, marks)).toEqual([]);
  }, 240_000);

  it('is off for 1 of 1, 1 of 2 and 6 of 10 bases that die together: their Nodes go, Pods run on living bases', async (context) => {
    const { world, fleets } = await start(context);
    const { admin } = world;
    const dead = new Set<string>();
    for (const { env, dying } of ENVS) {
      for (let number = 1; number <= dying; number++) {
        dead.add(`vnode.${env}-${number}`);
        await fleets.get(env)?.base(`${env}-${number}`).kill();
      }
    }
    await eventually(async () => {
      const names = (await nodes(admin)).map(({ metadata }) => metadata.name);
      expect(names).toHaveLength(5);
      for (const name of names) expect(dead.has(name)).toBe(false);
    }, 90_000);
    await eventually(async () => {
      const all = await pods(admin);
      for (const { spec } of all) expect(dead.has(spec.nodeName ?? '')).toBe(false);
      // One base holds one copy of a version: of `one` none is left, of `two` one, of `ten` four.
      const ready = (env: string) =>
        all.filter((pod) => pod.metadata.labels?.app === `app-${env}` && isReady(pod)).length;
      expect([ready('one'), ready('two'), ready('ten')]).toEqual([0, 1, 4]);
    }, 30_000);
  }, 150_000);
});
