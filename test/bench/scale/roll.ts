import { benchCase } from '../suite.ts';
import { burst, burstFiguresOf, COST_FIGURES, quantile } from './cost.ts';
import type { ScaleStage } from './stage.ts';
import { SUBJECTS } from './subject.ts';

/** A new version of every module, as Deployments roll by default. */
export const ROLL = benchCase({
  name: 'roll',
  subjects: SUBJECTS,
  figures: {
    done: {
      text: 'until all Pods are of the new version and Ready, and the old have gone',
      unit: 's',
      timesFloorAtMost: 1.15,
    },
    startupP99: { text: 'from bound to Ready without the install, p99', unit: 'ms' },
    ...burstFiguresOf('Pod'),
    requests: { ...COST_FIGURES.requests, timesFloorAtMost: 1.3 },
  },

  async prepare(stage: ScaleStage) {
    await stage.loaded();
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const startedAt = Date.now();
    const { result, cost, details } = await burst(world, world.pods, () => world.rollOut());
    const { ready, gone } = result;
    const doneAt = Math.max(ready.last.ready, gone?.last.gone ?? 0);
    const startupP99 = quantile(ready.startups, 0.99) - world.installMs;
    return { values: { done: (doneAt - startedAt) / 1000, startupP99, ...cost }, details };
  },
});
