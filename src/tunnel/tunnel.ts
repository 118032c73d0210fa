import { ControllerError } from '../errors.ts';
import type { BaseHealth, BaseInfo } from './base.ts';
import type { ModuleId, ModuleSpec, ModuleStatus, OperationResult } from './module.ts';

/** The names that Nodes carry in `vnode.koupleless.io/tunnel`. */
export const TUNNEL_NAMES = ['mqtt_tunnel_provider', 'http_tunnel_provider'] as const;
export type TunnelName = (typeof TUNNEL_NAMES)[number];

/**
 * Whether a base is called at the address that it names, so that another base may answer there. Through the other
 * tunnels the transport authenticates a base by its identity, and an address is no more than information. The core
 * decides by this, never by the name of a tunnel.
 */
export function isByAddress(tunnel: TunnelName): boolean {
  return tunnel === 'http_tunnel_provider';
}

/** Source and time of a message. */
export interface Envelope {
  readonly tunnel: TunnelName;
  readonly identity: string;
  /** The base's wall clock in ms, where it says so. It orders messages of one base and proves nothing else. */
  readonly publishedAt: number | undefined;
  /**
   * Local monotonic clock when the question was sent that this answers, where the transport ties the two together
   * (HTTP). What the message says may be as old as that.
   */
  readonly askedAt?: number;
  /** The identity that an answer itself names (HTTP): at an address that is used again another base may answer. */
  readonly answeredBy?: string;
  /** Address and port that an answer came from (HTTP). */
  readonly place?: Pick<BaseInfo, 'ip' | 'port'>;
  /** Canonical address of whoever posted a message (HTTP). Undefined where the transport authenticates the base. */
  readonly sender?: string;
  /** Who sent a message that is no answer (HTTP): an IPv4 address, or a /64 network of IPv6. */
  readonly source?: string | undefined;
}

/** A payload that was refused. Counted and logged by the tunnel; nothing else happens to it. */
export interface InvalidMessage {
  readonly tunnel: TunnelName;
  readonly code:
    | 'Arklet.InvalidMessage'
    | 'Arklet.InvalidIdentity'
    | 'Arklet.IdentityMismatch'
    | 'Arklet.AddressRefused'
    | 'Arklet.Unauthenticated';
  /** The identity of the topic, or that the message names; undefined where it was not read or is not believed. */
  readonly identity: string | undefined;
  /** Over HTTP: the address that it came from. */
  readonly sender?: string | undefined;
  readonly message: string;
}

/**
 * What the core wants to hear from a tunnel. Calls come in the order of arrival, must return at once
 * and must not throw. A call about a base is a sign of life of that base, unless it says otherwise.
 */
export interface TunnelHandler {
  /** One from another address than the base's is only a reason to ask the base. */
  onHeartbeat(envelope: Envelope, base: BaseInfo): void;
  /**
   * A base says that it is going down (the public agent never does): there is nothing to wait for, unless the
   * message came from another address than the base's.
   */
  onGoingDown(envelope: Envelope, base: BaseInfo): void;
  onHealth(envelope: Envelope, health: BaseHealth): void;
  /**
   * Whether a list that may be no answer (MQTT) is read; asked once for each, before it is parsed. One that is not read
   * is asked for later.
   */
  admitList(tunnel: TunnelName, identity: string): boolean;
  /** The whole list; a list that could not be read wholly is never passed on. */
  onModuleList(envelope: Envelope, modules: readonly ModuleStatus[]): void;
  onOperationResult(envelope: Envelope, result: OperationResult): void;
  /**
   * A base process has just started and asks what it should have: whatever it had before is gone. Over HTTP it only
   * gives a reason to ask, and is no sign of life.
   */
  onBaselineQuery(envelope: Envelope): void;
  /**
   * Nobody listens at the base's address (HTTP): the process that was there is gone; another may be starting.
   * No sign of life.
   */
  onConnectionRefused(tunnel: TunnelName, base: BaseAddress): void;
  /** The tunnel's own link came up (again): commands and messages sent before may be lost. */
  onLinkUp(tunnel: TunnelName): void;
  onLinkDown(tunnel: TunnelName): void;
}

/** The receiver of a command; over HTTP the address matters, over MQTT the identity. */
export type BaseAddress = Pick<BaseInfo, 'identity' | 'ip' | 'port'>;

/** Whether a command that was rejected has surely not left. */
export function isUnsent(error: unknown): boolean {
  return error instanceof ControllerError && error.code === 'Tunnel.NotConnected';
}

/**
 * The pipe to bases. Speaks of bases and modules, never of Nodes and Pods. Answers come to the handler.
 * A command resolves when it is handed over (MQTT: acknowledged by the broker; HTTP: answered, after the handler
 * has heard the answer). It rejects with ControllerError: `Tunnel.NotConnected`, within 10 s, when it has not left;
 * `Tunnel.SendFailed` when the base has possibly got it all the same (MQTT: within 10 s; HTTP: whenever the
 * connection breaks before the answer, or the command's time is over).
 */
export interface Tunnel {
  readonly name: TunnelName;
  /**
   * Whether the transport has authenticated who speaks under an identity: with a user for each base at the broker nobody
   * else can. Such a base takes its identity from one that has proven an address at most.
   */
  readonly provesIdentity: boolean;
  /**
   * Why an address that a base reports is not stored in its Node and Pods, to be read after "which"; undefined for one
   * that is.
   */
  addressFault(ip: string): string | undefined;
  /** Connects and keeps connected until `signal` is aborted; resolves when all is closed. Called once. */
  run(handler: TunnelHandler, signal: AbortSignal): Promise<void>;
  /** Whether the link is up now and all subscriptions are acknowledged. */
  isUp(): boolean;
  /** The time on the local clock at which the link came up. Undefined while it is down, and before `run`. */
  upSince(): number | undefined;
  /**
   * Since when the link does not work, on the local clock: the time of the last sign of life on it, or of the start for
   * one that has never been up. Undefined while it is up, and before `run`.
   */
  downSince(): number | undefined;
  /**
   * Cuts every connection on which something may still be under way, without waiting: nothing of it arrives later.
   * The tunnel connects again by itself. For a replica that may no longer speak to its bases.
   */
  abandon(): void;
  /**
   * Proves that messages of bases can arrive: over MQTT by a message of the controller to itself that comes back
   * through the broker, over HTTP by anything that a base sends. True when that came within `timeoutMs`. Never rejects.
   */
  probeLink(timeoutMs: number): Promise<boolean>;
  queryModules(base: BaseAddress): Promise<void>;
  queryHealth(base: BaseAddress): Promise<void>;
  /** Asks for the health only to identify the base: over HTTP it leaves also where no command may. */
  identify(base: BaseAddress): Promise<void>;
  installModule(base: BaseAddress, spec: ModuleSpec): Promise<void>;
  uninstallModule(base: BaseAddress, id: ModuleId): Promise<void>;
  /**
   * How many operations (install, uninstall, switch) may be under way at one base; more are for the core to hold back.
   */
  readonly maxOperations: number;
  /** Whether `switchModule` works: arklet takes switchBiz over HTTP only. */
  readonly canSwitch: boolean;
  /** Makes an installed version the active one of its name. Rejects with `Tunnel.NotConnected` where it cannot. */
  switchModule(base: BaseAddress, id: ModuleId): Promise<void>;
}
