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
  /** What the catalog took in this world; the case of the floor is compared with it. */
  ofCatalog: Latencies | undefined;

  constructor(options: StageOptions) {
    this.#options = options;
  }

  get burst(): Burst {
    const { seconds = BURST.seconds, rate = BURST.rate } = this.#options;
    return { seconds, rate };
  }

  /** One that a case has brought about while it prepared. */
  get world(): CatalogWorld {
    if (!this.#world) throw new Error('no world is open');
    return this.#world;
  }

  /** Without Modules, if nobody has created them yet. */
  async open(): Promise<CatalogWorld> {
    this.#starting ??= CatalogWorld.start(this.#options);
    this.#world = await this.#starting;
    return this.#world;
  }

  /** All Modules are Ready. Once. */
  fill(): ReturnType<CatalogWorld['fill']> {
    if (this.#filling !== undefined) throw new Error('there are Modules already');
    const filling = this.world.fill();
    this.#filling = filling;
    return filling;
  }

  /** Modules, and the catalog or its floor, and nothing that happens. */
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
    // One that did not come up has told why already.
    const world = await this.#starting?.catch(() => undefined);
    this.#starting = undefined;
    this.#world = undefined;
    this.#filling = undefined;
    await world?.stop();
  }
}
