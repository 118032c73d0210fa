import type { Clock } from '../../src/clock.ts';
import type { Logger } from '../../src/logger.ts';
import type { Metrics } from '../../src/metrics.ts';
import { AddressPolicy, type Network } from '../../src/tunnel/address-policy.ts';
import type { ModuleId, ModuleSpec } from '../../src/tunnel/module.ts';
import type { BaseAddress, Envelope, InvalidMessage, Tunnel, TunnelHandler } from '../../src/tunnel/tunnel.ts';
import { CommandCounter } from '../arklet/command-counter.ts';
import { type IntakeLimits, InvalidMessages, type Sender } from '../arklet/intake.ts';
import { BodyReader } from './body-reader.ts';
import { type Answered, ArkletClient, CommandDispatcher, MAX_OPERATIONS } from './command-dispatcher.ts';
import {
  COMMANDS,
  type Command,
  HEALTH_COMMAND,
  IDENTITY_COMMAND,
  installCommand,
  LIST_COMMAND,
  switchCommand,
  UNPROVEN_HEALTH_COMMAND,
  uninstallCommand,
} from './commands.ts';
import { notConnected, sendFailed } from './failures.ts';
import type { ListenerLimits } from './listener.ts';
import type { Members } from './member-relay.ts';
import { MessageIntake } from './message-intake.ts';
import { MESSAGE_TYPES } from './receive.ts';

export interface HttpTunnelOptions {
  /** Port to which bases send their heartbeats; 0 = any free one, the log line `listening` shows which. */
  readonly port: number;
  /** Every message of a base carries one of them. Default: bases are not authenticated. */
  readonly tokens?: readonly string[] | undefined;
  /** See `AddressPolicy`. */
  readonly baseNetworks?: readonly Network[] | undefined;
  /** Proxies whose `X-Forwarded-For` says where a message came from. Default: none. */
  readonly trustedProxies?: readonly Network[] | undefined;
  /** Other replicas that get the messages of bases. Default: none. */
  readonly members?: Members | undefined;
  /** After these an answer is of no use, and the connection is closed a little later. */
  readonly installDeadlineMs: number;
  readonly uninstallDeadlineMs: number;
  /** What every command says of who sends it. */
  readonly userAgent: string;
  /** Whether this replica speaks to a base, asked right before each command leaves. Default: always. */
  readonly isOurs?: ((identity: string) => boolean) | undefined;
  /** Who a base is to the core. Default: all are known. */
  readonly senderOf?: ((identity: string) => Sender) | undefined;
  /** Default: those of `message-intake.ts`. */
  readonly intake?: IntakeLimits | undefined;
  /** Default: those of `listener.ts`. */
  readonly limits?: Partial<ListenerLimits> | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const QUESTION_TIMEOUT_MS = 10_000;
/** Memory of all messages and answers that have begun and not ended: of bases with a VNode, and of anybody else. */
const UNFINISHED_BYTES = { ofBases: 128 * 1024 * 1024, ofStrangers: 32 * 1024 * 1024 };
/** So that a deadline passes in the core first. */
const DEADLINE_MARGIN_MS = 10_000;

/** What lives from `run` until it is aborted. */
interface Session {
  readonly handler: TunnelHandler;
  readonly signal: AbortSignal;
  readonly upAt: number;
}

/**
 * Bases that post their heartbeats to the controller and take commands at the address that these name. A command is one
 * request, never repeated here; its answer is handled before the promise of the command resolves.
 */
export class HttpTunnel implements Tunnel {
  readonly name = 'http_tunnel_provider';
  /** All bases share the token, and the sender's address proves no more than an address. */
  readonly provesIdentity = false;
  readonly canSwitch = true;
  readonly maxOperations = MAX_OPERATIONS;
  readonly #options: HttpTunnelOptions;
  readonly #policy: AddressPolicy;
  readonly #probe: LinkProbe;
  readonly #invalid: InvalidMessages;
  readonly #commands: CommandCounter;
  readonly #client: ArkletClient;
  readonly #dispatcher: CommandDispatcher;
  readonly #intake: MessageIntake;
  #session: Session | undefined;
  /** Nothing but its stop ends the listening. */
  #downSince: number | undefined;

  constructor(options: HttpTunnelOptions) {
    const { clock, baseNetworks, installDeadlineMs, uninstallDeadlineMs, userAgent, isOurs } = options;
    this.#options = options;
    this.#policy = new AddressPolicy(baseNetworks);
    this.#probe = new LinkProbe(clock);
    this.#invalid = new InvalidMessages({ tunnel: this.name, ...options });
    this.#commands = new CommandCounter({ tunnel: this.name, commands: COMMANDS, metrics: options.metrics });
    const onDropped = (source: string): void => this.#intake.noteDropped(source);
    const ofStrangers = new BodyReader({ maxBytes: UNFINISHED_BYTES.ofStrangers, onDropped });
    this.#client = new ArkletClient({
      clock,
      bodies: { ofBases: new BodyReader({ maxBytes: UNFINISHED_BYTES.ofBases, onDropped }), ofStrangers },
      userAgent,
      isOurs,
      onConnectionRefused: (base) => void this.#call((handler) => handler.onConnectionRefused(this.name, base)),
    });
    this.#dispatcher = new CommandDispatcher({
      clock,
      client: this.#client,
      policy: this.#policy,
      timeoutsMs: {
        installBiz: installDeadlineMs + DEADLINE_MARGIN_MS,
        uninstallBiz: uninstallDeadlineMs + DEADLINE_MARGIN_MS,
        switchBiz: uninstallDeadlineMs + DEADLINE_MARGIN_MS,
        queryAllBiz: QUESTION_TIMEOUT_MS,
        health: QUESTION_TIMEOUT_MS,
      },
      onAnswer: (base, command, answered) => this.#onAnswer(base, command, answered),
    });
    this.#intake = new MessageIntake({
      tunnel: this.name,
      ...options,
      policy: this.#policy,
      bodies: ofStrangers,
      invalid: this.#invalid,
      take: (type, hear) => this.#take(type, hear),
    });
    this.#createSeries();
  }

  addressFault(ip: string): string | undefined {
    return this.#policy.faultOf(ip);
  }

  async run(handler: TunnelHandler, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    this.#downSince = clock.now();
    await this.#intake.run(() => this.#onUp({ handler, signal, upAt: clock.now() }), signal);
    this.#downSince = clock.now();
    this.#probe.giveUp();
    await this.#dispatcher.stop();
    this.#client.close();
    this.#onDown();
  }

  isUp(): boolean {
    return this.#session !== undefined && !this.#session.signal.aborted;
  }

  upSince(): number | undefined {
    return this.isUp() ? this.#session?.upAt : undefined;
  }

  downSince(): number | undefined {
    return this.#downSince;
  }

  abandon(): void {
    this.#dispatcher.abandon();
  }

  async probeLink(timeoutMs: number): Promise<boolean> {
    return this.isUp() && this.#probe.run(timeoutMs);
  }

  queryModules(base: BaseAddress): Promise<void> {
    return this.#send(base, LIST_COMMAND);
  }

  queryHealth(base: BaseAddress): Promise<void> {
    const { senderOf = () => 'Known' } = this.#options;
    return this.#send(base, senderOf(base.identity) === 'Known' ? HEALTH_COMMAND : UNPROVEN_HEALTH_COMMAND);
  }

  identify(base: BaseAddress): Promise<void> {
    return this.#send(base, IDENTITY_COMMAND);
  }

  installModule(base: BaseAddress, spec: ModuleSpec): Promise<void> {
    return this.#send(base, installCommand(spec));
  }

  uninstallModule(base: BaseAddress, id: ModuleId): Promise<void> {
    return this.#send(base, uninstallCommand(id));
  }

  switchModule(base: BaseAddress, id: ModuleId): Promise<void> {
    return this.#send(base, switchCommand(id));
  }

  #send(base: BaseAddress, command: Command): Promise<void> {
    return this.#commands.count(command.name, async () => {
      if (!this.#session || !this.isUp()) throw notConnected('the tunnel does not run');
      await this.#dispatcher.send(base, command, this.#session.signal);
    });
  }

  #onAnswer({ identity, ip, port }: BaseAddress, command: Command, { askedAt, body }: Answered): void {
    if (!this.isUp()) throw sendFailed('the tunnel was stopped');
    const envelope: Envelope = { tunnel: this.name, identity, publishedAt: undefined, askedAt, place: { ip, port } };
    const invalid = this.#take(command.name, (handler) => command.hear(envelope, body, handler));
    if (!invalid) return;
    this.#invalid.add(invalid);
    throw sendFailed(`its answer cannot be read: ${invalid.message}`);
  }

  /** Counts what a base said and hands it over; says why it is refused. */
  #take(type: string, hear: (handler: TunnelHandler) => InvalidMessage | undefined): InvalidMessage | undefined {
    this.#options.metrics.tunnelMessages.inc({ tunnel: this.name, type });
    const invalid = this.#call(hear);
    if (!invalid) this.#probe.heard();
    return invalid;
  }

  #onUp(session: Session): void {
    if (session.signal.aborted) return;
    this.#session = session;
    this.#downSince = undefined;
    this.#options.metrics.tunnelUp.set({ tunnel: this.name }, 1);
    this.#call((handler) => handler.onLinkUp(this.name));
  }

  #onDown(): void {
    this.#options.metrics.tunnelUp.set({ tunnel: this.name }, 0);
    this.#call((handler) => handler.onLinkDown(this.name));
  }

  /** A handler must not throw; if it does, the tunnel goes on. */
  #call<T>(action: (handler: TunnelHandler) => T): T | undefined {
    try {
      return this.#session && action(this.#session.handler);
    } catch (error) {
      this.#options.logger.error({ err: error, tunnel: this.name }, 'handler of a tunnel threw');
      return undefined;
    }
  }

  #createSeries(): void {
    const { tunnelMessages, tunnelUp } = this.#options.metrics;
    const tunnel = this.name;
    for (const type of [...MESSAGE_TYPES, ...COMMANDS]) tunnelMessages.inc({ tunnel, type }, 0);
    tunnelUp.set({ tunnel }, 0);
  }
}

/** Over HTTP the link is proven by whatever a base says; who wants to know waits for it. */
class LinkProbe {
  readonly #clock: Clock;
  /** Emptied by the next word of a base, by the timeout and by `giveUp`. */
  readonly #waiting = new Set<(isHeard: boolean) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a base is heard within `timeoutMs` from now. Any number may run at once. */
  run(timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (isHeard: boolean): void => {
        timer.cancel();
        this.#waiting.delete(finish);
        resolve(isHeard);
      };
      const timer = this.#clock.setTimer(() => finish(false), timeoutMs);
      this.#waiting.add(finish);
    });
  }

  heard(): void {
    this.#finishAll(true);
  }

  /** The tunnel stops: nobody can be heard. */
  giveUp(): void {
    this.#finishAll(false);
  }

  #finishAll(isHeard: boolean): void {
    for (const finish of [...this.#waiting]) finish(isHeard);
  }
}
