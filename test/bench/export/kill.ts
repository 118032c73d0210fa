import { setTimeout as delay } from 'node:timers/promises';
import { followFeed } from '../../../samples/balancer/feed-watch.ts';
import type { Exported } from '../../../src/platform/export/export-service.ts';
import { benchCase } from '../suite.ts';
import { EXPORTS, type ExportReplica, type ExportWorld } from './export-world.ts';
import { type BenchService, GROUP, VERSIONS } from './objects.ts';
import type { ExportStage } from './stage.ts';

const CANARIES = 20;
const CHANGE_EVERY_MS = 50;
/** Of the canary, before the leader is killed. */
const CHANGES_BEFORE = 40;
const DONE_WITHIN_MS = 120_000;

/** SIGKILL to the leader while the weights of some Services change. */
export const KILL = benchCase({
  name: 'kill',
  figures: {
    served: {
      text: 'from SIGKILL until a balancer of the leader has a later change, from the other replica',
      unit: 's',
      atMost: 1,
    },
    written: { text: 'from SIGKILL until a status has a later change', unit: 's', atMost: 20 },
    empty: { text: 'lists without backends, or without a Service, that balancers got', unit: '', atMost: 0 },
    lists: { text: 'lists that balancers got', unit: '' },
  },

  async prepare(stage: ExportStage) {
    await stage.served();
  },

  watched: (stage) => stage.world.living,

  async measure({ world }) {
    const leader = await world.leader();
    const others = world.living.filter((one) => one !== leader);
    const canary = new Canary(world);
    const ending = new AbortController();
    const consumers = [
      [leader, ...others],
      [...others, leader],
    ].map((of) => new Consumer(world, of, ending.signal));
    const statuses = await StatusWatch.open(world);
    try {
      await Promise.all(consumers.map((consumer) => consumer.until(() => true)));
      await canary.run(CHANGES_BEFORE);
      const changing = canary.start(ending.signal);
      const before = canary.newest;
      await Promise.all(consumers.map((consumer) => consumer.until((seen) => seen >= before)));
      const killedAt = performance.now();
      const after = canary.next;
      await leader.process.stop('SIGKILL');
      const secondsTo = async (what: Waiter): Promise<number> =>
        ((await what.until((seen) => seen >= after)) - killedAt) / 1000;
      const [served = Number.NaN, stayed, written = Number.NaN] = await Promise.all(
        [...consumers, statuses].map(secondsTo),
      );
      ending.abort();
      await changing;
      const [lists, empty] = [sum(consumers.map((one) => one.lists)), sum(consumers.map((one) => one.empty))];
      return { values: { served, written, empty, lists }, details: { stayed, changes: canary.next } };
    } finally {
      ending.abort();
      statuses.close();
      await Promise.all(consumers.map((consumer) => consumer.ended));
    }
  },
});

/** Changes the weights of one Service after the other; each change has a number, which is one of its weights. */
class Canary {
  readonly #world: ExportWorld;
  readonly #services: readonly BenchService[];
  /** Of the next change. */
  next = 1;
  /** Of the newest one that the API server has. */
  newest = 0;

  constructor(world: ExportWorld) {
    this.#world = world;
    this.#services = world.services.slice(0, CANARIES);
  }

  async run(changes: number): Promise<void> {
    for (let left = changes; left > 0; left--) {
      const number = this.next++;
      const service = this.#services[number % this.#services.length];
      if (service === undefined) throw new Error('there are no Services');
      const labels = { [labelOf(VERSIONS.old)]: '1000', [labelOf(VERSIONS.canary)]: String(number) };
      await this.#world.setLabels(service, labels);
      this.newest = number;
      await delay(CHANGE_EVERY_MS);
    }
  }

  async start(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await this.run(1);
  }
}

function labelOf(version: string): string {
  return `BCS-WEIGHT-${version}`;
}

/** The number of the newest change that it has seen, and who waits for one. */
abstract class Waiter {
  #seen = 0;
  readonly #looks = new Set<() => void>();

  /** When it was so, monotonic, ms. */
  until(fits: (seen: number) => boolean): Promise<number> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`change ${this.#seen} is the newest`)), DONE_WITHIN_MS);
      const look = (): void => {
        if (!this.isThere || !fits(this.#seen)) return;
        clearTimeout(timer);
        this.#looks.delete(look);
        resolve(performance.now());
      };
      this.#looks.add(look);
      look();
    });
  }

  protected abstract get isThere(): boolean;

  protected see(change: number): void {
    this.#seen = Math.max(this.#seen, change);
    for (const look of this.#looks) look();
  }
}

/** A balancer as the sample is one. */
class Consumer extends Waiter {
  lists = 0;
  /** Lists that would have taken traffic away. */
  empty = 0;
  readonly ended: Promise<void>;

  constructor({ services, files, token }: ExportWorld, replicas: readonly ExportReplica[], signal: AbortSignal) {
    super();
    const urls = replicas.map(({ url }) => url);
    const onChange = (all: readonly Exported[]): void => {
      this.lists++;
      const isWhole = all.length === services.length;
      if (!isWhole || all.some(({ ports }) => ports.length === 0 || ports.some(isEmpty))) this.empty++;
      this.see(Math.max(0, ...all.map(changeIn)));
    };
    this.ended = followFeed({ urls, group: GROUP, token, ca: files.ca, onChange, say: () => {} }, signal);
  }

  protected override get isThere(): boolean {
    return this.lists > 0;
  }
}

/** What the objects say. */
class StatusWatch extends Waiter {
  #close: () => void = () => {};

  static async open({ world: { admin } }: ExportWorld): Promise<StatusWatch> {
    const watch = new StatusWatch();
    const { stop } = await admin.watch(`${EXPORTS}?resourceVersion=0`, ({ object: { status } }) => {
      if (status !== undefined) watch.see(changeIn(status));
    });
    watch.#close = stop;
    return watch;
  }

  close(): void {
    this.#close();
  }

  protected override get isThere(): boolean {
    return true;
  }
}

function isEmpty({ backends }: Exported['ports'][number]): boolean {
  return backends.length === 0;
}

function changeIn({ serviceWeight }: Pick<Exported, 'serviceWeight'>): number {
  return serviceWeight[VERSIONS.canary] ?? 0;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
