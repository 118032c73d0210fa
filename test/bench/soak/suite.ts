import { benchCase, type Stage, type StageOptions, type Suite } from '../suite.ts';
import { type Soaked, type SoakOptions, startSoak, WATCHED_REPLICA } from './soak.ts';
import type { SoakWorld } from './soak-world.ts';
import { FIGURES, verdictOf } from './verdict.ts';

const MINUTES = 10;
const MAX_SEED = 99_999;
const WARM_UP_SHARE = 0.25;
const RATES = {
  podsEachSecond: 5,
  sampleEverySeconds: 30,
  killEverySeconds: 120,
  bursts: 6,
  podsEachBurst: 300,
} as const;

/** One world, which is used up by its one case. */
export class SoakStage implements Stage {
  readonly options: SoakOptions;
  #run: (() => Promise<Soaked>) | undefined;
  #world: SoakWorld | undefined;
  #starting: Promise<unknown> = Promise.resolve();

  constructor(options: SoakOptions) {
    this.options = options;
  }

  get world(): SoakWorld {
    if (!this.#world) throw new Error('no world is open');
    return this.#world;
  }

  async open(): Promise<void> {
    const starting = startSoak(this.options, (world) => {
      this.#world = world;
    });
    this.#starting = starting;
    this.#run = await starting;
  }

  run(): Promise<Soaked> {
    if (!this.#run) throw new Error('no world is open');
    return this.#run();
  }

  async close(): Promise<void> {
    // One that did not come up has told why already.
    await this.#starting.catch(() => {});
    await this.#world?.stop();
    this.#world = undefined;
  }
}

const LIVE_ON = benchCase({
  name: 'live on',
  figures: FIGURES,

  prepare: (stage: SoakStage) => stage.open(),

  watched: (stage) => [stage.world.replica(0)],

  async measure(stage) {
    const soaked = await stage.run();
    for (const report of soaked.reports) stage.options.onProgress(report);
    for (const difference of soaked.differences) stage.options.onProgress(`not as wanted: ${difference}`);
    const { minutes } = stage.options;
    return verdictOf(soaked, { minutes, replica: WATCHED_REPLICA, warmUpShare: WARM_UP_SHARE });
  },
});

/** Hours when asked: whether anything grows, or goes wrong once in a night. */
export const SOAK: Suite<SoakStage> = {
  name: 'soak',
  text: 'whether replicas that live on keep what they promise, and grow in nothing',
  defaults: { runs: 1, bases: 50, replicas: 3, minutes: MINUTES, seed: 0 },
  steps: [[LIVE_ON]],
  open: ({ bases, replicas = 3, minutes = MINUTES, seed = 0, onProgress }: StageOptions) =>
    new SoakStage({ bases, replicas, minutes, seed: seed || anySeed(), onProgress, ...RATES }),
};

/** One that can be given on the command line. */
function anySeed(): number {
  return 1 + Math.floor(Math.random() * MAX_SEED);
}
