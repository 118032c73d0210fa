import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';
import { startWorld } from '../support/start-world.ts';
import { SCALE } from '../support/transport.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const BASES = 100 * SCALE;
const DEPLOYMENTS = 6;
/** Fewer than bases, so that Pods of dead bases find another one. */
const REPLICAS = Math.floor(0.85 * BASES);
const MODULES = DEPLOYMENTS * REPLICAS;
const DONE_AT_THE_KILL = 150 * SCALE;

let world: World;
let fleet: Fleet;
let controller: ControllerProcess;

beforeAll(async () => {
  world = await startWorld();
  controller = await world.startController();
  fleet = await world.startFleet({ count: BASES, installMs: 2_000 });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES), 150_000);
});

afterAll(() => world?.stop());

describe(`the controller, killed in the middle of ${MODULES} installs on ${BASES} bases, with two bases dying meanwhile`, () => {
  it('goes on where it was: nothing twice, no live Node leaves Ready, dead bases are cleared, every module is Ready', async ({
    annotate,
  }) => {
    const { admin } = world;
    const nodesSeen = await Spectator.watch(admin, '/api/v1/nodes');
    const dead = ['base-7', `base-${BASES - 3}`];
    const killed = new Promise<number>((resolve) => {
      let done = 0;
      const unsubscribe = fleet.history.subscribe((record) => {
        if (record.command !== 'installBiz' || record.outcome !== 'executed') return;
        done += 1;
        if (done < DONE_AT_THE_KILL) return;
        unsubscribe();
        controller.child.kill('SIGKILL');
        resolve(fleet.history.mark());
      });
    });
    const apply = async (from: number, to: number): Promise<void> => {
      for (let index = from; index < to; index++) {
        const name = `biz${index}`;
        await world.controlPlane.apply(moduleWorkload(name, [{ name }], { replicas: REPLICAS }));
      }
    };
    await apply(0, DEPLOYMENTS - 2);
    const mark = await killed;
    await controller.exited;
    // However fast the first ones were sent: these wait for the next controller.
    await apply(DEPLOYMENTS - 2, DEPLOYMENTS);
    await eventually(async () => {
      const bound = (await pods(admin)).filter(({ spec }) => spec.nodeName);
      expect(bound).toHaveLength(MODULES);
    }, 120_000);
    await Promise.all(dead.map((identity) => fleet.base(identity).kill()));

    const startedAt = Date.now();
    controller = await world.startController();
    await fleet.history.waitFor({ command: 'installBiz', since: mark }, { count: 1, timeoutMs: 60_000 });
    const firstInstallMs =
      (fleet.history.records({ command: 'installBiz', since: mark })[0]?.receivedAt ?? 0) - startedAt;
    await annotate(`first install ${firstInstallMs} ms after the start of the second controller`);

    await eventually(async () => {
      const names = (await nodes(admin)).map(({ metadata }) => metadata.name);
      for (const identity of dead) expect(names).not.toContain(`vnode.${identity}`);
      expect(names).toHaveLength(BASES - dead.length);
    }, 120_000);
    await eventually(async () => expect((await pods(admin)).filter(isReady)).toHaveLength(MODULES));
    await annotate(`every module Ready ${Date.now() - startedAt} ms after the start of the second controller`);

    expect(fleet.history.installsWhileActiveOrInWork()).toEqual([]);
    expect(fleet.history.records({ command: 'uninstallBiz' })).toEqual([]);
    nodesSeen.stop();
    expect(nodesSeen.everNotReady().filter((name) => !dead.includes(name.slice('vnode.'.length)))).toEqual([]);
    for (const pod of await pods(admin)) expect(pod.status?.containerStatuses?.[0]?.restartCount).toBe(0);
  }, 360_000);
});
