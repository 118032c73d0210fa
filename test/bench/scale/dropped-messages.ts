import { connectAsync } from 'mqtt';
import type { MqttBroker } from '../../../samples/broker/mqtt-broker.ts';

const TOPIC = '$SYS/broker/publish/messages/dropped';
const TOLD_WITHIN_MS = 30_000;

/** Messages that Mosquitto has thrown away because a client had too many waiting, as it last told. */
export async function droppedMessagesOf({ url }: MqttBroker): Promise<number> {
  const client = await connectAsync(url);
  try {
    const told = new Promise<number>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`nothing came on ${TOPIC}`)), TOLD_WITHIN_MS);
      client.on('message', (_topic, payload, { retain }) => {
        // The retained one is of before.
        if (retain) return;
        clearTimeout(timer);
        resolve(Number(payload.toString()));
      });
    });
    await client.subscribeAsync(TOPIC);
    return await told;
  } finally {
    await client.endAsync(true);
  }
}
