import { expect } from 'vitest';
import type { Fleet, FleetOptions } from '../../samples/base-simulator/fleet.ts';
import type { CommandRecord } from '../../samples/base-simulator/history.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from './eventually.ts';
import type { modulePod } from './manifests.ts';
import { isSchedulable, nodes } from './observe.ts';
import { createPod, readyPod, removePod } from './pod-life.ts';
import { startWorld } from './start-world.ts';
import type { ControllerProcess, World } from './world.ts';

/** A world with one controller and a fleet whose Nodes are ready, and what tests of modules do in it. */
export class ModuleRig {
  readonly world: World;
  readonly controller: ControllerProcess;
  readonly fleet: Fleet;

  private constructor(world: World, controller: ControllerProcess, fleet: Fleet) {
    this.world = world;
    this.controller = controller;
    this.fleet = fleet;
  }

  static async start(options: Partial<FleetOptions> & { count: number }): Promise<ModuleRig> {
    const world = await startWorld();
    const controller = await world.startController();
    const fleet = await world.startFleet(options);
    await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(options.count));
    return new ModuleRig(world, controller, fleet);
  }

  get admin(): World['admin'] {
    return this.world.admin;
  }

  stop(): Promise<void> {
    return this.world.stop();
  }

  async create(pod: ReturnType<typeof modulePod>): Promise<void> {
    await createPod(this.admin, pod);
  }

  readyPod(name: string, timeoutMs?: number): Promise<PodObject> {
    return readyPod(this.admin, name, timeoutMs);
  }

  remove(name: string): Promise<void> {
    return removePod(this.admin, name);
  }

  /** `name:version STATE` of each module that the base has, or of those of one name. */
  modulesOf(identity: string, name?: string): string[] {
    const all = this.fleet.base(identity).modules();
    const modules = all.filter(({ bizName }) => name === undefined || bizName === name);
    return modules.map(({ bizName, bizVersion, state }) => `${bizName}:${bizVersion} ${state}`);
  }

  installs(name: string): CommandRecord[] {
    return this.fleet.history.records({ command: 'installBiz', bizName: name });
  }
}
