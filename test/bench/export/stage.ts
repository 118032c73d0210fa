import type { Stage, StageOptions } from '../suite.ts';
import { ExportWorld } from './export-world.ts';

/** Of the platform, in all cases. */
const REPLICAS = 2;

/** One world for all cases of a run. */
export class ExportStage implements Stage {
  readonly #options: StageOptions;
  #starting: Promise<ExportWorld> | undefined;
  #world: ExportWorld | undefined;

  constructor(options: StageOptions) {
    this.#options = options;
  }

  /** One that a case has brought about while it prepared. */
  get world(): ExportWorld {
    if (!this.#world) throw new Error('no world is open');
    return this.#world;
  }

  /** Without a process of the platform, if nobody has started one yet. */
  async open(): Promise<ExportWorld> {
    this.#starting ??= ExportWorld.start(this.#options);
    this.#world = await this.#starting;
    return this.#world;
  }

  /** Two replicas serve. */
  async served(): Promise<ExportWorld> {
    const world = await this.open();
    await world.scaleTo(REPLICAS);
    return world;
  }

  async close(): Promise<void> {
    // One that did not come up has told why already.
    const world = await this.#starting?.catch(() => undefined);
    this.#starting = undefined;
    this.#world = undefined;
    await world?.stop();
  }
}
