import { restCostOf, untilAtRest } from '../at-rest.ts';
import { benchCase } from '../suite.ts';
import { REPLICAS } from './replica-world.ts';
import type { ShardingStage } from './stage.ts';

/** Two minutes in which nothing happens, over MQTT. */
export const IDLE = benchCase({
  name: 'idle',
  figures: {
    requests: { text: 'requests to the API server for each VNode and minute, by all', unit: '', atMost: 6.6 },
    mostCommands: { text: 'commands a minute to the base that gets the most', unit: '', atMost: 2 },
    meanCommands: { text: 'commands a minute to a base, on average', unit: '' },
  },

  async prepare(stage: ShardingStage) {
    const replicas = await stage.open('mqtt');
    await replicas.settle(REPLICAS);
    await untilAtRest(replicas);
  },

  watched: (stage) => stage.world('mqtt').living,

  async measure(stage) {
    const { requestsPerVNodeMinute, mostCommands, meanCommands, details } = await restCostOf(stage.world('mqtt'));
    return { values: { requests: requestsPerVNodeMinute, mostCommands, meanCommands }, details };
  },
});
