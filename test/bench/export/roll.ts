import { benchCase } from '../suite.ts';
import { FEED_FIGURES, feedValuesOf } from './churn.ts';
import { COST_FIGURES, costing } from './cost.ts';
import type { ExportWorld } from './export-world.ts';
import { FeedBook } from './feed-book.ts';
import { BACKENDS, type BenchService, podOf } from './objects.ts';
import type { ExportStage } from './stage.ts';

const SERVICES = 50;
const SEEN_WITHIN_MS = 60_000;

/** All Pods of some Services are replaced, those of one Service one by one: the new one is ready before the old one goes. */
export const ROLL = benchCase({
  name: 'roll',
  figures: {
    ...FEED_FIGURES,
    fewest: { ...FEED_FIGURES.fewest, atLeast: BACKENDS },
    took: { text: `until all Pods of ${SERVICES} Services are replaced`, unit: 's' },
    ...COST_FIGURES,
  },

  async prepare(stage: ExportStage) {
    await stage.served();
  },

  watched: (stage) => stage.world.living,

  async measure({ world }) {
    const book = await FeedBook.open(world.living);
    try {
      const step = Math.max(1, Math.floor(world.services.length / SERVICES));
      const services = world.services.filter(({ index }) => index % step === 0).slice(0, SERVICES);
      const { values, details } = await costing(world, async () => {
        await Promise.all(services.map((service) => roll(world, book, service)));
        await book.untilAllSeen(SEEN_WITHIN_MS);
      });
      return { values: { ...feedValuesOf(book), took: Number(details.seconds), ...values }, details };
    } finally {
      book.close();
    }
  },
});

async function roll(world: ExportWorld, book: FeedBook, service: BenchService): Promise<void> {
  for (let place = 0; place < BACKENDS; place++) {
    const [old, next] = [podOf(service, place, 0, world.bases), podOf(service, place, 1, world.bases)];
    await world.createPod(service, next);
    await book.expect(service, { ip: next.ip, isThere: true }, () => world.setReady(service, next, true));
    await book.expect(service, { ip: old.ip, isThere: false }, () => world.deletePod(service, old));
    await world.removePod(service, old);
  }
}
