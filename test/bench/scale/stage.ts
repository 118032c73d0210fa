import type { ProfileCalls } from '../profiler.ts';
import type { Stage } from '../suite.ts';
import { ScaleWorld, type ScaleWorldOptions } from './scale-world.ts';
import type { SettingsName } from './settings.ts';

/** One world at a time, brought to where a case begins. */
export class ScaleStage implements Stage {
  readonly options: ScaleWorldOptions;
  #world: ScaleWorld | undefined;
  #starting: Promise<ScaleWorld> | undefined;

  constructor(options: ScaleWorldOptions) {
    this.options = options;
  }

  /** One that a case has brought about while it prepared. */
  get world(): ScaleWorld {
    if (!this.#world) throw new Error('no world is open');
    return this.#world;
  }

  /** A new one: its bases have said nothing yet. */
  async fresh(settings: SettingsName = 'wide'): Promise<ScaleWorld> {
    await this.close();
    this.#starting = ScaleWorld.start({ ...this.options, settings });
    this.#world = await this.#starting;
    return this.#world;
  }

  /** All Nodes are ready. */
  async announced(): Promise<ScaleWorld> {
    const world = this.#world ?? (await this.fresh());
    await world.announce();
    return world;
  }

  /** Nodes, and no module. */
  async empty(): Promise<ScaleWorld> {
    const world = await this.announced();
    if (world.isLoaded) await world.deleteAll();
    return world;
  }

  /** All modules are Ready. */
  async loaded(): Promise<ScaleWorld> {
    const world = await this.announced();
    if (!world.isLoaded) await world.rollOut();
    return world;
  }

  get profiler(): ProfileCalls | undefined {
    return this.world.subject.profiler;
  }

  async close(): Promise<void> {
    const starting = this.#starting;
    this.#starting = undefined;
    this.#world = undefined;
    // One that did not come up has told why already.
    const world = await starting?.catch(() => undefined);
    await world?.stop();
  }
}
