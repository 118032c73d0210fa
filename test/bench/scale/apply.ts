import { benchCase } from '../suite.ts';
import { burst, burstFiguresOf, MINUTE_FIGURES, minuteAfter, quantile } from './cost.ts';
import type { ScaleStage } from './stage.ts';
import { SUBJECTS } from './subject.ts';

/** A Deployment for each module, a copy on each base. */
export const APPLY = benchCase({
  name: 'apply',
  subjects: SUBJECTS,
  figures: {
    ready: { text: 'from the apply until the last Pod is Ready', unit: 's', timesFloorAtMost: 1.1 },
    bound: { text: 'until the scheduler has bound the last', unit: 's' },
    startupP50: { text: 'from bound to Ready without the install, p50', unit: 'ms' },
    startupP99: { text: 'from bound to Ready without the install, p99', unit: 'ms' },
    extraInstalls: { text: 'installs executed beyond one for each Pod', unit: '', atMost: 0 },
    restarts: { text: 'restarts of containers', unit: '', atMost: 0 },
    ...burstFiguresOf('Pod'),
    ...MINUTE_FIGURES,
  },

  async prepare(stage: ScaleStage) {
    await stage.empty();
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const mark = await world.fleet.mark();
    const startedAt = Date.now();
    const { result, cost, details } = await burst(world, world.pods, () => world.rollOut());
    const { ready } = result;
    return {
      values: {
        ready: (ready.last.ready - startedAt) / 1000,
        bound: (ready.last.bound - startedAt) / 1000,
        startupP50: quantile(ready.startups, 0.5) - world.installMs,
        startupP99: quantile(ready.startups, 0.99) - world.installMs,
        ...(world.installMs > 0 ? { extraInstalls: await world.extraInstalls(mark) } : {}),
        restarts: ready.restarts,
        ...cost,
      },
      details,
    };
  },

  afterwards: minuteAfter,
});
