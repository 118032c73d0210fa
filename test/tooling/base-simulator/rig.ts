import { Socket } from 'node:net';
import { connectAsync, type MqttClient } from 'mqtt';
import { type Fleet, type FleetOptions, startFleet } from '../../../samples/base-simulator/fleet.ts';
import { type Broker, startBroker } from '../../../samples/broker/broker.ts';

export const ENV = 'dev';
const WAIT_MS = 5_000;

export interface Heard {
  identity: string;
  /** The last level of the topic. */
  kind: string;
  text: string;
}

export interface HeardFilter {
  identity?: string;
  kind?: string;
}

/** The other end of the wire: hears all bases, sends commands. */
export class Controller {
  readonly heard: Heard[] = [];
  readonly #client: MqttClient;
  readonly #checks = new Set<() => void>();

  constructor(client: MqttClient) {
    this.#client = client;
    client.on('message', (topic, payload) => {
      const [, identity = '', , kind = ''] = topic.split('/');
      // The subscription covers our own baseline messages as well.
      if (kind === 'baseline') return;
      this.heard.push({ identity, kind, text: payload.toString() });
      for (const check of this.#checks) check();
    });
  }

  send(identity: string, command: string, content: unknown): void {
    const topic = `koupleless_${ENV}/${identity}/${command === 'baseline' ? 'base/baseline' : command}`;
    this.#client.publish(topic, typeof content === 'string' ? content : JSON.stringify(content), { qos: 1 });
  }

  all({ identity, kind }: HeardFilter = {}): Heard[] {
    return this.heard.filter(
      (one) => (identity === undefined || identity === one.identity) && (kind === undefined || kind === one.kind),
    );
  }

  /** The `count`-th message that fits, as JSON; waits for it. */
  async nth(count: number, filter: HeardFilter): Promise<Message> {
    await this.#until(() => this.all(filter).length >= count, `message ${count} of ${JSON.stringify(filter)}`);
    return JSON.parse(this.all(filter)[count - 1]?.text ?? '');
  }

  async end(): Promise<void> {
    await this.#client.endAsync(true);
  }

  #until(isDone: () => boolean, what: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        if (!isDone()) return;
        this.#checks.delete(check);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#checks.delete(check);
        reject(new Error(`${what} did not come; heard ${this.heard.map((one) => one.kind).join(', ')}`));
      }, WAIT_MS);
      this.#checks.add(check);
      check();
    });
  }
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into any part of a message
export type Message = { data: any; publishTimestamp: number };

export interface Rig {
  broker: Broker;
  fleet: Fleet;
  controller: Controller;
  stop(): Promise<void>;
}

/** A broker, a controller that already listens, and bases with quick installs. */
export async function startRig(options: Partial<FleetOptions> = {}): Promise<Rig> {
  const broker = await startBroker();
  const client = await connectAsync(broker.url, { clientId: 'controller', protocolVersion: 4, reconnectPeriod: 10 });
  if (client.stream instanceof Socket) client.stream.setNoDelay(true);
  await client.subscribeAsync(`koupleless_${ENV}/+/base/+`, { qos: 1 });
  const controller = new Controller(client);
  const defaults = { brokerUrl: broker.url, env: ENV, installMs: 5, uninstallMs: 5, reconnectMs: 10 };
  const fleet = await startFleet({ ...defaults, ...options });
  const stop = async (): Promise<void> => {
    await fleet.stop();
    await controller.end();
    await broker.stop();
  };
  return { broker, fleet, controller, stop };
}

export const BIZ = { bizName: 'biz1', bizVersion: '1.0.0', bizUrl: 'file:///app/biz1-1.0.0-ark-biz.jar' };
