import { type BenchCase, benchCase } from '../suite.ts';
import { COST_FIGURES, costing } from './cost.ts';
import type { SettingsName } from './settings.ts';
import type { ScaleStage } from './stage.ts';

/** Nothing is tuned for us: slower, and all of it must come right in the end. */
function stockCase(settings: SettingsName): BenchCase<ScaleStage> {
  return benchCase({
    name: settings,
    figures: {
      nodes: { text: 'all bases at once until the last Node is ready', unit: 's' },
      pods: { text: 'from the apply until the last Pod is Ready', unit: 's' },
      dropped: { text: 'messages that the broker dropped', unit: '' },
      extraInstalls: { text: 'installs executed beyond one for each Pod', unit: '', atMost: 0 },
      ...COST_FIGURES,
    },

    async prepare(stage: ScaleStage) {
      await stage.fresh(settings);
    },

    watched: (stage) => [stage.world.subject],

    async measure({ world }) {
      const dropped = await world.watchDroppedMessages();
      try {
        const { result, cost, details } = await costing(world, async () => {
          const startedAt = Date.now();
          const { lastReadyAt } = await world.announce();
          const appliedAt = Date.now();
          const { ready } = await world.rollOut();
          return { nodes: lastReadyAt - startedAt, pods: ready.last.ready - appliedAt };
        });
        return {
          values: {
            nodes: result.nodes / 1000,
            pods: result.pods / 1000,
            dropped: await dropped.total(),
            extraInstalls: await world.extraInstalls(0),
            ...cost,
          },
          details,
        };
      } finally {
        await dropped.stop();
      }
    },
  });
}

export const STOCK_API_SERVER = stockCase('stock API server');
export const STOCK_MOSQUITTO = stockCase('stock Mosquitto');
