import type { ProfileCalls } from '../profiler.ts';
import type { Stage, StageOptions } from '../suite.ts';
import { type Burst, CatalogWorld } from './catalog-world.ts';
import type { Latencies } from './latencies.ts';

const BURST: Burst = { seconds: 60, rate: 100 };

/** One world for all cases of a run: the catalog and its floor have the same objects. */
export class CatalogStage implements Stage {
  readonly #options: StageOptions;
  #starting: Promise<CatalogWorld> | undefined;
  #world: CatalogWorld | undefined;
  #filling: Promise<unknown> | undefined;
  /** Times of the catalog in this world, with which the case of the floor compares its own. */
  ofCatalog: Latencies | undefined;

  constructor(options: StageOptions) {
    this.#options = options;
  }

  get burst(): Burst {
    const { seconds = BURST.seconds, rate = BURST.rate } = this.#options;
    return { seconds, rate };
  }

  /** Number of ModuleConfigs. */
  get configs(): number {
    return this.#options.configs ?? 0;
  }

  /** The world that a case has opened while it prepared. */
  get world(): CatalogWorld {
    if (!this.#world) throw new Error('no world is open');
    return this.#world;
  }

  /** Opens the world, without Modules at first. */
  async open(): Promise<CatalogWorld> {
    this.#starting ??= CatalogWorld.start(this.#options);
    this.#world = await this.#starting;
    return this.#world;
  }

  /** Creates all Modules, once; resolves when they are Ready. */
  fill(): ReturnType<CatalogWorld['fill']> {
    if (this.#filling !== undefined) throw new Error('there are Modules already');
    const filling = this.world.fill();
    this.#filling = filling;
    return filling;
  }

  /** Brings about Modules, and the catalog or its floor, at rest. */
  async settled(subject: 'catalog' | 'floor'): Promise<CatalogWorld> {
    const world = await this.open();
    await (this.#filling ?? this.fill());
    // The floor takes what the catalog has written.
    await world.untilQuiet();
    await (subject === 'catalog' ? world.startCatalog() : world.startFloor());
    await world.untilQuiet();
    return world;
  }

  get profiler(): ProfileCalls | undefined {
    return this.world.subject;
  }

  async close(): Promise<void> {
    // A world that did not come up has reported why.
    const world = await this.#starting?.catch(() => undefined);
    this.#starting = undefined;
    this.#world = undefined;
    this.#filling = undefined;
    await world?.stop();
  }
}
