import { setTimeout as delay } from 'node:timers/promises';
import { benchCase } from '../suite.ts';
import { COST_FIGURES, costing, untilNoWrites } from './cost.ts';
import { FeedBook } from './feed-book.ts';
import type { ExportStage } from './stage.ts';

const REST_MS = 60_000;
const QUIET_FOR_MS = 5_000;
const QUIET_WITHIN_MS = 120_000;

/** A minute in which nothing happens. */
export const REST = benchCase({
  name: 'rest',
  figures: {
    ...COST_FIGURES,
    writes: { ...COST_FIGURES.writes, atMost: 0 },
    lines: { text: 'lines of the feed', unit: '', atMost: 0 },
  },

  async prepare(stage: ExportStage) {
    await untilNoWrites(await stage.served(), QUIET_FOR_MS, QUIET_WITHIN_MS);
  },

  watched: (stage) => stage.world.living,

  async measure({ world }) {
    const book = await FeedBook.open(world.living);
    try {
      const { values, details } = await costing(world, () => delay(REST_MS));
      return { values: { ...values, lines: book.lines }, details };
    } finally {
      book.close();
    }
  },
});
