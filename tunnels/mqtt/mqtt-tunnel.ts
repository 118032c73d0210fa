import type { Clock } from '../../src/clock.ts';
import { ControllerError } from '../../src/errors.ts';
import type { Logger } from '../../src/logger.ts';
import type { Metrics } from '../../src/metrics.ts';
import { AddressPolicy, type Network } from '../../src/tunnel/address-policy.ts';
import type { ModuleId, ModuleSpec } from '../../src/tunnel/module.ts';
import type { BaseAddress, Tunnel, TunnelHandler } from '../../src/tunnel/tunnel.ts';
import { CommandCounter } from '../arklet/command-counter.ts';
import { installBizOf, uninstallBizOf } from '../arklet/convert.ts';
import { costOf, IntakeGate, type IntakeLimits, InvalidMessages, type Sender } from '../arklet/intake.ts';
import { assertSendable } from '../arklet/parse.ts';
import { type BrokerTls, brokerAddressOf } from './broker-socket.ts';
import { LinkProbe } from './link-probe.ts';
import { MqttConnection, type MqttListener } from './mqtt-session.ts';
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
  /** Name of this replica at the broker: start of its client ids, and part of the topic on which it talks to itself. */
  readonly clientId: string;
  /** See `AddressPolicy`. */
  readonly baseNetworks?: readonly Network[] | undefined;
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
 * Limits of one identity. A known base may answer thousands of operations within seconds; one that is not known has
 * hardly anything to say.
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
  readonly provesIdentity: boolean;
  readonly canSwitch = false;
  readonly maxOperations = 64;
  readonly #options: MqttTunnelOptions;
  readonly #topics: Topics;
  readonly #policy: AddressPolicy;
  readonly #probe: LinkProbe;
  readonly #invalid: InvalidMessages;
  readonly #gate: IntakeGate;
  readonly #commands: CommandCounter;
  readonly #connection: MqttConnection;

  constructor(options: MqttTunnelOptions) {
    this.#options = options;
    // A broker that knows this client knows the bases too.
    this.provesIdentity = options.username !== undefined || options.tls?.certPath !== undefined;
    this.#policy = new AddressPolicy(options.baseNetworks);
    this.#topics = new Topics(options.env, options.clientId);
    this.#probe = new LinkProbe(options.clock);
    this.#invalid = new InvalidMessages({ tunnel: this.name, ...options });
    this.#gate = new IntakeGate({ tunnel: this.name, ...options, limits: MQTT_INTAKE });
    this.#commands = new CommandCounter({ tunnel: this.name, commands: COMMANDS, metrics: options.metrics });
    this.#connection = new MqttConnection({ ...options, filters: this.#topics.filters() });
    this.#createSeries();
  }

  addressFault(ip: string): string | undefined {
    return this.#policy.faultOf(ip);
  }

  async run(handler: TunnelHandler, signal: AbortSignal): Promise<void> {
    const { url, password, logger } = this.#options;
    if (password !== undefined && !brokerAddressOf(url).isTls) {
      logger.warn({ tunnel: this.name }, 'MQTT_PASSWORD is sent without TLS, which MQTT_CA_PATH turns on');
    }
    const listener: MqttListener = {
      onMessage: (topic, payload, isRetained) => {
        const found = this.#baseTopicOf(topic, payload, isRetained);
        if (found) this.#onBaseMessage(handler, found, payload);
      },
      onUp: (isReconnect) => this.#onUp(handler, isReconnect),
      onDown: () => this.#onDown(handler),
    };
    await this.#connection.run(listener, signal);
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

  /** The topic of a message of a base; undefined for every other message. */
  #baseTopicOf(topic: string, payload: Uint8Array, isRetained: boolean): BaseTopic | undefined {
    if (isRetained) {
      // Nobody knows how old it is, and a heartbeat of last week must not make a Node.
      this.#options.metrics.tunnelRetainedMessages.inc({ tunnel: this.name });
      return undefined;
    }
    if (topic !== this.#topics.echo) return this.#topics.parse(topic);
    this.#probe.onEcho(payload);
    return undefined;
  }

  #onBaseMessage(handler: TunnelHandler, { identity, type }: BaseTopic, payload: Uint8Array): void {
    const { metrics, isOurs = () => true } = this.#options;
    metrics.tunnelMessages.inc({ tunnel: this.name, type });
    const sender = this.#options.senderOf?.(identity) ?? 'Known';
    const maxBytes = maxBytesOf(type, sender);
    if (!this.#isAdmitted({ identity, type }, sender, Math.min(payload.byteLength, maxBytes))) return;
    if (!SIGNS_OF_LIFE.has(type) && !isOurs(identity)) return;
    this.#guard(() => {
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

  #onUp(handler: TunnelHandler, isReconnect: boolean): void {
    const { metrics } = this.#options;
    metrics.tunnelUp.set({ tunnel: this.name }, 1);
    if (isReconnect) metrics.tunnelReconnects.inc({ tunnel: this.name });
    this.#guard(() => handler.onLinkUp(this.name));
  }

  #onDown(handler: TunnelHandler): void {
    this.#options.metrics.tunnelUp.set({ tunnel: this.name }, 0);
    this.#probe.giveUp();
    this.#guard(() => handler.onLinkDown(this.name));
  }

  /** A handler must not throw; if it does, the stream of messages goes on. */
  #guard(action: () => void): void {
    try {
      action();
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
