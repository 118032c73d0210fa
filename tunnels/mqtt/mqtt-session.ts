import type { Socket } from 'node:net';
import { type IClientOptions, MqttClient, type Packet, UniqueMessageIdProvider } from 'mqtt';
import type { Clock } from '../../src/clock.ts';
import { intervalsOf } from './intervals.ts';
import { PublishWindow } from './publish-window.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const SEND_TIMEOUT_MS = 10_000;
const GOODBYE_TIMEOUT_MS = 1_000;
const MAX_OUTSTANDING = 512;
/** mqtt.js pings after one such period of hearing nothing and gives up after one and a half: 15 s. */
const KEEPALIVE_SECONDS = 10;
/** A SUBACK's word for "no"; every other value grants. */
const REFUSED = 0x80;

export interface MqttSessionOptions {
  readonly clientId: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly filters: readonly string[];
  readonly clock: Clock;
  /** Called in the order of arrival; must not throw. */
  readonly onMessage: (topic: string, payload: Uint8Array, isRetained: boolean) => void;
  /** All filters are granted. Called once at most. */
  readonly onUp: () => void;
}

/**
 * One connection to a broker, from CONNECT to the closed socket. A client of mqtt.js of its own for each, so that
 * nothing of a former connection can come back: no queue, no store, no message id.
 *
 * MQTT 3.1.1, the version of the bases: every broker has it, and 5 would add a fallback that only brokers we
 * do not test with would run.
 */
export class MqttSession {
  readonly #options: MqttSessionOptions;
  readonly #socket: Socket;
  readonly #client: MqttClient;
  readonly #window: PublishWindow;
  #isUp = false;
  #isLeaving = false;
  #error: Error | undefined;

  /** Takes over a socket that has just begun to connect. */
  constructor(options: MqttSessionOptions, openSocket: () => Socket) {
    this.#options = options;
    const socket = openSocket();
    socket.on('error', (error) => this.#note(error));
    this.#socket = socket;
    this.#client = new MqttClient(() => socket, clientOptionsOf(options));
    this.#window = new PublishWindow({
      clock: options.clock,
      size: MAX_OUTSTANDING,
      timeoutMs: SEND_TIMEOUT_MS,
      send: (topic, payload, acknowledged) => this.#send(topic, payload, acknowledged),
      onStuck: () => this.#fail('the broker acknowledges nothing'),
    });
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Resolves when the socket is closed, with the reason; undefined when it was `signal` that ended it. */
  async run(signal: AbortSignal): Promise<Error | undefined> {
    const closed = new Promise<void>((resolve) => this.#client.once('close', resolve));
    const deadline = this.#options.clock.setTimer(
      () => this.#isUp || this.#fail(`no connection and subscription within ${CONNECT_TIMEOUT_MS} ms`),
      CONNECT_TIMEOUT_MS,
    );
    const sayGoodbye = (): void => this.#sayGoodbye();
    signal.addEventListener('abort', sayGoodbye, { once: true });
    this.#listen();
    await closed;
    deadline.cancel();
    signal.removeEventListener('abort', sayGoodbye);
    return signal.aborted ? undefined : (this.#error ?? new Error('the broker closed the connection'));
  }

  /** At least once, never retained. */
  publish(topic: string, payload: string): Promise<void> {
    return this.#window.publish(topic, payload);
  }

  /** The same past the window, with nobody waiting for the acknowledgement. */
  post(topic: string, payload: string): void {
    this.#send(topic, payload, () => {});
  }

  #listen(): void {
    const client = this.#client;
    client.on('error', (error) => this.#note(error));
    client.on('connect', () => client.subscribe([...this.#options.filters], { qos: 1 }, () => {}));
    client.on('packetreceive', (packet) => this.#onPacket(packet));
    client.on('message', (topic, payload, packet) => this.#options.onMessage(topic, payload, packet.retain));
    // First of all listeners to the end, so that nobody sees a session up whose socket is gone.
    this.#socket.prependListener('close', () => {
      this.#isUp = false;
      this.#window.close();
    });
  }

  /** mqtt.js tells of a SUBACK by a promise, hence after the messages that came with it; here it is in order. */
  #onPacket(packet: Packet): void {
    if (packet.cmd !== 'suback' || this.#isUp || this.#isLeaving) return;
    const { filters, onUp } = this.#options;
    const refused = filters.filter(
      (_filter, index) => ((packet.granted[index] as number | undefined) ?? REFUSED) & REFUSED,
    );
    if (refused.length > 0) {
      this.#fail(`the broker refused to subscribe ${refused.join(', ')}`);
    } else {
      this.#isUp = true;
      onUp();
    }
  }

  #send(topic: string, payload: string, acknowledged: (error?: Error) => void): void {
    this.#client.publish(topic, payload, { qos: 1, retain: false }, (error) => acknowledged(error));
  }

  #sayGoodbye(): void {
    const client = this.#client;
    this.#isLeaving = true;
    this.#isUp = false;
    if (!client.connected) {
      this.#socket.destroy();
      return;
    }
    this.#window.close();
    // `end` would wait for acknowledgements for ever.
    for (const id of Object.keys(client.outgoing)) client.removeOutgoingMessage(Number(id));
    client.end();
    const timer = this.#options.clock.setTimer(() => this.#socket.destroy(), GOODBYE_TIMEOUT_MS);
    this.#socket.once('close', () => timer.cancel());
  }

  #fail(reason: string): void {
    this.#note(new Error(reason));
    this.#socket.destroy();
  }

  /** The first error is the cause, later ones follow from it. */
  #note(error: Error): void {
    this.#error ??= error;
  }
}

function clientOptionsOf(options: MqttSessionOptions): IClientOptions {
  const { clientId, username, password, clock } = options;
  return {
    clientId,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    protocolVersion: 4,
    clean: true,
    keepalive: KEEPALIVE_SECONDS,
    timerVariant: intervalsOf(clock),
    connectTimeout: CONNECT_TIMEOUT_MS,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    messageIdProvider: new UniqueMessageIdProvider(),
  };
}
