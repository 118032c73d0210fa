import { randomUUID } from 'node:crypto';
import { type Clock, sleep } from '../../src/clock.ts';
import { ControllerError } from '../../src/errors.ts';
import type { Logger } from '../../src/logger.ts';
import type { Metrics } from '../../src/metrics.ts';
import type { ModuleId, ModuleSpec } from '../../src/tunnel/module.ts';
import type { BaseAddress, Tunnel, TunnelHandler } from '../../src/tunnel/tunnel.ts';
import { CommandCounter } from '../arklet/command-counter.ts';
import { installBizOf, uninstallBizOf } from '../arklet/convert.ts';
import { costOf, IntakeGate, type IntakeLimits, InvalidMessages, type Sender } from '../arklet/intake.ts';
import { assertSendable } from '../arklet/parse.ts';
import { type BrokerTls, brokerAddressOf, openBrokerSocket, readCertificates } from './broker-socket.ts';
import { type Message, MqttSession, type MqttSessionOptions, notConnected } from './mqtt-session.ts';
import { maxBytesOf, receive } from './receive.ts';
import {
  type BaseTopic,
  COMMANDS,
  type Command,
  MESSAGE_TYPES,
  type MessageType,
  SIGNS_OF_LIFE,
  Topics,
} from './topics.ts';

export interface MqttTunnelOptions {
  /** `mqtt://host:port` or `mqtts://host:port`. */
  readonly url: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly tls?: BrokerTls | undefined;
  /** The whole MQTT client id; unique at the broker, or the two throw each other out. */
  readonly clientId: string;
  readonly env: string;
  /**
   * Whether this replica speaks to a base, asked when a command is about to be written. Where it does not, the lists,
   * health and answers of the base are counted and not read. Default: always.
   */
  readonly isOurs?: ((identity: string) => boolean) | undefined;
  /** Who a base is to the core. Default: all are known. */
  readonly senderOf?: ((identity: string) => Sender) | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/**
 * Of one identity. A known base may answer thousands of operations within seconds; one that is not known has hardly
 * anything to say.
 */
export const MQTT_INTAKE: IntakeLimits = {
  known: { burst: 10_000, refillMs: 10 },
  unknown: { burst: 10, refillMs: 1_000 },
  // 2,500 bases may start at once.
  allUnknown: { burst: 2_500, refillMs: 4 },
};

/** No request id says whether a list is an answer. */
const LISTS: ReadonlySet<MessageType> = new Set(['simpleBiz', 'biz']);

/**
 * Bases behind an MQTT broker. Commands are acknowledged by the broker, never retained (a base would execute
 * them again at each of its reconnects) and never sent again after a reconnect: that is for the core to decide.
 */
export class MqttTunnel implements Tunnel {
  readonly name = 'mqtt_tunnel_provider';
  readonly canSwitch = false;
  readonly maxOperations = 64;
  readonly #options: MqttTunnelOptions;
  readonly #topics: Topics;
  readonly #probe: LinkProbe;
  readonly #invalid: InvalidMessages;
  readonly #gate: IntakeGate;
  readonly #commands: CommandCounter;
  readonly #connection: MqttConnection;
  #handler: TunnelHandler | undefined;
  #hasBeenUp = false;

  constructor(options: MqttTunnelOptions) {
    this.#options = options;
    this.#topics = new Topics(options.env, options.clientId);
    this.#probe = new LinkProbe(options.clock);
    this.#invalid = new InvalidMessages({ tunnel: this.name, ...options });
    this.#gate = new IntakeGate({ tunnel: this.name, ...options, limits: MQTT_INTAKE });
    this.#commands = new CommandCounter({ tunnel: this.name, commands: COMMANDS, metrics: options.metrics });
    this.#connection = new MqttConnection({
      ...options,
      filters: this.#topics.filters(),
      onMessage: (topic, payload, isRetained) => this.#onMessage(topic, payload, isRetained),
      onUp: () => this.#onUp(),
      onDown: () => this.#onDown(),
    });
    this.#createSeries();
  }

  async run(handler: TunnelHandler, signal: AbortSignal): Promise<void> {
    this.#handler = handler;
    await this.#connection.run(signal);
  }

  isUp(): boolean {
    return this.#connection.isUp();
  }

  upSince(): number | undefined {
    return this.#connection.upSince();
  }

  downSince(): number | undefined {
    return this.#connection.downSince();
  }

  abandon(): void {
    this.#connection.abandon();
  }

  async probeLink(timeoutMs: number): Promise<boolean> {
    if (!this.isUp()) return false;
    return this.#probe.run((id) => this.#connection.post(this.#topics.echo, id), timeoutMs);
  }

  queryModules(base: BaseAddress): Promise<void> {
    return this.#send(base, 'queryAllBiz', {});
  }

  identify(base: BaseAddress): Promise<void> {
    return this.queryHealth(base);
  }

  queryHealth(base: BaseAddress): Promise<void> {
    return this.#send(base, 'health', {});
  }

  installModule(base: BaseAddress, spec: ModuleSpec): Promise<void> {
    return this.#send(base, 'installBiz', installBizOf(spec));
  }

  uninstallModule(base: BaseAddress, id: ModuleId): Promise<void> {
    return this.#send(base, 'uninstallBiz', uninstallBizOf(id));
  }

  /** The agent takes no switchBiz over MQTT. */
  switchModule(): Promise<void> {
    return Promise.reject(new ControllerError('Tunnel.NotConnected', 'there is no switchBiz over MQTT'));
  }

  #send(base: BaseAddress, command: Command, payload: object): Promise<void> {
    const { identity } = base;
    const { isOurs = () => true } = this.#options;
    const message = {
      topic: this.#topics.command(identity, command),
      payload: JSON.stringify(payload),
      mayLeave: () => isOurs(identity),
    };
    const length = Buffer.byteLength(message.payload);
    return this.#commands.count(command, async () => {
      // A broker ends the connection, which all bases share, for a message above its limit.
      assertSendable(length);
      await this.#connection.publish(message);
    });
  }

  #onMessage(topic: string, payload: Uint8Array, isRetained: boolean): void {
    const { metrics } = this.#options;
    if (isRetained) {
      // Nobody knows how old it is, and a heartbeat of last week must not make a Node.
      metrics.tunnelRetainedMessages.inc({ tunnel: this.name });
    } else if (topic === this.#topics.echo) {
      this.#probe.onEcho(payload);
    } else {
      const found = this.#topics.parse(topic);
      if (found) this.#onBaseMessage(found, payload);
    }
  }

  #onBaseMessage({ identity, type }: BaseTopic, payload: Uint8Array): void {
    const { metrics, isOurs = () => true } = this.#options;
    metrics.tunnelMessages.inc({ tunnel: this.name, type });
    const sender = this.#options.senderOf?.(identity) ?? 'Known';
    const maxBytes = maxBytesOf(type, sender);
    if (!this.#isAdmitted({ identity, type }, sender, Math.min(payload.byteLength, maxBytes))) return;
    if (!SIGNS_OF_LIFE.has(type) && !isOurs(identity)) return;
    this.#call((handler) => {
      if (LISTS.has(type) && !handler.admitList(this.name, identity)) return;
      const source = { tunnel: this.name, identity } as const;
      const invalid = receive(type, { source, payload, maxBytes, handler });
      if (invalid) this.#invalid.add(invalid);
    });
  }

  /** Before anything is read: a flood must cost little. `byteLength`: what would be read at most. */
  #isAdmitted({ identity, type }: BaseTopic, sender: Sender, byteLength: number): boolean {
    const cost = costOf(byteLength);
    if (SIGNS_OF_LIFE.has(type)) return this.#gate.admits(identity, sender === 'Known' ? sender : 'Unknown', cost);
    // The answer of a base that was not asked means nothing.
    return sender !== 'Unknown' && this.#gate.admits(identity, sender, cost);
  }

  #onUp(): void {
    const { metrics } = this.#options;
    metrics.tunnelUp.set({ tunnel: this.name }, 1);
    if (this.#hasBeenUp) metrics.tunnelReconnects.inc({ tunnel: this.name });
    this.#hasBeenUp = true;
    this.#call((handler) => handler.onLinkUp(this.name));
  }

  #onDown(): void {
    this.#options.metrics.tunnelUp.set({ tunnel: this.name }, 0);
    this.#probe.giveUp();
    this.#call((handler) => handler.onLinkDown(this.name));
  }

  /** A handler must not throw; if it does, the stream of messages goes on. */
  #call(action: (handler: TunnelHandler) => void): void {
    try {
      if (this.#handler) action(this.#handler);
    } catch (error) {
      this.#options.logger.error({ err: error, tunnel: this.name }, 'handler of a tunnel threw');
    }
  }

  #createSeries(): void {
    const { tunnelMessages, tunnelRetainedMessages, tunnelUp, tunnelReconnects } = this.#options.metrics;
    const tunnel = this.name;
    for (const type of MESSAGE_TYPES) tunnelMessages.inc({ tunnel, type }, 0);
    tunnelRetainedMessages.inc({ tunnel }, 0);
    tunnelUp.set({ tunnel }, 0);
    tunnelReconnects.inc({ tunnel }, 0);
  }
}

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

  upSince(): number | undefined {
    return this.isUp() ? this.#upAt : undefined;
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
  return Math.round(random * Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** failures));
}

/** Messages of the controller to itself that have not come back. */
class LinkProbe {
  readonly #clock: Clock;
  /** By message id; emptied by the echo, by the timeout and by `giveUp`. */
  readonly #waiting = new Map<string, (isBack: boolean) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the id handed to `send` comes to `onEcho` within `timeoutMs`. Any number may run at once. */
  run(send: (id: string) => void, timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const id = randomUUID();
      const finish = (isBack: boolean): void => {
        timer.cancel();
        this.#waiting.delete(id);
        resolve(isBack);
      };
      const timer = this.#clock.setTimer(() => finish(false), timeoutMs);
      this.#waiting.set(id, finish);
      send(id);
    });
  }

  /** Another's message, or one of a probe that is over, means nothing. */
  onEcho(payload: Uint8Array): void {
    this.#waiting.get(new TextDecoder().decode(payload))?.(true);
  }

  /** The link is down: no echo can come. */
  giveUp(): void {
    for (const finish of [...this.#waiting.values()]) finish(false);
  }
}
