import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../../src/errors.ts';
import { IDLE_TIMEOUT_MS } from '../../../src/kube/transport/connection-pool.ts';
import { seededRandom } from '../../support/api-fault-proxy.ts';
import { Actor } from './actor.ts';
import { type ChurnOptions, PodChurn, RollingChurn } from './churn.ts';
import { PROMISED_FROM_MINUTES } from './growth.ts';
import { type Act, flapsEachMinuteOf, planOf } from './plan.ts';
import type { Sample } from './sample.ts';
import { Sampler } from './sampler.ts';
import { untilSettled } from './settle.ts';
import { SoakWorld } from './soak-world.ts';

export interface SoakOptions {
  readonly minutes: number;
  readonly bases: number;
  readonly replicas: number;
  /** All that is random follows from it. */
  readonly seed: number;
  readonly podsEachSecond: number;
  readonly sampleEverySeconds: number;
  readonly killEverySeconds: number;
  /** Default: 1 % of the bases, at least one. */
  readonly flapsEachMinute?: number;
  /** Acts begin before this part of the time is over. Default: all of it. */
  readonly actsShare?: number;
  /** Of Pods, after the churn, with a calm sample after each. */
  readonly bursts: number;
  readonly podsEachBurst: number;
  /** Further modules that replicas load, as URLs. */
  readonly preloads?: readonly string[];
  readonly onProgress: (line: string) => void;
}

/** What came of it. */
export interface Soaked {
  readonly samples: readonly Sample[];
  readonly violations: number;
  /** What happened around the first of them. */
  readonly reports: readonly string[];
  /** In the end. */
  readonly differences: readonly string[];
  /** Requests of ours that failed, replicas that did not come up. */
  readonly problems: readonly string[];
  readonly acts: Readonly<Record<Act['kind'], number>>;
  /** The most that the history remembered at once. */
  readonly remembered: number;
  readonly samplesPath: string;
}

/** It is watched for its whole life: nobody kills it. */
export const WATCHED_REPLICA = 'controller-0';

const PROBE = new URL('../scale/probe/probe-preload.ts', import.meta.url).href;
const SMALL_EVENT_MEMORY = new URL('./small-event-memory.ts', import.meta.url).href;
const STEADY_HEAP = new URL('./steady-heap.ts', import.meta.url).href;
const CHURN_LIFE_MS = { from: 5_000, to: 25_000 } as const;
const BURST_EACH_SECOND = 15;
const BURST_LIFE_MS = { from: 1_000, to: 4_000 } as const;
/** The last answers are taken, the last statuses written. */
const CALM_MS = 3_000;
const KEPT_REPORTS = 5;
const KEPT_PROBLEMS = 50;
/** An install that a silent base has swallowed is given up after five minutes: it might still be in work. */
const SETTLED_WITHIN_MS = 360_000;
/** By then the connections that only a burst needed are closed, and Events are written. */
const REST_MS = IDLE_TIMEOUT_MS + 10_000;

/** One run, in a world that is there. */
class Soak {
  readonly #options: SoakOptions;
  readonly #world: SoakWorld;
  readonly #sampler: Sampler;
  readonly #rolling: RollingChurn;
  readonly #random: () => number;
  readonly #problems: string[] = [];
  readonly #reports: string[] = [];
  #violations = 0;
  #remembered = 0;

  constructor(options: SoakOptions, { world, random, path }: { world: SoakWorld; random: () => number; path: string }) {
    const { onProgress } = options;
    this.#options = options;
    this.#world = world;
    this.#random = random;
    this.#rolling = new RollingChurn({ world: world.world, random, onProblem: this.#onProblem }, options.bases);
    this.#sampler = new Sampler({ replicas: world.replicas, sizeOf: () => this.#size(), path, onProgress });
  }

  async run(samplesPath: string): Promise<Soaked> {
    await this.#rolling.deploy();
    await this.#settle('before the churn');
    await this.#rest();
    const acts = await this.#churn();
    await this.#settle('after the churn');
    for (let burst = 0; burst < this.#options.bursts; burst++) await this.#burst(burst);
    const differences = await this.#settle('in the end');
    await this.#check(true);
    await this.#rest();
    return {
      samples: this.#sampler.samples,
      violations: this.#violations,
      reports: this.#reports,
      differences,
      problems: this.#problems,
      acts,
      remembered: this.#remembered,
      samplesPath,
    };
  }

  async #churn(): Promise<Soaked['acts']> {
    const { minutes, podsEachSecond, sampleEverySeconds } = this.#options;
    this.#sampler.begin();
    const endsAt = performance.now() + minutes * 60_000;
    const actor = new Actor(this.#world, this.#plan(), this.#onProblem);
    this.#rolling.start();
    const churn = this.#pods('churn', podsEachSecond, CHURN_LIFE_MS);
    try {
      for (let sampleAt = performance.now(); sampleAt < endsAt; ) {
        sampleAt = Math.max(performance.now(), sampleAt + sampleEverySeconds * 1000);
        await delay(Math.max(0, Math.min(endsAt, sampleAt) - performance.now()));
        await this.#check(false);
        const note = this.#violations === 0 ? '' : `VIOLATIONS: ${this.#violations}`;
        await this.#sampler.take('churn', note).catch(this.#onProblem);
      }
    } finally {
      // Whoever is away comes back before the rest has to find its place.
      await actor.stop();
      await Promise.all([churn.stop(), this.#rolling.stop()]);
    }
    await this.#rolling.untilRolled(SETTLED_WITHIN_MS).catch(this.#onProblem);
    return actor.counts;
  }

  /** Many Pods in a short time while nothing else happens: what is left of them is told from what else is left. */
  async #burst(index: number): Promise<void> {
    const burst = this.#pods(`burst${index}`, BURST_EACH_SECOND, BURST_LIFE_MS);
    await delay((this.#options.podsEachBurst / BURST_EACH_SECOND) * 1000);
    await burst.stop();
    await untilSettled(this.#world, SETTLED_WITHIN_MS);
    await this.#check(false);
    await delay(CALM_MS);
    await this.#sampler.take('calm');
  }

  #pods(name: string, podsEachSecond: number, lifeMs: ChurnOptions['lifeMs']): PodChurn {
    const { world } = this.#world;
    const bases = (): readonly string[] => this.#world.aliveBases;
    const [random, onProblem] = [this.#random, this.#onProblem];
    return new PodChurn({ world, name, podsEachSecond, lifeMs, bases, random, onProblem });
  }

  #plan(): Act[] {
    const { seed, minutes, bases, replicas, killEverySeconds, flapsEachMinute, actsShare = 1 } = this.#options;
    return planOf({
      seed,
      seconds: actsShare * minutes * 60,
      bases,
      replicas,
      killEverySeconds,
      flapsEachMinute: flapsEachMinute ?? flapsEachMinuteOf(bases),
    });
  }

  async #settle(when: string): Promise<string[]> {
    const startedAt = performance.now();
    const differences = await untilSettled(this.#world, SETTLED_WITHIN_MS);
    const words = differences.length === 0 ? 'settled' : `NOT SETTLED, ${differences.length} differences`;
    this.#options.onProgress(`${when}: ${words} after ${Math.round((performance.now() - startedAt) / 1000)} s`);
    return differences;
  }

  async #rest(): Promise<void> {
    await delay(REST_MS);
    await this.#sampler.take('rest');
  }

  async #check(isLast: boolean): Promise<void> {
    const { history } = this.#world;
    this.#remembered = Math.max(this.#remembered, history.size);
    const { violations, report } = await history.check({ isLast });
    this.#violations += violations.length;
    if (report !== '' && this.#reports.length < KEPT_REPORTS) this.#reports.push(report);
  }

  #size() {
    const { history, aliveBases } = this.#world;
    const [nodes, pods] = [history.nodes.length, history.pods.length];
    return { bases: aliveBases.length, nodes, pods, churned: history.podsGone, rollouts: this.#rolling.count };
  }

  readonly #onProblem = (error: unknown): void => {
    this.#options.onProgress(`PROBLEM: ${messageOf(error)}`);
    if (this.#problems.length < KEPT_PROBLEMS) this.#problems.push(messageOf(error));
  };
}

/** The modules that replicas load: in a short soak with a memory of Events that is full at once. */
export function preloadsOf({ minutes, preloads = [] }: Pick<SoakOptions, 'minutes' | 'preloads'>): string[] {
  return [PROBE, STEADY_HEAP, ...(minutes >= PROMISED_FROM_MINUTES ? [] : [SMALL_EVENT_MEMORY]), ...preloads];
}

/** `onWorld` is told what has to be stopped afterwards, by whoever is told. */
export async function startSoak(
  options: SoakOptions,
  onWorld: (world: SoakWorld) => void,
): Promise<() => Promise<Soaked>> {
  const { bases, replicas, seed, onProgress } = options;
  const random = seededRandom(seed);
  const path = join(tmpdir(), `soak-${Date.now()}.jsonl`);
  onProgress(`seed ${seed}, samples go to ${path}`);
  const world = await SoakWorld.start({ bases, replicas, preloads: preloadsOf(options), random, onProgress });
  onWorld(world);
  const soak = new Soak(options, { world, random, path });
  return () => soak.run(path);
}
