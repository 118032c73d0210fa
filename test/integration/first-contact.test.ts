import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

let world: World;
let fleet: Fleet;
let controller: ControllerProcess;

beforeAll(async () => {
  world = await startWorld();
  fleet = await world.startFleet({ count: 2, announce: false });
  for (const bizName of OLD) place('base-1', bizName);
  controller = await world.startController();
  fleet.announce();
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(2));
});

afterAll(() => world?.stop());

function place(base: string, bizName: string): void {
  fleet.base(base).placeModule({ bizName, bizVersion: '1' });
}

const modulesOf = (base: string): string[] =>
  fleet
    .base(base)
    .modules()
    .map(({ bizName }) => bizName)
    .sort();

const uninstalls = (base: string): (string | undefined)[] =>
  fleet.history.records({ command: 'uninstallBiz', base }).map(({ bizName }) => bizName);

/** What is kept of a base; undefined for one that was never met. */
async function recordOf(base: string): Promise<unknown> {
  const maps = (await world.admin.list(RECORDS)) as { data?: Record<string, string> }[];
  const text = maps.map(({ data }) => data?.[base]).find((value) => value !== undefined);
  return text === undefined ? undefined : (JSON.parse(text) as { kept: unknown }).kept;
}

/**
 * A module that somebody installs now goes by the same lists and the same read of Pods by which all other unknown
 * modules of the base would go: when it has gone, what is left stays.
 */
async function removalHasPassed(base: string, stray: string): Promise<void> {
  place(base, stray);
  await eventually(() => expect(modulesOf(base)).not.toContain(stray), REMOVED_WITHIN_MS);
}

describe('modules that a base had before the controller first met it', () => {
  it('stay, while what is installed by hand later goes, and are recorded and reported', async () => {
    await eventually(async () => {
      expect(await recordOf('base-1')).toEqual(OLD.map((name) => `${name}:1`));
      expect(await recordOf('base-2')).toEqual([]);
    });
    await removalHasPassed('base-1', 'stray');
    expect([modulesOf('base-1'), uninstalls('base-1')]).toEqual([OLD, ['stray']]);
    await eventually(async () => expect(await controller.metric('module_controller_preexisting_modules')).toBe(3));
    const messages = (await eventsOf(world.admin, 'Node', 'vnode.base-1')).map(({ message }) => message);
    expect(messages.filter((message) => message.endsWith('old-a:1, old-b:1, old-c:1'))).toHaveLength(1);
  }, 240_000);

  it('are adopted by a Pod without an install, and one goes with its Pod while the others stay', async () => {
    const pod = modulePod('adopter', [{ name: 'old-b', version: '1' }], { nodeName: 'vnode.base-1' });
    await createPod(world.admin, pod);
    await readyPod(world.admin, 'adopter');
    expect(fleet.history.records({ command: 'installBiz', base: 'base-1' })).toEqual([]);
    await eventually(async () => expect(await recordOf('base-1')).toEqual(['old-a:1', 'old-c:1']));
    await removePod(world.admin, 'adopter');
    expect([modulesOf('base-1'), uninstalls('base-1')]).toEqual([
      ['old-a', 'old-c'],
      ['stray', 'old-b'],
    ]);
  });

  it('stay when the base is given up and comes back to another process, which takes off what a Pod brought', async () => {
    const pod = modulePod('ours', [{ name: 'ours', version: '1' }], { nodeName: 'vnode.base-1' });
    await createPod(world.admin, pod);
    await readyPod(world.admin, 'ours');
    fleet.base('base-1').silence();
    await eventually(async () => expect(await findNode(world.admin, 'base-1')).toBeUndefined(), 120_000);
    await controller.stop('SIGKILL');
    controller = await world.startController();
    const mark = fleet.history.mark();
    fleet.base('base-1').speak();
    await eventually(() => expect(modulesOf('base-1')).toEqual(['old-a', 'old-c']), REMOVED_WITHIN_MS);
    await removalHasPassed('base-1', 'stray');
    expect(modulesOf('base-1')).toEqual(['old-a', 'old-c']);
    const uninstalled = fleet.history.records({ command: 'uninstallBiz', base: 'base-1', since: mark });
    expect(uninstalled.map(({ bizName }) => bizName)).toEqual(['ours', 'stray']);
    expect(await recordOf('base-1')).toEqual(['old-a:1', 'old-c:1']);
  }, 400_000);
});
