import { benchCase } from '../suite.ts';
import { REPLICAS } from './replica-world.ts';
import type { ShardingStage } from './stage.ts';
import { busiestOf, endAndWatch } from './succession.ts';

/** SIGTERM to the replica with the most leases. Where a case before has left four replicas it is one of four. */
export const TERM = benchCase({
  name: 'term',
  figures: {
    held: { text: 'from SIGTERM until others hold all its leases', unit: 's', atMost: 2 },
    led: { text: 'until these have confirmed them', unit: 's' },
    exit: { text: 'until its process has ended', unit: 's' },
    leases: { text: 'leases it had', unit: '' },
  },

  async prepare(stage: ShardingStage) {
    const replicas = await stage.open('mqtt');
    await replicas.settle(Math.max(REPLICAS, replicas.living.length));
  },

  watched: (stage) => stage.world('mqtt').living,

  async measure(stage) {
    const replicas = stage.world('mqtt');
    const { held, led, exit, leases, halfLed } = await endAndWatch(replicas, {
      victim: busiestOf(replicas),
      signal: 'SIGTERM',
    });
    return { values: { held, led, exit, leases }, details: { halfLed, after: replicas.counts() } };
  },
});
