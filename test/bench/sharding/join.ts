import { benchCase } from '../suite.ts';
import { balancedSince, transitionsSince } from './lease-history.ts';
import { REPLICAS } from './replica-world.ts';
import { fewestMoves } from './shares.ts';
import type { ShardingStage } from './stage.ts';

const RATIO = 1.25;
const WITHIN_MS = 120_000;
/** Rebalancing goes in rounds of a second: so long without a move, and it is over. */
const UNMOVED_MS = 5_000;

/** A fourth replica comes to three that have a third each. */
export const JOIN = benchCase({
  name: 'join',
  figures: {
    balancedAfter: { text: `until most over fewest leases is ${RATIO}, from its start`, unit: 's', atMost: 60 },
    moveRatio: { text: 'moves over the fewest possible', unit: '', atMost: 1.2 },
    moves: { text: 'moves', unit: '' },
    installs: { text: 'modules installed', unit: '', atMost: 0 },
  },

  async prepare(stage: ShardingStage) {
    await (await stage.open('mqtt')).settle(REPLICAS);
  },

  watched: (stage) => stage.world('mqtt').living,

  async measure(stage) {
    const replicas = stage.world('mqtt');
    const { leases, fleet } = replicas;
    const [before, mark, view] = [[...replicas.counts(), 0], await fleet.mark(), leases.view()];
    const since = Date.now();
    const joining = await replicas.launch();
    const among = replicas.livingNames;
    const balance = (): number | undefined => balancedSince(view(), { since, among, ratio: RATIO });
    await leases.until(() => `${joining.name} has its share: ${replicas.counts()}`, WITHIN_MS, balance);
    await leases.untilUnmoved(UNMOVED_MS);
    const { installs } = await fleet.historySummary(mark);
    const moves = transitionsSince(view(), since);
    return {
      values: {
        // What came after it may have undone it for a while.
        balancedAfter: ((balance() ?? Number.NaN) - since) / 1000,
        moveRatio: moves / fewestMoves(before),
        moves,
        installs: installs.reduce((sum, { count }) => sum + count, 0),
      },
      details: { before, after: replicas.counts(), fewest: fewestMoves(before) },
    };
  },
});
