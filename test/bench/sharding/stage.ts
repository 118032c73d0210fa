import type { Stage, StageOptions } from '../suite.ts';
import { ReplicaWorld, type TunnelKind } from './replica-world.ts';

/** A world for each tunnel, each made when a case first asks for it. */
export class ShardingStage implements Stage {
  readonly #options: StageOptions;
  readonly #worlds = new Map<TunnelKind, ReplicaWorld>();
  /** Those that are being made too: whoever closes waits for them. */
  readonly #starting = new Map<TunnelKind, Promise<ReplicaWorld>>();

  constructor(options: StageOptions) {
    this.#options = options;
  }

  async open(tunnel: TunnelKind): Promise<ReplicaWorld> {
    const starting = this.#starting.get(tunnel) ?? ReplicaWorld.start(tunnel, this.#options);
    this.#starting.set(tunnel, starting);
    const world = await starting;
    this.#worlds.set(tunnel, world);
    return world;
  }

  /** One that a case has opened while it prepared. */
  world(tunnel: TunnelKind): ReplicaWorld {
    const world = this.#worlds.get(tunnel);
    if (!world) throw new Error(`no world over ${tunnel} is open`);
    return world;
  }

  async closeWorld(tunnel: TunnelKind): Promise<void> {
    const starting = this.#starting.get(tunnel);
    this.#starting.delete(tunnel);
    this.#worlds.delete(tunnel);
    // One that did not come up has told why already.
    const world = await starting?.catch(() => undefined);
    await world?.stop();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#starting.keys()].map((tunnel) => this.closeWorld(tunnel)));
  }
}
