import { NODE_LEASE_NAMESPACE } from '../../../src/labels.ts';
import { HandOverController, type TunnelState } from '../../../src/lease/hand-over-controller.ts';
import { memberLeaseNameOf } from '../../../src/lease/member.ts';
import { MembershipController } from '../../../src/lease/membership-controller.ts';
import { NodeLeaseController } from '../../../src/lease/node-lease-controller.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { phaseOf } from '../../../src/queue/phase.ts';
import { Host } from './host.ts';
import type { LeaseServer } from './lease-server.ts';
import { Link, type ServerMachine } from './link.ts';
import { ENV, SimWatch } from './sim-watch.ts';
import type { Dice, Timeline } from './timeline.ts';

export const NAMESPACE = NODE_LEASE_NAMESPACE;
export const TUNNELS = ['mqtt', 'http'] as const;
export type TunnelName = (typeof TUNNELS)[number];

/** As `src/replica.ts` and `src/kube/kube-client.ts` have them. */
const MEMBER_TIMEOUT_MS = 1_500;
const LEASE_TIMEOUT_MS = 5_000;
const MAX_LEVEL = 3;
/** As the whole program. */
const STOP_GRACE_MS = 10_000;
const TRY_AGAIN_MS = 1_000;
/** To delete Pods and a Node. */
const REMOVAL_MS = 100;

export const metrics = createMetrics();

export interface ReplicaOptions {
  readonly clientId: string;
  /** Unique to the process. */
  readonly nonce: string;
  readonly timeline: Timeline;
  readonly dice: Dice;
  readonly server: LeaseServer;
  readonly machine: ServerMachine;
  readonly rate: number;
  readonly maxLatencyMs: number;
  readonly isRebalancing: boolean;
  readonly renewIntervalMs: number;
  readonly nodeUidOf: (nodeName: string) => string | undefined;
  readonly isHeard: (nodeName: string) => boolean;
  readonly removeNode: (nodeName: string) => void;
  readonly onHeld: (nodeName: string) => void;
  readonly note: (line: string) => void;
}

export function tunnelOf(nodeName: string): TunnelName {
  return phaseOf(nodeName) < 0.5 ? 'mqtt' : 'http';
}

/** One process: the real controllers on a clock, a path to the API server, and a watch of its own. */
export class Replica {
  readonly clientId: string;
  readonly nonce: string;
  readonly host: Host;
  readonly link: Link;
  readonly watch: SimWatch;
  readonly membership: MembershipController;
  readonly leases: NodeLeaseController;
  /** What it was told to lead, by `onHeld` and `onLost`. */
  readonly told = new Set<string>();
  /** When its membership lease was hidden from the watch: then only the end of its term says that it is fenced. */
  hiddenAt = Number.NEGATIVE_INFINITY;
  /** When it was first seen not to be a valid member any more. */
  invalidSince: number | undefined;
  /** Requests since it started, `verb namespace/name`. */
  readonly requests: string[] = [];
  readonly #options: ReplicaOptions;
  readonly #handOver: HandOverController;
  readonly #downSince = new Map<TunnelName, number>();
  readonly #broken = new Set<TunnelName>();
  readonly #stopping = {
    handOver: new AbortController(),
    leases: new AbortController(),
    member: new AbortController(),
  };
  #isEnding = false;
  #isToldToEnd = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    const { clientId, nonce, dice, rate, timeline, server, machine, maxLatencyMs } = options;
    this.clientId = clientId;
    this.nonce = nonce;
    this.host = new Host({ timeline, dice, rate });
    const onRequest = (request: string): void => {
      this.requests.push(request);
      options.note(`${nonce} asks ${request}`);
    };
    this.link = new Link({ host: this.host, server, machine, dice, maxLatencyMs, onRequest });
    const ownName = memberLeaseNameOf(ENV, clientId);
    this.watch = new SimWatch({ host: this.host, link: this.link, server, machine, dice, ownName });
    const shared = { clock: this.host, logger: silentLogger, metrics, informer: this.watch, env: ENV };
    this.membership = new MembershipController({
      ...shared,
      api: this.link.clientOf(NAMESPACE, { timeoutMs: MEMBER_TIMEOUT_MS, isOnce: true }),
      clientId,
      nonce,
      address: '127.0.0.1:7777',
      onRolledBack: () => this.watch.wasRolledBack(),
    });
    void this.membership.announce({ tunnels: this.tunnelsUp() });
    this.leases = this.#createLeases(shared);
    this.#handOver = this.#createHandOver(shared);
    this.membership.addListener({
      onProven: () => this.leases.reconsider(),
      onFenced: () => this.leases.onFenced(),
    });
  }

  #createLeases(shared: Shared): NodeLeaseController {
    const { clientId: holder, nodeUidOf, isHeard, onHeld, note } = this.#options;
    const api = this.link.clientOf(NAMESPACE, { timeoutMs: LEASE_TIMEOUT_MS, isOnce: false });
    const leases = new NodeLeaseController({
      ...shared,
      api: { getLease: api.get, createLease: api.create, patchLease: api.patch, deleteLease: api.delete },
      membership: this.membership,
      holder,
      isCluster: true,
      maxLevel: MAX_LEVEL,
      renewIntervalMs: this.#options.renewIntervalMs,
      onRolledBack: () => this.watch.wasRolledBack(),
      nodeUidOf,
      tunnelOf,
      isWanted: (nodeName) => isHeard(nodeName) || nodeUidOf(nodeName) !== undefined,
    });
    leases.addListener({
      onHeld: (nodeName, reason) => {
        note(`${this.nonce} leads ${nodeName}: ${reason}`);
        this.told.add(nodeName);
        onHeld(nodeName);
      },
      onLost: (nodeName, reason) => {
        note(`${this.nonce} has lost ${nodeName}: ${reason}`);
        this.told.delete(nodeName);
      },
    });
    return leases;
  }

  #createHandOver(shared: Shared): HandOverController {
    const { clientId: holder, isRebalancing } = this.#options;
    return new HandOverController({
      ...shared,
      membership: this.membership,
      leases: this.leases,
      holder,
      maxLevel: MAX_LEVEL,
      isRebalancing,
      tunnels: () => TUNNELS.map((name): TunnelState => ({ name, downSince: () => this.#downSince.get(name) })),
      tunnelOf,
      isBusy: (nodeName) => phaseOf(`${nodeName}/${Math.floor(this.host.now() / 400)}`) < 0.15,
      onLeaving: () => {},
    });
  }

  /** Also one that is stopped, and ends when it goes on. */
  get isEnding(): boolean {
    return this.#isEnding || this.#isToldToEnd;
  }

  get isLive(): boolean {
    return !this.host.isDead;
  }

  start(): void {
    this.watch.start();
    void this.#run();
  }

  async #run(): Promise<void> {
    await this.watch.whenSynced();
    const member = this.membership.run(this.#stopping.member.signal).catch(() => this.#end('its CLIENT_ID was taken'));
    await this.membership.whenJoined(this.#stopping.member.signal);
    const leases = this.leases.run(this.#stopping.leases.signal);
    await this.#handOver.run(this.#stopping.handOver.signal);
    this.#stopping.leases.abort();
    await leases;
    this.#stopping.member.abort();
    await member;
    this.#options.note(`${this.nonce} has ended`);
    this.host.kill();
  }

  /** SIGTERM. */
  end(): void {
    this.#isToldToEnd = true;
    this.host.deliver(() => this.#end('SIGTERM'));
  }

  #end(why: string): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#options.note(`${this.nonce} ends: ${why}`);
    this.host.setTimer(() => this.host.kill(), STOP_GRACE_MS);
    this.#stopping.handOver.abort();
    // Who is no member yet has nothing else that runs.
    if (this.membership.term === 0) this.#stopping.member.abort();
  }

  /** The run is over. A wait that never ends would be kept, and the world with it. */
  dispose(): void {
    this.host.kill();
    for (const stopping of Object.values(this.#stopping)) stopping.abort();
  }

  isHeld(nodeName: string): boolean {
    return this.isLive && this.leases.isHeld(nodeName);
  }

  /** Hears of a base. */
  hold(nodeName: string): void {
    this.host.deliver(() => this.leases.follow(nodeName));
  }

  /** The base is silent: who leads it removes its Node and its lease, then the others follow it no longer. */
  letGo(nodeName: string): void {
    this.host.deliver(() => {
      const { isHeard, nodeUidOf } = this.#options;
      if (isHeard(nodeName)) return;
      if (this.leases.isHeld(nodeName)) {
        this.#remove(nodeName);
      } else if (nodeUidOf(nodeName) === undefined) {
        this.told.delete(nodeName);
        this.leases.forget(nodeName);
      } else {
        this.host.setTimer(() => this.letGo(nodeName), TRY_AGAIN_MS);
      }
    });
  }

  #remove(nodeName: string): void {
    this.#options.removeNode(nodeName);
    this.host.setTimer(() => {
      if (this.#options.isHeard(nodeName)) return;
      if (!this.leases.isHeld(nodeName)) return this.letGo(nodeName);
      this.told.delete(nodeName);
      this.leases.release(nodeName).catch(() => this.host.setTimer(() => this.letGo(nodeName), TRY_AGAIN_MS));
    }, REMOVAL_MS);
  }

  tunnelsUp(): TunnelName[] {
    return TUNNELS.filter((name) => !this.#downSince.has(name));
  }

  /** A process that is stopped hears of it when it goes on, whatever has become of the link by then. */
  setTunnel(name: TunnelName, isUp: boolean): void {
    if (isUp) this.#broken.delete(name);
    else this.#broken.add(name);
    this.host.deliver(() => {
      if (!this.#broken.has(name)) this.#downSince.delete(name);
      else if (!this.#downSince.has(name)) this.#downSince.set(name, this.host.now());
      void this.membership.announce({ tunnels: this.tunnelsUp() });
    });
  }
}

interface Shared {
  readonly clock: Host;
  readonly logger: typeof silentLogger;
  readonly metrics: typeof metrics;
  readonly informer: SimWatch;
  readonly env: string;
}
