import { benchCase } from '../suite.ts';
import { COST_FIGURES, costing } from './cost.ts';
import type { ScaleStage } from './stage.ts';
import { SUBJECTS } from './subject.ts';

/** All bases come at one moment. */
export const ANNOUNCE = benchCase({
  name: 'announce',
  subjects: SUBJECTS,
  figures: {
    ready: { text: 'all bases at once until the last Node is ready', unit: 's', timesFloorAtMost: 1.5 },
    ...COST_FIGURES,
  },

  async prepare(stage: ScaleStage) {
    await stage.fresh();
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const startedAt = Date.now();
    const { result, cost, details } = await costing(world, () => world.announce());
    return { values: { ready: (result.lastReadyAt - startedAt) / 1000, ...cost }, details };
  },
});
