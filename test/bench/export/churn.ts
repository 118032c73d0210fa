import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../scale/cost.ts';
import { benchCase } from '../suite.ts';
import { COST_FIGURES, costing } from './cost.ts';
import type { ExportWorld } from './export-world.ts';
import { FeedBook } from './feed-book.ts';
import { BACKENDS, type BenchService, podOf } from './objects.ts';
import { PodWatch } from './pod-watch.ts';
import type { ExportStage } from './stage.ts';

const CHANGES_EACH_SECOND = 100;
const SECONDS = 60;
/** One change of so many is of a busy Service: each of those changes more often than its status may be written. */
const BUSY_EVERY = 5;
const BUSY_SERVICES = 5;
const SEEN_WITHIN_MS = 60_000;

export const FEED_FIGURES = {
  feedP99: {
    text: 'from the answer of the API server to the line of the feed, p99 of both replicas',
    unit: 's',
    atMost: 1,
  },
  feedP50: { text: 'the same, p50', unit: 's' },
  feedMax: { text: 'the same, longest', unit: 's' },
  fewest: { text: `backends in the shortest list of ${BACKENDS}`, unit: '' },
} as const;

/** Pods become unready, and ready again. */
export const CHURN = benchCase({
  name: 'churn',
  figures: {
    ...FEED_FIGURES,
    fewest: { ...FEED_FIGURES.fewest, atLeast: BACKENDS - 1 },
    watchP99: {
      text: 'from that answer to the event of a watch of Pods, which no replica can be faster than, p99',
      unit: 's',
    },
    watchP50: { text: 'the same, p50', unit: 's' },
    changes: { text: 'changes of Pods', unit: '/s' },
    lines: { text: 'lines to each watcher', unit: '/s' },
    ...COST_FIGURES,
  },

  async prepare(stage: ExportStage) {
    await stage.served();
  },

  watched: (stage) => stage.world.living,

  async measure({ world }) {
    const [book, pods] = await Promise.all([FeedBook.open(world.living), PodWatch.open(world)]);
    try {
      const changes = CHANGES_EACH_SECOND * SECONDS;
      const { values, details } = await costing(world, async () => {
        await churn(world, { book, pods }, changes);
        await book.untilAllSeen(SEEN_WITHIN_MS);
      });
      const seconds = Number(details.seconds);
      return {
        values: {
          ...feedValuesOf(book),
          watchP99: quantile(pods.latencies(), 0.99),
          watchP50: quantile(pods.latencies(), 0.5),
          changes: book.changes / seconds,
          lines: book.lines / world.living.length / seconds,
          ...values,
        },
        details,
      };
    } finally {
      book.close();
      pods.close();
    }
  },
});

/** Who sees the changes. */
interface Watches {
  readonly book: FeedBook;
  readonly pods: PodWatch;
}

export function feedValuesOf(book: FeedBook) {
  const seconds = book.latencies().map((ms) => ms / 1000);
  return {
    feedP99: quantile(seconds, 0.99),
    feedP50: quantile(seconds, 0.5),
    feedMax: seconds.at(-1) ?? Number.NaN,
    fewest: book.fewest,
  };
}

/** An even number for each Service, so that all Pods are ready in the end. */
async function churn(world: ExportWorld, watches: Watches, changes: number): Promise<void> {
  const { services } = world;
  const busy = services.filter((_, index) => index % Math.ceil(services.length / BUSY_SERVICES) === 0);
  const others = services.filter((service) => !busy.includes(service));
  const changers = new Map(services.map((service) => [service, new Changer(world, watches, service)]));
  const startedAt = performance.now();
  const asked: Promise<void>[] = [];
  let failure: unknown;
  for (let tick = 0; tick < changes && failure === undefined; tick++) {
    await delay(Math.max(0, startedAt + (tick * 1000) / CHANGES_EACH_SECOND - performance.now()));
    const isBusy = tick % BUSY_EVERY === 0;
    const turn = isBusy ? tick / BUSY_EVERY : tick - Math.ceil(tick / BUSY_EVERY);
    const list = isBusy ? busy : others;
    const service = list[turn % list.length];
    const changer = service && changers.get(service);
    if (changer === undefined) throw new Error('there are no Services');
    asked.push(
      changer.change().catch((error: unknown) => {
        failure ??= error;
      }),
    );
  }
  await Promise.all(asked);
  if (failure !== undefined) throw failure;
  await Promise.all([...changers.values()].map((changer) => changer.settle()));
}

/** Takes one Pod of a Service out and puts it back, then the next one: there is never more than one out. */
class Changer {
  readonly #world: ExportWorld;
  readonly #watches: Watches;
  readonly #service: BenchService;
  #changes = 0;
  /** The former one is waited for until both replicas have it: of two that meet there may be no line at all. */
  #last: Promise<void> = Promise.resolve();

  constructor(world: ExportWorld, watches: Watches, service: BenchService) {
    this.#world = world;
    this.#watches = watches;
    this.#service = service;
  }

  change(): Promise<void> {
    const number = this.#changes++;
    this.#last = this.#last.then(() => this.#change(number));
    return this.#last;
  }

  settle(): Promise<void> {
    return this.#changes % 2 === 0 ? this.#last : this.change();
  }

  async #change(number: number): Promise<void> {
    const pod = podOf(this.#service, Math.floor(number / 2) % BACKENDS, 0, this.#world.bases);
    const isThere = number % 2 === 1;
    const { book, pods } = this.#watches;
    const set = (): Promise<void> => this.#world.setReady(this.#service, pod, isThere);
    const made = await book.expect(this.#service, { ip: pod.ip, isThere }, () =>
      pods.expect(this.#service, pod, isThere, set),
    );
    await book.untilSeen(made, SEEN_WITHIN_MS);
  }
}
