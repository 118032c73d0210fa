import { nodeNameOf } from '../../../src/labels.ts';
import { benchCase } from '../suite.ts';
import { COST_FIGURES, costing } from './cost.ts';
import type { ScaleStage } from './stage.ts';

const LOST_WITHIN_MS = 120_000;

/** One of all bases is gone without a word. */
export const BASE_DIES = benchCase({
  name: 'base dies',
  figures: {
    lost: { text: 'until its Node is not ready', unit: 's' },
    othersLost: { text: 'other Nodes that were lost', unit: '', atMost: 0 },
    ...COST_FIGURES,
  },

  async prepare(stage: ScaleStage) {
    await stage.loaded();
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const [victim = ''] = await world.fleet.identities();
    const diedAt = Date.now();
    const { result, cost, details } = await costing(world, async () => {
      await world.fleet.kill(victim);
      return world.observer.untilNodeLost(nodeNameOf(victim), LOST_WITHIN_MS);
    });
    const { lost } = await world.observer.nodes();
    return { values: { lost: (result - diedAt) / 1000, othersLost: lost.length - 1, ...cost }, details };
  },
});
