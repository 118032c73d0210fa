import { Socket } from 'node:net';
import { connect, type MqttClient } from 'mqtt';
import type { Clock, Timer } from '../../src/clock.ts';

export interface MqttConnectionOptions {
  brokerUrl: string;
  clientId: string;
  username?: string;
  password?: string;
  /** What to subscribe to, QoS 1, at every connect. */
  topics: Iterable<string>;
  /** Pause before each try after a lost connection. */
  reconnectMs: number;
  clock: Clock;
  onMessage: (topic: string, payload: string, messageId: number | undefined) => void;
}

/**
 * One MQTT 3.1.1 connection as a base has it: clean session, no will. A lost connection is opened again and again,
 * each time as a new client, so nothing from before is sent twice.
 */
export class MqttConnection {
  readonly #options: MqttConnectionOptions;
  #client: MqttClient | undefined;
  #retry: Timer | undefined;
  #isWanted = false;

  constructor(options: MqttConnectionOptions) {
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#client?.connected === true;
  }

  /** Resolves when connected and subscribed; rejects when this first try fails. Once connected it stays so. */
  async connect(): Promise<void> {
    this.#isWanted = true;
    try {
      await this.#open();
    } catch (error) {
      await this.cut();
      throw new Error(`brokerUrl: ${this.#options.clientId} cannot connect to ${this.#options.brokerUrl}`, {
        cause: error,
      });
    }
  }

  /** Further topics, for as long as this connection holds: `topics` says what is subscribed when it comes again. */
  async subscribe(topics: readonly string[]): Promise<void> {
    await this.#client?.subscribeAsync([...topics], { qos: 1 });
  }

  /** False when there is no connection: the message is lost. */
  publish(topic: string, payload: string): boolean {
    if (!this.#client?.connected) return false;
    // The callback takes the error of a connection that ends before the acknowledgement.
    this.#client.publish(topic, payload, { qos: 1 }, () => {});
    return true;
  }

  /** Ends the connection in the polite way, and stays away. */
  async disconnect(): Promise<void> {
    const client = this.#giveUp();
    if (client) await client.endAsync(!client.connected);
  }

  /** Ends the connection without a DISCONNECT, as the end of a process does, and stays away. */
  async cut(): Promise<void> {
    const client = this.#giveUp();
    if (!client) return;
    await client.endAsync(true);
  }

  #giveUp(): MqttClient | undefined {
    this.#isWanted = false;
    this.#retry?.cancel();
    this.#retry = undefined;
    const client = this.#client;
    this.#client = undefined;
    return client;
  }

  #open(): Promise<void> {
    const { brokerUrl, clientId, username, password } = this.#options;
    const client = connect(brokerUrl, {
      clientId,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      clean: true,
      protocolVersion: 4,
      keepalive: 60,
      connectTimeout: 10_000,
      reconnectPeriod: 0,
    });
    this.#client = client;
    client.on('message', (topic, payload, packet) => {
      if (client === this.#client) this.#options.onMessage(topic, payload.toString(), packet.messageId);
    });
    return new Promise((resolve, reject) => {
      let failure: Error = new Error('connection closed');
      client.on('error', (error) => {
        failure = error;
      });
      client.on('close', () => {
        reject(failure);
        this.#onClosed(client);
      });
      client.once('connect', () => {
        // Nagle's algorithm holds an answer behind an acknowledgement back for 40 ms.
        if (client.stream instanceof Socket) client.stream.setNoDelay(true);
        client.subscribe([...this.#options.topics], { qos: 1 }, (error) => (error ? reject(error) : resolve()));
      });
    });
  }

  #onClosed(client: MqttClient): void {
    client.end(true);
    if (client !== this.#client || !this.#isWanted) return;
    this.#client = undefined;
    this.#retry = this.#options.clock.setTimer(() => {
      // A failed try ends in `close` as well, which plans the next.
      this.#open().catch(() => {});
    }, this.#options.reconnectMs);
  }
}
