import { Socket } from 'node:net';
import { connect, type MqttClient } from 'mqtt';
import type { MessageType, TopicFilters, Topics } from '../../../../tunnels/mqtt/topics.ts';

export interface BrokerLinkOptions {
  readonly clientId: string;
  readonly filters: TopicFilters;
  readonly onMessage: (topic: string, payload: Buffer) => void;
}

/** Of all that the controller subscribes to, messages of these types. */
export function filtersOf(topics: Topics, types: readonly MessageType[]): TopicFilters {
  const isWanted = (filter: string): boolean => types.some((type) => filter.endsWith(`/base/${type}`));
  return Object.fromEntries(Object.entries(topics.filters()).filter(([filter]) => isWanted(filter)));
}

/** One connection to the broker. When it breaks, the process ends: what it would measure from then on is worth nothing. */
export class BrokerLink {
  readonly #client: MqttClient;

  private constructor(client: MqttClient) {
    this.#client = client;
  }

  /** Resolves when all topics are granted. */
  static async open(brokerUrl: string, { clientId, filters, onMessage }: BrokerLinkOptions): Promise<BrokerLink> {
    const client = connect(brokerUrl, { clientId, clean: true, protocolVersion: 4, keepalive: 60, reconnectPeriod: 0 });
    client.on('message', (topic, payload, { retain }) => {
      // Nobody knows how old it is.
      if (!retain) onMessage(topic, payload);
    });
    client.on('error', end);
    client.on('close', () => end(new Error('the connection to the broker was closed')));
    await new Promise<void>((resolve) => client.once('connect', () => resolve()));
    // Nagle's algorithm holds a command behind an acknowledgement back for 40 ms.
    if (client.stream instanceof Socket) client.stream.setNoDelay(true);
    await client.subscribeAsync({ ...filters });
    return new BrokerLink(client);
  }

  publish(topic: string, payload: string): void {
    this.#client.publish(topic, payload, { qos: 1 }, ignore);
  }
}

/** Whether the broker has acknowledged is of no interest: nothing is sent again. */
function ignore(): void {}

function end(error: Error): void {
  // Out of the stack of mqtt.js, which might catch it.
  queueMicrotask(() => {
    throw error;
  });
}
