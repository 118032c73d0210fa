import { MqttConnection, type MqttConnectionOptions } from './mqtt-connection.ts';

/** What a base needs of a connection, whether its own or a seat on a shared one. */
export type BaseConnection = Pick<MqttConnection, 'isConnected' | 'connect' | 'publish' | 'disconnect' | 'cut'>;

export type SharedConnectionOptions = Omit<MqttConnectionOptions, 'topics' | 'onMessage'>;

export interface SeatOptions extends Pick<MqttConnectionOptions, 'onMessage'> {
  /** The first two levels of all topics of the base: `koupleless_dev/base-1`. */
  readonly topicRoot: string;
  readonly topics: readonly string[];
}

/**
 * One MQTT connection for many bases, so that hundreds of them cost the broker and this process little. A base without
 * a connection of its own says and hears the same. One that dies leaves its seat: nothing more is sent or heard in its
 * name. Nobody can tell that from the end of a connection, as a base has no will.
 */
export class SharedConnection {
  readonly #connection: MqttConnection;
  /** Of all seats that were ever taken; subscribed at every connect. */
  readonly #topics = new Set<string>();
  /** The bases that hear, by topic root. Emptied as they leave. */
  readonly #hearing = new Map<string, MqttConnectionOptions['onMessage']>();
  #opening: Promise<void> | undefined;

  constructor(options: SharedConnectionOptions) {
    this.#connection = new MqttConnection({
      ...options,
      topics: this.#topics,
      onMessage: (topic, ...rest) => this.#hearing.get(rootOf(topic))?.(topic, ...rest),
    });
  }

  /** Seats that are taken before the first base connects are subscribed together. */
  seat({ topicRoot, topics, onMessage }: SeatOptions): BaseConnection {
    const isLate = this.#opening !== undefined;
    for (const topic of topics) this.#topics.add(topic);
    const connection = this.#connection;
    const isSeated = (): boolean => this.#hearing.get(topicRoot) === onMessage;
    const leave = async (): Promise<void> => {
      if (!isSeated()) return;
      this.#hearing.delete(topicRoot);
      if (this.#hearing.size === 0) await this.#close();
    };
    return {
      get isConnected() {
        return isSeated() && connection.isConnected;
      },
      connect: async () => {
        this.#hearing.set(topicRoot, onMessage);
        this.#opening ??= connection.connect();
        await this.#opening;
        if (isLate) await connection.subscribe(topics);
      },
      publish: (topic, payload) => isSeated() && connection.publish(topic, payload),
      disconnect: leave,
      cut: leave,
    };
  }

  async #close(): Promise<void> {
    this.#opening = undefined;
    await this.#connection.cut();
  }
}

function rootOf(topic: string): string {
  return topic.split('/', 2).join('/');
}
