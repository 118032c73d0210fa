import { connectAsync, type IPublishPacket, type MqttClient } from 'mqtt';
import type { ReceivedCommand } from '../../../contract/tunnel.ts';

const ANSWER_TYPES: Readonly<Record<string, string>> = {
  installBiz: 'bizOperation',
  uninstallBiz: 'bizOperation',
  queryAllBiz: 'biz',
  health: 'health',
};

export interface Delivery extends ReceivedCommand {
  readonly topic: string;
  readonly packet: IPublishPacket;
}

/** A base behind a broker, that keeps its commands and answers as it is told to. */
export class FakeMqttBase {
  readonly #client: MqttClient;
  readonly #prefix: string;
  readonly #answers = new Map<string, unknown>();
  readonly #deliveries: Delivery[] = [];
  readonly #waiting: ((delivery: Delivery) => void)[] = [];

  private constructor(client: MqttClient, prefix: string) {
    this.#client = client;
    this.#prefix = prefix;
    client.on('message', (topic, payload, packet) => this.#onCommand(topic, payload.toString(), packet));
  }

  static async connect(url: string, env: string, identity: string): Promise<FakeMqttBase> {
    const client = await connectAsync(url, { clientId: `koupleless@@@${identity}`, reconnectPeriod: 0 });
    const base = new FakeMqttBase(client, `koupleless_${env}/${identity}`);
    await client.subscribeAsync(`koupleless_${env}/${identity}/+`, { qos: 1 });
    return base;
  }

  answer(command: string, data: unknown): void {
    this.#answers.set(command, data);
  }

  received(): Promise<Delivery> {
    const delivery = this.#deliveries.shift();
    return delivery ? Promise.resolve(delivery) : new Promise((resolve) => this.#waiting.push(resolve));
  }

  async publish(type: string, payload: string | Buffer): Promise<void> {
    await this.#client.publishAsync(`${this.#prefix}/base/${type}`, payload, { qos: 1 });
  }

  async close(): Promise<void> {
    await this.#client.endAsync(true);
  }

  #onCommand(topic: string, body: string, packet: IPublishPacket): void {
    const command = topic.split('/').at(-1) ?? '';
    const delivery = { topic, command, body, packet };
    const wake = this.#waiting.shift();
    if (wake) wake(delivery);
    else this.#deliveries.push(delivery);
    if (this.#answers.has(command)) void this.#sendAnswer(command, body);
  }

  async #sendAnswer(command: string, body: string): Promise<void> {
    const answer = this.#answers.get(command);
    const type = ANSWER_TYPES[command] ?? '';
    const { bizName, bizVersion } = JSON.parse(body);
    const data = type === 'bizOperation' ? { command, bizName, bizVersion, response: answer } : answer;
    await this.publish(type, JSON.stringify({ publishTimestamp: 1_795_246_950_484, data }));
  }
}
