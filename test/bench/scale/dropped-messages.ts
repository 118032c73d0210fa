import { connectAsync } from 'mqtt';
import type { MqttBroker } from '../../../samples/broker/mqtt-broker.ts';

/** Told, retained, when it has changed. */
const DROPPED = '$SYS/broker/publish/messages/dropped';
/** Told with each round of `$SYS`, before the others. */
const UPTIME = '$SYS/broker/uptime';
const TOLD_WITHIN_MS = 30_000;

/** Messages that Mosquitto has thrown away until now because a client had too many waiting. */
export async function droppedMessagesOf({ url }: MqttBroker): Promise<number> {
  const client = await connectAsync(url);
  try {
    const told = new Promise<number>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`nothing came on ${UPTIME} and ${DROPPED}`)), TOLD_WITHIN_MS);
      let dropped: number | undefined;
      let rounds = 0;
      client.on('message', (topic, payload, { retain }) => {
        if (topic === DROPPED) dropped = Number(payload.toString());
        else if (!retain) rounds += 1;
        // With the second round, all of the first one has come.
        if (rounds < 2 || dropped === undefined) return;
        clearTimeout(timer);
        resolve(dropped);
      });
    });
    await client.subscribeAsync([DROPPED, UPTIME]);
    return await told;
  } finally {
    await client.endAsync(true);
  }
}
