import { serveCalls } from '../../../../samples/process/serve.ts';
import { Topics } from '../../../../tunnels/mqtt/topics.ts';
import { ApiWriter } from '../floor/api-writer.ts';
import { BrokerLink, filtersOf } from '../floor/broker-link.ts';
import { newBaseOf } from '../floor/messages.ts';
import { bareNodeOf } from '../floor/objects.ts';
import type { NodeMakerCalls } from './kwok.ts';

/** What the floor does at a first heartbeat, but for the Lease and the conditions, which are kwok's. */

const CLIENT_ID = `node-maker-${process.pid}`;
const CONNECTIONS = 16;

serveCalls<NodeMakerCalls>({
  async start({ env, brokerUrl, ...api }) {
    const topics = new Topics(env, CLIENT_ID);
    const writer = new ApiWriter({ ...api, connections: CONNECTIONS }, { refused: 0, failed: 0 });
    /** Never emptied: a base that was there once stays. */
    const known = new Set<string>();
    await BrokerLink.open(brokerUrl, {
      clientId: CLIENT_ID,
      filters: filtersOf(topics, ['heart']),
      onMessage: (topic, payload) => {
        const { identity = '' } = topics.parse(topic) ?? {};
        const base = known.has(identity) ? undefined : newBaseOf(identity, payload);
        if (base === undefined) return;
        known.add(identity);
        void writer.create('/api/v1/nodes', bareNodeOf(base, env));
      },
    });
  },
});
