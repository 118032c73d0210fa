import { ScaleWorld } from '../scale/scale-world.ts';
import type { Subject } from '../scale/subject.ts';
import { Replicas } from '../sharding/replicas.ts';
import type { Stage, StageOptions } from '../suite.ts';

/** One world for all cases, and the replicas in it. */
export class FleetStage implements Stage {
  readonly options: StageOptions;
  #starting: Promise<ScaleWorld> | undefined;
  #world: ScaleWorld | undefined;
  #replicas: Replicas | undefined;

  constructor(options: StageOptions) {
    this.options = options;
  }

  get world(): ScaleWorld {
    if (!this.#world) throw new Error('no world is open');
    return this.#world;
  }

  get replicas(): Replicas {
    if (!this.#replicas) throw new Error('no replica was started');
    return this.#replicas;
  }

  /** Bases that have said nothing yet, and replicas that wait for them. */
  async open(): Promise<ScaleWorld> {
    const { bases, modules = 1, replicas = 1, onProgress } = this.options;
    this.#starting ??= ScaleWorld.start({
      subject: 'controller',
      startSubject: async (world) => {
        this.#replicas = await Replicas.open(world);
        const started = await Promise.all(Array.from({ length: replicas }, () => this.replicas.launch()));
        await Promise.all(started.map((replica) => replica.untilUp()));
        return subjectOf(this.#replicas);
      },
      bases,
      modules,
      onProgress,
    });
    this.#world = await this.#starting;
    return this.#world;
  }

  /** All Nodes are ready and shared. */
  async shared(): Promise<ScaleWorld> {
    const world = await this.open();
    await world.announce();
    await this.untilShared();
    return world;
  }

  async untilShared(): Promise<void> {
    await this.replicas.untilBalanced(this.world.bases);
    await this.replicas.untilUnmoved();
  }

  /** All modules are Ready too. */
  async loaded(): Promise<ScaleWorld> {
    const world = await this.shared();
    if (!world.isLoaded) await world.rollOut();
    return world;
  }

  async close(): Promise<void> {
    // One that did not come up has told why already.
    const world = await this.#starting?.catch(() => undefined);
    await world?.stop();
  }
}

/** Those that live, as one. */
function subjectOf(replicas: Replicas): Subject {
  const pids = (): number[] => replicas.living.map(({ pid }) => pid);
  return {
    name: 'controller',
    get pid() {
      return pids()[0] ?? Number.NaN;
    },
    get helperPids() {
      return pids().slice(1);
    },
    kill: async () => {
      await replicas.leases.close();
      await Promise.all(replicas.living.map((replica) => replicas.end(replica, 'SIGKILL')));
    },
  };
}
