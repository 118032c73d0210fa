import { benchCase } from '../suite.ts';
import { COST_FIGURES, costing } from './cost.ts';
import type { ScaleStage } from './stage.ts';

const HELD_WITHIN_MS = 60_000;

/** The controller is killed, and another one started at once, with all Pods present. */
export const RESTART = benchCase({
  name: 'restart',
  figures: {
    held: { text: 'from the start of the process until it has renewed every lease', unit: 's', atMost: 3 },
    asked: { text: 'until every base was asked for its modules', unit: 's', atMost: 3 },
    installs: { text: 'installs and uninstalls sent', unit: '', atMost: 0 },
    ...COST_FIGURES,
  },

  async prepare(stage: ScaleStage) {
    await stage.loaded();
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const mark = await world.fleet.mark();
    await world.observer.watchLeases();
    let startedAt = 0;
    const { result, cost, details } = await costing(world, async () => {
      startedAt = await world.replaceController();
      const [heldAt, asked] = await Promise.all([
        world.observer.untilRenewed(startedAt, world.bases, HELD_WITHIN_MS),
        world.fleet.waitFor({ command: 'queryAllBiz', since: mark }, { count: world.bases, timeoutMs: HELD_WITHIN_MS }),
      ]);
      return { heldAt, askedAt: Math.max(...asked.map(({ receivedAt }) => receivedAt)) };
    });
    await world.observer.ignoreLeases();
    const { commands } = await world.fleet.historySummary(mark);
    return {
      values: {
        held: (result.heldAt - startedAt) / 1000,
        asked: (result.askedAt - startedAt) / 1000,
        installs: commands.installBiz + commands.uninstallBiz + commands.batchInstallBiz,
        ...cost,
      },
      details,
    };
  },
});
