import { MqttClient, type Packet } from 'mqtt';
import { type Clock, sleep, type Timer } from '../../src/clock.ts';
import type { ControllerError } from '../../src/errors.ts';
import type { Logger } from '../../src/logger.ts';
import {
  type BrokerSocket,
  type BrokerTls,
  brokerAddressOf,
  openBrokerSocket,
  readCertificates,
  reconnectDelayMs,
} from './broker-socket.ts';
import { CONNECT_TIMEOUT_MS, clientOptionsOf, type MqttClientOptions } from './client-options.ts';
import { ClosedByBroker, hintOf, notAllowed, notConnected, notWritten, sendFailed } from './failures.ts';
import type { TopicFilters } from './topics.ts';

const SEND_TIMEOUT_MS = 10_000;
const GOODBYE_TIMEOUT_MS = 1_000;
const MAX_OUTSTANDING = 512;
/** A SUBACK's word for "no"; every other value grants. */
const REFUSED = 0x80;
/** A connection that lived shorter counts as a failure: two clients of one id throw each other out at once. */
const HEALTHY_MS = 10_000;

export interface MqttConnectionOptions extends MqttClientOptions {
  /** `mqtt://host:port` or `mqtts://host:port`. */
  readonly url: string;
  /** Default: no client certificate, the certificate authorities of Node. Means nothing to `mqtt://`. */
  readonly tls?: BrokerTls | undefined;
  readonly filters: TopicFilters;
  readonly logger: Logger;
}

export interface MqttListener {
  /** Called in the order of arrival; must not throw. */
  onMessage(topic: string, payload: Uint8Array, isRetained: boolean): void;
  onUp(isReconnect: boolean): void;
  /** Called after every `onUp`. */
  onDown(): void;
}

/** Keeps one session with the broker, for ever again a new one. Up means connected and every filter granted. */
export class MqttConnection {
  readonly #options: MqttConnectionOptions;
  #session: MqttSession | undefined;
  #upAt: number | undefined;
  #startedAt: number | undefined;
  /** The last one that was up. */
  #lastUp: MqttSession | undefined;

  constructor(options: MqttConnectionOptions) {
    this.#options = options;
  }

  isUp(): boolean {
    return this.#session?.isUp ?? false;
  }

  upSince(): number | undefined {
    return this.isUp() ? this.#upAt : undefined;
  }

  /** Time since which the link is down. A link that went silent before it broke is down since it went silent. */
  downSince(): number | undefined {
    return this.isUp() ? undefined : (this.#lastUp?.heardAt ?? this.#startedAt);
  }

  async publish(message: Message): Promise<void> {
    if (!this.#session?.isUp) throw notConnected();
    await this.#session.publish(message);
  }

  /** Sends if the link is up, and never says whether. */
  post(topic: string, payload: string): void {
    if (this.#session?.isUp) this.#session.post(topic, payload);
  }

  /** Breaks the link if anything of it may still be under way. */
  abandon(): void {
    this.#session?.abandon();
  }

  /** Resolves when `signal` is aborted and the socket closed. Throws TypeError at once if the URL is none. */
  async run(listener: MqttListener, signal: AbortSignal): Promise<void> {
    const { clock, logger, url } = this.#options;
    const { host, port, isTls } = brokerAddressOf(url);
    this.#startedAt = clock.now();
    for (let failures = 0; !signal.aborted; ) {
      const { error, upForMs } = await this.#runSession(listener, signal);
      if (signal.aborted) return;
      failures = upForMs >= HEALTHY_MS ? 0 : failures + 1;
      const delayMs = reconnectDelayMs(failures, Math.random());
      const hint = upForMs === 0 ? hintOf(error, isTls) : undefined;
      logger.warn({ err: error, hint, broker: `${host}:${port}`, failures, delayMs }, 'no link to the broker');
      await sleep(clock, delayMs, signal);
    }
  }

  async #runSession(listener: MqttListener, signal: AbortSignal): Promise<{ error: unknown; upForMs: number }> {
    let error: unknown;
    try {
      error = await this.#openSession(listener, signal);
    } catch (thrown) {
      error = thrown;
    }
    this.#session = undefined;
    if (this.#upAt === undefined) return { error, upForMs: 0 };
    const upForMs = this.#options.clock.now() - this.#upAt;
    this.#upAt = undefined;
    listener.onDown();
    return { error, upForMs };
  }

  async #openSession(listener: MqttListener, signal: AbortSignal): Promise<Error | undefined> {
    const { url, tls, clock, logger } = this.#options;
    const address = brokerAddressOf(url);
    const certificates = address.isTls ? await readCertificates(tls ?? {}) : {};
    const socket = await openBrokerSocket({ address, certificates, clock }, signal);
    const onUp = (): void => {
      const isReconnect = this.#lastUp !== undefined;
      this.#upAt = clock.now();
      this.#lastUp = this.#session;
      logger.info({ broker: `${address.host}:${address.port}` }, 'link to the broker is up');
      listener.onUp(isReconnect);
    };
    this.#session = new MqttSession({ ...this.#options, onUp, onMessage: listener.onMessage }, socket);
    return this.#session.run(signal);
  }
}

export interface MqttSessionOptions extends MqttClientOptions, Pick<MqttListener, 'onMessage'> {
  readonly filters: TopicFilters;
  /** All filters are granted. Called once at most. */
  readonly onUp: () => void;
}

/**
 * One connection to a broker, from CONNECT to the closed socket. A client of mqtt.js of its own for each, so that
 * nothing of a former connection can come back: no queue, no store, no message id.
 */
export class MqttSession {
  readonly #options: MqttSessionOptions;
  readonly #socket: BrokerSocket;
  readonly #client: MqttClient;
  readonly #window: PublishWindow;
  #isUp = false;
  #isLeaving = false;
  #isGathering = false;
  #heardAt: number;
  #error: Error | undefined;

  /** Takes over a socket that has just been connected. */
  constructor(options: MqttSessionOptions, socket: BrokerSocket) {
    this.#options = options;
    this.#heardAt = options.clock.now();
    socket.stream.on('error', (error) => this.#note(error));
    this.#socket = socket;
    this.#client = new MqttClient(() => socket.stream, clientOptionsOf(options));
    // Its own would leave it to the operating system to go on with what was written.
    this.#client.onKeepaliveTimeout = () => this.#fail('the broker stopped answering');
    this.#window = new PublishWindow({
      clock: options.clock,
      size: MAX_OUTSTANDING,
      timeoutMs: SEND_TIMEOUT_MS,
      send: (message, acknowledged) => this.#send(message, acknowledged),
      onStuck: () => this.#fail('the broker acknowledges nothing'),
    });
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** On the clock: when the broker last said anything; at first, when the connection was there. */
  get heardAt(): number {
    return this.#heardAt;
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
    if (signal.aborted) sayGoodbye();
    this.#listen();
    await closed;
    deadline.cancel();
    signal.removeEventListener('abort', sayGoodbye);
    return signal.aborted ? undefined : (this.#error ?? new ClosedByBroker());
  }

  /** At least once, never retained. */
  publish(message: Message): Promise<void> {
    return this.#window.publish(message);
  }

  /** The same past the window, with nobody waiting for the acknowledgement. */
  post(topic: string, payload: string): void {
    this.#send({ topic, payload }, () => {});
  }

  /** Ends the session if anything of it may still be under way to the broker. */
  abandon(): void {
    if (this.#isLeaving) return;
    if (this.#window.unacknowledgedCount > 0 || this.#socket.stream.writableLength > 0) {
      this.#fail('the connection was closed, with everything that the broker had not acknowledged');
    }
  }

  #listen(): void {
    const client = this.#client;
    client.on('error', (error) => this.#note(error));
    client.on('connect', () => client.subscribe({ ...this.#options.filters }, () => {}));
    client.on('packetreceive', (packet) => {
      this.#heardAt = this.#options.clock.now();
      this.#gather(); // it may have to be acknowledged
      this.#onPacket(packet);
    });
    client.on('message', (topic, payload, packet) => this.#options.onMessage(topic, payload, packet.retain));
    // First of all listeners to the end, so that nobody sees a session up whose socket is gone.
    this.#socket.stream.prependListener('close', () => this.#close());
  }

  /** mqtt.js reports a SUBACK by a promise, hence after the messages that came with it; here it is in order. */
  #onPacket(packet: Packet): void {
    if (packet.cmd !== 'suback' || this.#isUp || this.#isLeaving) return;
    const { filters, onUp } = this.#options;
    const refused = Object.keys(filters).filter(
      (_filter, index) => ((packet.granted[index] as number | undefined) ?? REFUSED) & REFUSED,
    );
    if (refused.length > 0) {
      this.#fail(`the broker refused to subscribe ${refused.join(', ')}`);
    } else {
      this.#isUp = true;
      onUp();
    }
  }

  /**
   * What is sent in one turn of the event loop leaves together: a write to the socket for each message takes more CPU
   * time than the message.
   */
  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    const { stream } = this.#socket;
    stream.cork();
    setImmediate(() => {
      this.#isGathering = false;
      stream.uncork();
    });
  }

  #send({ topic, payload }: Message, acknowledged: (error?: Error) => void): void {
    this.#gather();
    this.#client.publish(topic, payload, { qos: 1, retain: false }, (error) => acknowledged(error));
  }

  #sayGoodbye(): void {
    const client = this.#client;
    const { stream } = this.#socket;
    this.#isLeaving = true;
    this.#close();
    if (!client.connected) {
      stream.destroy();
      return;
    }
    // `end` would wait for acknowledgements for ever.
    for (const id of Object.keys(client.outgoing)) client.removeOutgoingMessage(Number(id));
    client.end();
    const timer = this.#options.clock.setTimer(() => stream.destroy(), GOODBYE_TIMEOUT_MS);
    stream.once('close', () => timer.cancel());
  }

  /** What was written does not arrive later. */
  #fail(reason: string): void {
    this.#note(new Error(reason));
    this.#close();
    this.#socket.reset();
  }

  #close(): void {
    this.#isUp = false;
    this.#window.close();
  }

  /** The first error is the cause, later ones follow from it. */
  #note(error: Error): void {
    this.#error ??= error;
  }
}

export interface Message {
  readonly topic: string;
  readonly payload: string;
  /** Asked when it is about to be written. Default: yes. */
  readonly mayLeave?: () => boolean;
}

export interface PublishWindowOptions {
  readonly clock: Clock;
  /** How many messages may wait for the broker's acknowledgement. */
  readonly size: number;
  readonly timeoutMs: number;
  /** Writes one message; `acknowledged` is called once at most. */
  readonly send: (message: Message, acknowledged: (error?: Error) => void) => void;
  /** A message found no room for a whole `timeoutMs`, and no acknowledgement came: the broker stopped sending them. */
  readonly onStuck: () => void;
}

interface Publish {
  readonly message: Message;
  readonly settle: (error?: ControllerError) => void;
  readonly timer: Timer;
}

/**
 * The unacknowledged messages of one connection: MQTT has no other flow control. What exceeds the size waits in
 * order. A message out of time keeps its place, for its acknowledgement may still come and its id is in use.
 */
export class PublishWindow {
  readonly #options: PublishWindowOptions;
  /** In order; emptied by acknowledgements, timeouts and `close`. */
  readonly #waiting = new Set<Publish>();
  readonly #inFlight = new Set<Publish>();
  #acknowledgedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: PublishWindowOptions) {
    this.#options = options;
  }

  /** What was written and may be on its way, however long ago. */
  get unacknowledgedCount(): number {
    return this.#inFlight.size;
  }

  /** Resolves when the broker has acknowledged; rejects within `timeoutMs` otherwise. */
  publish(message: Message): Promise<void> {
    if (this.#isClosed) return Promise.reject(notConnected());
    return new Promise((resolve, reject) => {
      const timer = this.#options.clock.setTimer(() => this.#onTimeout(publish), this.#options.timeoutMs);
      const settle = (error?: ControllerError): void => {
        timer.cancel();
        if (error) reject(error);
        else resolve();
      };
      const publish: Publish = { message, settle, timer };
      this.#waiting.add(publish);
      this.#fill();
    });
  }

  /** The connection is gone. What was written may have arrived, the rest has not. */
  close(): void {
    this.#isClosed = true;
    const waiting = [...this.#waiting];
    const inFlight = [...this.#inFlight];
    this.#waiting.clear();
    this.#inFlight.clear();
    for (const publish of inFlight) publish.settle(sendFailed('the link broke before the broker acknowledged'));
    for (const publish of waiting) publish.settle(notConnected());
  }

  #fill(): void {
    for (const publish of this.#waiting) {
      if (this.#inFlight.size >= this.#options.size) return;
      this.#waiting.delete(publish);
      if (publish.message.mayLeave?.() ?? true) this.#write(publish);
      else publish.settle(notAllowed());
    }
  }

  #write(publish: Publish): void {
    this.#inFlight.add(publish);
    this.#options.send(publish.message, (error) => this.#onAcknowledged(publish, error));
  }

  #onAcknowledged(publish: Publish, error: Error | undefined): void {
    if (!this.#inFlight.delete(publish)) return;
    this.#acknowledgedAt = this.#options.clock.now();
    publish.settle(error && sendFailed('the broker refused it', error));
    this.#fill();
  }

  #onTimeout(publish: Publish): void {
    const { clock, timeoutMs, onStuck } = this.#options;
    if (!this.#waiting.delete(publish)) {
      publish.settle(sendFailed(`the broker did not acknowledge within ${timeoutMs} ms`));
      return;
    }
    publish.settle(notWritten());
    // A broker that is only slow keeps its link: a new one would bring all questions again, and be as slow.
    if (clock.now() - this.#acknowledgedAt >= timeoutMs) onStuck();
  }
}
