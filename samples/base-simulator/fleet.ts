import { type Clock, sleep, systemClock } from '../../src/clock.ts';
import type { BaseProcessOptions } from './base-process.ts';
import { type Fault, FaultScript } from './faults.ts';
import { CommandHistory } from './history.ts';
import type { LinkTarget, Place } from './link.ts';
import { SharedConnection } from './shared-connection.ts';
import { SimulatedBase } from './simulated-base.ts';

/** Where a default is not given, it is that of the fleet. A URL of either kind replaces that of the fleet. */
export interface BaseOptions extends LinkTarget {
  /** Default `{identityPrefix}{number}`, counted from 1. */
  identity?: string;
  /** Default `base`. */
  name?: string;
  /** Default `1.0.0`. */
  version?: string;
  /** Default `default`. */
  clusterName?: string;
  /** In heartbeats. Default over MQTT: a documentation address, by number; over HTTP: the first of this machine. */
  localIP?: string;
  /** Where a base takes commands over HTTP, on a free port. Default: its localIP. */
  listenAddress?: string;
  /** Default: the identity. */
  localHostName?: string;
  /** The state in the heartbeat. Default `activated`. */
  state?: string;
  /** Default `koupleless`. */
  clientIdPrefix?: string;
  /** How long an install takes. Default 800, as a small web module was seen to. */
  installMs?: number;
  /** Default 100. */
  uninstallMs?: number;
  /** The JVM property: a second version of a module takes over. Default false. */
  activateNewModule?: boolean;
  /** Answers queryAllBiz on `base/biz` with full infos, as older agents do. Default false. */
  legacyBizTopic?: boolean;
  /** Bytes, -1 = unlimited. Default -1. */
  maxMetaspace?: number;
  /** How much the base's clock is ahead. Default 0. */
  clockSkewMs?: number;
  /** Default: 10 000 over MQTT, 12 000 over HTTP. */
  heartbeatMs?: number;
  /** Pause before each try after a lost connection. Default 1000. */
  reconnectMs?: number;
  /** Over HTTP: asks for its baseline, and installs it. Default false, as the public agent. */
  queriesBaseline?: boolean;
  /**
   * Over HTTP: threads that take commands, two for each core of a JVM. Connections are given to them in turn, and one
   * that runs a synchronous command does nothing else until that is answered. Default 4.
   */
  eventLoops?: number;
  /** Over HTTP: how long after its start a process takes commands, while heartbeats go out already. Default 0. */
  listenDelayMs?: number;
}

export interface FleetOptions extends Omit<BaseOptions, 'identity' | 'localIP' | 'localHostName' | 'listenAddress'> {
  env: string;
  /** Bases with default identities. Default 1 when `bases` is absent, else 0. */
  count?: number;
  /** Further bases. */
  bases?: readonly BaseOptions[];
  /** Default `base-`. */
  identityPrefix?: string;
  /** Default true: each base announces itself once all are connected. False leaves it to `announce()`. */
  announce?: boolean;
  /**
   * Over MQTT: one connection for all bases of a broker, which has to let its user speak for all of them. Default false:
   * each has its own, as in reality.
   */
  sharesConnection?: boolean;
  /** For the broker. */
  username?: string;
  password?: string;
  /** For the controller, over HTTP: `Authorization: Bearer`. */
  token?: string;
  /** Default `systemClock`. */
  clock?: Clock;
  /** Gives [0, 1). Default `Math.random`. */
  random?: () => number;
  /** How many commands the history keeps at least. Default 200 000. */
  historyLimit?: number;
}

/** More at once overrun a broker's accept queue. */
const CONNECTS_AT_ONCE = 50;

const DEFAULTS = {
  name: 'base',
  version: '1.0.0',
  clusterName: 'default',
  state: 'activated',
  clientIdPrefix: 'koupleless',
  installMs: 800,
  uninstallMs: 100,
  activateNewModule: false,
  legacyBizTopic: false,
  maxMetaspace: -1,
  clockSkewMs: 0,
  reconnectMs: 1_000,
  queriesBaseline: false,
  eventLoops: 4,
  listenDelayMs: 0,
} as const;

/** Simulated bases in this process, each with an MQTT connection (unless shared) or an HTTP server of its own. */
export class Fleet {
  readonly history: CommandHistory;
  readonly #options: FleetOptions;
  readonly #clock: Clock;
  readonly #faults = new FaultScript();
  readonly #bases = new Map<string, SimulatedBase>();
  /** By the broker's URL. Kept for the life of the fleet. */
  readonly #shared = new Map<string, SharedConnection>();
  /** Bases ever made; numbers the next one. */
  #made = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.history = new CommandHistory({
      clock: this.#clock,
      ...(options.historyLimit === undefined ? {} : { limit: options.historyLimit }),
    });
    for (let number = 1; number <= (options.count ?? (options.bases ? 0 : 1)); number += 1) this.#make({});
    for (const base of options.bases ?? []) this.#make(base);
  }

  get bases(): SimulatedBase[] {
    return [...this.#bases.values()];
  }

  base(identity: string): SimulatedBase {
    const base = this.#bases.get(identity);
    if (!base) throw new Error(`identity: no base ${identity} in this fleet`);
    return base;
  }

  /** Connects all bases, and announces them unless told not to. A failure stops the fleet. */
  async start(): Promise<void> {
    const waiting = this.bases;
    const connectSome = async (): Promise<void> => {
      for (let base = waiting.shift(); base; base = waiting.shift()) await base.connect();
    };
    try {
      await Promise.all(Array.from({ length: CONNECTS_AT_ONCE }, connectSome));
    } catch (error) {
      waiting.length = 0;
      await this.stop();
      throw error;
    }
    if (this.#options.announce ?? true) this.announce();
  }

  /** All bases announce themselves at this moment, those that already did excepted. */
  announce(): void {
    for (const base of this.bases) base.announce();
  }

  /** The same, spread evenly over `overMs`; resolves when all have. */
  async announceOver(overMs: number): Promise<void> {
    const waiting = this.bases;
    const startedAt = this.#clock.now();
    for (const [index, base] of waiting.entries()) {
      const waitMs = startedAt + (overMs * index) / waiting.length - this.#clock.now();
      if (waitMs > 0) await sleep(this.#clock, waitMs);
      base.announce();
    }
  }

  /** One more base; resolves when it is connected and, as the fleet was started, announced. */
  async add(options: BaseOptions = {}): Promise<SimulatedBase> {
    const base = this.#make(options);
    try {
      await base.connect();
    } catch (error) {
      this.#bases.delete(base.identity);
      throw error;
    }
    if (this.#options.announce ?? true) base.announce();
    return base;
  }

  /** A fault of all bases, later ones included. Returns what removes it. */
  setFault(fault: Fault): () => void {
    return this.#faults.add(fault);
  }

  /** Clears the faults of the fleet, not those of single bases. */
  clearFaults(): void {
    this.#faults.clear();
  }

  /** Kills all bases. May be called again. */
  async stop(): Promise<void> {
    await Promise.all(this.bases.map((base) => base.kill()));
  }

  #make(options: BaseOptions): SimulatedBase {
    this.#made += 1;
    const number = this.#made;
    const faults = new FaultScript();
    const resolved = this.#resolve(options, number, faults);
    if (this.#bases.has(resolved.identity)) throw new Error(`identity: ${resolved.identity} is in this fleet already`);
    const { brokerUrl, controllerUrl } = (options.brokerUrl ?? options.controllerUrl) ? options : this.#options;
    const target = { brokerUrl, controllerUrl };
    const base = new SimulatedBase(resolved, { target, place: placeOf(options), faults, number });
    this.#bases.set(base.identity, base);
    return base;
  }

  #resolve(options: BaseOptions, number: number, faults: FaultScript): BaseProcessOptions {
    const { identityPrefix = 'base-', sharesConnection = false, ...ofFleet } = this.#options;
    const identity = options.identity ?? `${identityPrefix}${number}`;
    return {
      ...DEFAULTS,
      ...ofFleet,
      ...options,
      identity,
      localHostName: options.localHostName ?? identity,
      secondBeatAfter: secondBeatAfter(number),
      clock: this.#clock,
      random: this.#options.random ?? Math.random,
      faults: [faults, this.#faults],
      history: this.history,
      ...(sharesConnection ? { sharedConnectionTo: (brokerUrl) => this.#sharedConnectionTo(brokerUrl) } : {}),
    };
  }

  #sharedConnectionTo(brokerUrl: string): SharedConnection {
    const {
      username,
      password,
      clientIdPrefix,
      reconnectMs,
      identityPrefix = 'base-',
    } = { ...DEFAULTS, ...this.#options };
    const connection =
      this.#shared.get(brokerUrl) ??
      new SharedConnection({
        brokerUrl,
        clientId: `${clientIdPrefix}@@@${identityPrefix}fleet`,
        ...(username === undefined ? {} : { username }),
        ...(password === undefined ? {} : { password }),
        reconnectMs,
        clock: this.#clock,
      });
    this.#shared.set(brokerUrl, connection);
    return connection;
  }
}

function placeOf({ localIP, listenAddress }: BaseOptions): Place {
  return { ...(localIP === undefined ? {} : { localIP }), ...(listenAddress === undefined ? {} : { listenAddress }) };
}

/** In periods. Spreads bases that announce at one moment over half a period; the first keeps the full period. */
function secondBeatAfter(number: number): number {
  return 1 - ((number - 1) % 100) / 200;
}

/** Resolves when all bases are connected and subscribed, or listen, and announced unless told not to. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const fleet = new Fleet(options);
  await fleet.start();
  return fleet;
}
