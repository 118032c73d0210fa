import { restCostOf, untilAtRest } from '../at-rest.ts';
import { benchCase } from '../suite.ts';
import { REPLICAS, type ReplicaWorld } from './replica-world.ts';
import type { ShardingStage } from './stage.ts';

const MEMBER_REQUESTS = 'module_controller_member_requests_total';
const MEMBER_MESSAGES = 'module_controller_member_messages_total';

/** Two minutes in which nothing happens, over HTTP: the Service gives each heartbeat to another replica. */
export const HTTP_IDLE = benchCase({
  name: 'http-idle',
  figures: {
    mostCommands: { text: 'commands a minute to the base that gets the most', unit: '', atMost: 2 },
    meanCommands: { text: 'commands a minute to a base, on average', unit: '' },
    memberRequests: { text: 'requests between replicas, all together', unit: '/s' },
    memberMessages: { text: 'heartbeats in them', unit: '/s' },
    requests: { text: 'requests to the API server for each VNode and minute, by all', unit: '', atMost: 6.6 },
  },

  async prepare(stage: ShardingStage) {
    const replicas = await stage.open('http');
    await replicas.settle(REPLICAS);
    await untilAtRest(replicas);
  },

  watched: (stage) => stage.world('http').living,

  async measure(stage) {
    const replicas = stage.world('http');
    const before = await betweenReplicas(replicas);
    const { requestsPerVNodeMinute, mostCommands, meanCommands, details } = await restCostOf(replicas);
    const after = await betweenReplicas(replicas);
    const seconds = (after.at - before.at) / 1000;
    return {
      values: {
        mostCommands,
        meanCommands,
        memberRequests: (after.requests - before.requests) / seconds,
        memberMessages: (after.messages - before.messages) / seconds,
        requests: requestsPerVNodeMinute,
      },
      details,
    };
  },

  // Its replicas and bases are not to be in the way of what comes next.
  finish: (stage) => stage.closeWorld('http'),
});

async function betweenReplicas(replicas: ReplicaWorld): Promise<{ requests: number; messages: number; at: number }> {
  const [requests, messages] = await Promise.all([
    replicas.metric(MEMBER_REQUESTS),
    replicas.metric(MEMBER_MESSAGES, 'direction="sent"'),
  ]);
  return { requests, messages, at: performance.now() };
}
