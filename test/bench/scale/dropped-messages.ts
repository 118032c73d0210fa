import { connectAsync, type MqttClient } from 'mqtt';
import type { MqttBroker } from '../../../samples/broker/mqtt-broker.ts';

/** Told, retained, when it has changed; Mosquitto 2 forgets what is retained there after a minute without a change. */
const DROPPED = '$SYS/broker/publish/messages/dropped';
/** Told with each round of `$SYS`, before the others. */
const UPTIME = '$SYS/broker/uptime';
const TOLD_WITHIN_MS = 30_000;

/** The messages that Mosquitto throws away because a client has too many waiting. */
export class DroppedMessages {
  readonly #client: MqttClient;
  /** By the broker, since it runs. */
  #total = 0;

  private constructor(client: MqttClient) {
    this.#client = client;
    client.on('message', (topic, payload) => {
      if (topic === DROPPED) this.#total = Number(payload.toString());
    });
  }

  /** Of a broker in its first minute; rejects when it tells nothing. */
  static async watch({ url }: MqttBroker): Promise<DroppedMessages> {
    const client = await connectAsync(url);
    const watch = new DroppedMessages(client);
    try {
      const told = untilTold(client, DROPPED, 1);
      await Promise.all([client.subscribeAsync([DROPPED, UPTIME]), told]);
      return watch;
    } catch (error) {
      await watch.stop();
      throw error;
    }
  }

  /** Since the broker runs, all that was dropped before this call. */
  async total(): Promise<number> {
    // With the second round, all of the first one has come.
    await untilTold(this.#client, UPTIME, 2);
    return this.#total;
  }

  async stop(): Promise<void> {
    await this.#client.endAsync(true);
  }
}

/** Resolves when that topic has been told so many times from now on. */
function untilTold(client: MqttClient, topic: string, times: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let told = 0;
    const end = (settle: () => void) => {
      clearTimeout(timer);
      client.off('message', listener);
      settle();
    };
    const listener = (from: string) => {
      if (from !== topic) return;
      told += 1;
      if (told === times) end(resolve);
    };
    const timer = setTimeout(() => {
      end(() => reject(new Error(`${topic} was told ${told} times in ${TOLD_WITHIN_MS / 1000} s, not ${times}`)));
    }, TOLD_WITHIN_MS);
    client.on('message', listener);
  });
}
