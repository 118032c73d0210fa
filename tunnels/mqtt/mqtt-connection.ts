import { sleep } from '../../src/clock.ts';
import type { Logger } from '../../src/logger.ts';
import { type BrokerTls, brokerAddressOf, openBrokerSocket, readCertificates } from './broker-socket.ts';
import { MqttSession, type MqttSessionOptions } from './mqtt-session.ts';
import { type Message, notConnected } from './publish-window.ts';

const MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 5_000;
/** A connection that lived shorter counts as a failure: two clients of one id throw each other out at once. */
const HEALTHY_MS = 10_000;

export interface MqttConnectionOptions extends MqttSessionOptions {
  /** `mqtt://host:port` or `mqtts://host:port`. */
  readonly url: string;
  /** Default: no client certificate, the certificate authorities of Node. Means nothing to `mqtt://`. */
  readonly tls?: BrokerTls | undefined;
  readonly logger: Logger;
  /** Called after every `onUp`. */
  readonly onDown: () => void;
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

  /** Of a link that went silent before it broke: since it went silent. */
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
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger, url } = this.#options;
    const { host, port } = brokerAddressOf(url);
    this.#startedAt = clock.now();
    for (let failures = 0; !signal.aborted; ) {
      const { error, upForMs } = await this.#runSession(signal);
      if (signal.aborted) return;
      failures = upForMs >= HEALTHY_MS ? 0 : failures + 1;
      const delayMs = reconnectDelayMs(failures, Math.random());
      logger.warn({ err: error, broker: `${host}:${port}`, failures, delayMs }, 'no link to the broker');
      await sleep(clock, delayMs, signal);
    }
  }

  async #runSession(signal: AbortSignal): Promise<{ error: unknown; upForMs: number }> {
    const { clock, onDown } = this.#options;
    let error: unknown;
    try {
      error = await this.#openSession(signal);
    } catch (thrown) {
      error = thrown;
    }
    this.#session = undefined;
    if (this.#upAt === undefined) return { error, upForMs: 0 };
    const upForMs = clock.now() - this.#upAt;
    this.#upAt = undefined;
    onDown();
    return { error, upForMs };
  }

  async #openSession(signal: AbortSignal): Promise<Error | undefined> {
    const { url, tls, clock, logger, onUp } = this.#options;
    const address = brokerAddressOf(url);
    const certificates = address.isTls ? await readCertificates(tls ?? {}) : {};
    const socket = await openBrokerSocket({ address, certificates, clock }, signal);
    const noteUp = (): void => {
      this.#upAt = clock.now();
      this.#lastUp = this.#session;
      logger.info({ broker: `${address.host}:${address.port}` }, 'link to the broker is up');
      onUp();
    };
    this.#session = new MqttSession({ ...this.#options, onUp: noteUp }, socket);
    return this.#session.run(signal);
  }
}

/** Full jitter: anything from 0 to a bound that doubles with every failure, so that many clients come back spread. */
export function reconnectDelayMs(failures: number, random: number): number {
  return Math.round(random * Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** Math.min(failures, 16)));
}
