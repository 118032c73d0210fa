import { benchCase } from '../suite.ts';
import { burst, burstFiguresOf, MINUTE_FIGURES, minuteAfter } from './cost.ts';
import type { ScaleStage } from './stage.ts';
import { SUBJECTS } from './subject.ts';

/** All Deployments are deleted; an uninstall takes no time. */
export const DELETE = benchCase({
  name: 'delete',
  subjects: SUBJECTS,
  figures: {
    gone: { text: 'until the last Pod has gone', unit: 's', timesFloorAtMost: 1.2 },
    ...burstFiguresOf('Pod'),
    ...MINUTE_FIGURES,
  },

  async prepare(stage: ScaleStage) {
    await stage.loaded();
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const startedAt = Date.now();
    const { result, cost, details } = await burst(world, world.pods, () => world.deleteAll());
    return { values: { gone: (result.last.gone - startedAt) / 1000, ...cost }, details };
  },

  afterwards: minuteAfter,
});
