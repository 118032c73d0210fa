import { benchCase } from '../suite.ts';
import { COST_FIGURES, costing, quantile } from './cost.ts';
import { INSTALL_MS } from './scale-world.ts';
import type { ScaleStage } from './stage.ts';
import { SUBJECTS } from './subject.ts';

/** A Deployment for each module, a copy on each base. */
export const APPLY = benchCase({
  name: 'apply',
  subjects: SUBJECTS,
  figures: {
    ready: { text: 'from the apply until the last Pod is Ready', unit: 's', timesFloorAtMost: 1.15 },
    bound: { text: 'until the scheduler has bound the last', unit: 's' },
    startupP50: { text: 'from bound to Ready without the install, p50', unit: 'ms' },
    startupP99: { text: 'from bound to Ready without the install, p99', unit: 'ms' },
    extraInstalls: { text: 'installs executed beyond one for each Pod', unit: '', atMost: 0 },
    restarts: { text: 'restarts of containers', unit: '', atMost: 0 },
    ...COST_FIGURES,
  },

  async prepare(stage: ScaleStage) {
    await stage.empty();
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const mark = await world.fleet.mark();
    const startedAt = Date.now();
    const { result, cost, details } = await costing(world, () => world.rollOut());
    const { ready } = result;
    return {
      values: {
        ready: (ready.last.ready - startedAt) / 1000,
        bound: (ready.last.bound - startedAt) / 1000,
        startupP50: quantile(ready.startups, 0.5) - INSTALL_MS,
        startupP99: quantile(ready.startups, 0.99) - INSTALL_MS,
        extraInstalls: await world.extraInstalls(mark),
        restarts: ready.restarts,
        ...cost,
      },
      details,
    };
  },
});
