import { benchCase } from '../suite.ts';
import { burst, burstFiguresOf, MINUTE_FIGURES, minuteAfter } from './cost.ts';
import type { ScaleStage } from './stage.ts';
import { SUBJECTS } from './subject.ts';

/** All bases come at one moment. */
export const ANNOUNCE = benchCase({
  name: 'announce',
  subjects: SUBJECTS,
  figures: {
    ready: { text: 'all bases at once until the last Node is ready', unit: 's', timesFloorAtMost: 1.3 },
    ...burstFiguresOf('Node'),
    ...MINUTE_FIGURES,
  },

  async prepare(stage: ScaleStage) {
    await stage.fresh();
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const startedAt = Date.now();
    const { result, cost, details } = await burst(world, world.bases, () => world.announce());
    return { values: { ready: (result.lastReadyAt - startedAt) / 1000, ...cost }, details };
  },

  afterwards: minuteAfter,
});
