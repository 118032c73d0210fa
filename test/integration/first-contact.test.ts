import { describe, expect, it, type TestContext } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { eventsOf, findNode, isSchedulable, nodes } from '../support/observe.ts';
import { createPod, readyPod, removePod } from '../support/pod-life.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const OLD = ['old-a', 'old-b', 'old-c'];
const RECORDS =
  '/api/v1/namespaces/kube-node-lease/configmaps?labelSelector=virtual-kubelet.koupleless.io%2Fcomponent%3Dvnode-contacts';
/** Routine lists come every 65 s, a second one 10 s later, the read of all Pods after that. */
const REMOVED_WITHIN_MS = 150_000;

/** A base that had modules before a controller met it, one that had none, and their controller. */
class Met {
  readonly world: World;
  readonly fleet: Fleet;
  controller: ControllerProcess;

  private constructor(world: World, fleet: Fleet, controller: ControllerProcess) {
    this.world = world;
    this.fleet = fleet;
    this.controller = controller;
  }

  /** Stops with the test. */
  static async start({ onTestFinished }: TestContext): Promise<Met> {
    const world = await startWorld();
    onTestFinished(() => world.stop());
    const fleet = await world.startFleet({ count: 2, announce: false });
    for (const bizName of OLD) fleet.base('base-1').placeModule({ bizName, bizVersion: '1' });
    const met = new Met(world, fleet, await world.startController());
    fleet.announce();
    await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(2));
    return met;
  }

  get modules(): string[] {
    return this.fleet
      .base('base-1')
      .modules()
      .map(({ bizName }) => bizName)
      .sort();
  }

  uninstalls(since = 0): (string | undefined)[] {
    const records = this.fleet.history.records({ command: 'uninstallBiz', base: 'base-1', since });
    return records.map(({ bizName }) => bizName);
  }

  /** What is kept of a base; undefined for one that was never met. */
  async recordOf(base: string): Promise<unknown> {
    const maps = (await this.world.admin.list(RECORDS)) as { data?: Record<string, string> }[];
    const text = maps.map(({ data }) => data?.[base]).find((value) => value !== undefined);
    return text === undefined ? undefined : (JSON.parse(text) as { kept: unknown }).kept;
  }

  /** With one module, on the base that had others. */
  async podOf(name: string, module: string): Promise<void> {
    const pod = modulePod(name, [{ name: module, version: '1' }], { nodeName: 'vnode.base-1' });
    await createPod(this.world.admin, pod);
    await readyPod(this.world.admin, name);
  }

  /**
   * A module that somebody installs now goes by the same lists and the same read of Pods by which all other unknown
   * modules of the base would go: when it has gone, what is left stays.
   */
  async removalHasPassed(stray: string): Promise<void> {
    this.fleet.base('base-1').placeModule({ bizName: stray, bizVersion: '1' });
    await eventually(() => expect(this.modules).not.toContain(stray), REMOVED_WITHIN_MS);
  }
}

/** They wait for long, each in a world of its own. */
describe.concurrent('modules that a base had before the controller first met it', () => {
  it('stay, while what is installed by hand later goes; a Pod adopts one without an install, and takes it along', async (context) => {
    const met = await Met.start(context);
    const { world, fleet, controller } = met;
    await eventually(async () => {
      expect(await met.recordOf('base-1')).toEqual(OLD.map((name) => `${name}:1`));
      expect(await met.recordOf('base-2')).toEqual([]);
    });
    await met.removalHasPassed('stray');
    expect([met.modules, met.uninstalls()]).toEqual([OLD, ['stray']]);
    await eventually(async () => expect(await controller.metric('module_controller_preexisting_modules')).toBe(3));
    const messages = (await eventsOf(world.admin, 'Node', 'vnode.base-1')).map(({ message }) => message);
    expect(messages.filter((message) => message.endsWith('old-a:1, old-b:1, old-c:1'))).toHaveLength(1);

    await met.podOf('adopter', 'old-b');
    expect(fleet.history.records({ command: 'installBiz', base: 'base-1' })).toEqual([]);
    await eventually(async () => expect(await met.recordOf('base-1')).toEqual(['old-a:1', 'old-c:1']));
    await removePod(world.admin, 'adopter');
    expect([met.modules, met.uninstalls()]).toEqual([
      ['old-a', 'old-c'],
      ['stray', 'old-b'],
    ]);
  }, 240_000);

  it('stay when the base is given up and comes back to another process, which takes off what a Pod brought', async (context) => {
    const met = await Met.start(context);
    const { world, fleet } = met;
    await eventually(async () => expect(await met.recordOf('base-1')).toHaveLength(OLD.length));
    await met.podOf('ours', 'ours');
    fleet.base('base-1').silence();
    await eventually(async () => expect(await findNode(world.admin, 'base-1')).toBeUndefined(), 120_000);
    await met.controller.stop('SIGKILL');
    met.controller = await world.startController();
    const mark = fleet.history.mark();
    fleet.base('base-1').speak();
    await eventually(() => expect(met.modules).toEqual(OLD), REMOVED_WITHIN_MS);
    await met.removalHasPassed('stray');
    expect(met.modules).toEqual(OLD);
    expect(met.uninstalls(mark)).toEqual(['ours', 'stray']);
    expect(await met.recordOf('base-1')).toEqual(OLD.map((name) => `${name}:1`));
  }, 400_000);
});
