import { forkFleet, type RemoteFleet } from '../../../samples/base-simulator/fleet-process.ts';
import type { RequestCounts } from '../../../samples/control-plane/request-counts.ts';
import { nodeNameOf } from '../../../src/labels.ts';
import { MANY_PODS } from '../../support/cluster-settings.ts';
import { createPods } from '../../support/create-pods.ts';
import { modulePod } from '../../support/manifests.ts';
import { startTransport } from '../../support/transport.ts';
import { CONTROLLER_USER, type OwnWorld, startOwnWorld } from '../../support/world.ts';
import type { StageOptions } from '../suite.ts';
import type { BenchReplica } from './bench-replica.ts';
import type { LeaseBook } from './lease-book.ts';
import { ReadyWatch } from './ready-watch.ts';
import { Replicas } from './replicas.ts';
import { ServiceTransport } from './service-transport.ts';

export type TunnelKind = 'mqtt' | 'http';

/** In all cases, but where one more joins. */
export const REPLICAS = 3;

const ALL_READY_WITHIN_MS = 120_000;

/** Several replicas on a control plane of their own, and their bases in a process of their own. */
export class ReplicaWorld {
  readonly world: OwnWorld;
  readonly fleet: RemoteFleet;
  readonly bases: number;
  readonly #transport: ServiceTransport | undefined;
  readonly #replicas: Replicas;
  #announcing: Promise<void> | undefined;
  #loading: Promise<void> | undefined;

  private constructor(parts: {
    world: OwnWorld;
    replicas: Replicas;
    fleet: RemoteFleet;
    bases: number;
    transport: ServiceTransport | undefined;
  }) {
    this.world = parts.world;
    this.#replicas = parts.replicas;
    this.fleet = parts.fleet;
    this.bases = parts.bases;
    this.#transport = parts.transport;
  }

  /** Without a replica, and with bases that have said nothing yet. */
  static async start(tunnel: TunnelKind, { bases, onProgress }: StageOptions): Promise<ReplicaWorld> {
    const service = tunnel === 'http' ? await ServiceTransport.start() : undefined;
    const transport = service ?? (await startTransport('mosquitto'));
    const world = await startOwnWorld({ ...MANY_PODS, auditLog: true, onProgress }, { transport });
    let fleet: RemoteFleet | undefined;
    try {
      const target = await transport.fleetTarget(world.env);
      const times = { installMs: 50, uninstallMs: 20 };
      fleet = await forkFleet({ ...target, ...times, env: world.env, count: bases, announce: false });
      const replicas = await Replicas.open(world);
      return new ReplicaWorld({ world, replicas, fleet, bases, transport: service });
    } catch (error) {
      await fleet?.stop();
      await world.stop();
      throw error;
    }
  }

  get leases(): LeaseBook {
    return this.#replicas.leases;
  }

  get living(): BenchReplica[] {
    return this.#replicas.living;
  }

  get livingNames(): string[] {
    return this.#replicas.livingNames;
  }

  /** How many leases each living replica holds. */
  counts(): number[] {
    return this.#replicas.counts();
  }

  /** One more, under a name that nobody had; does not wait for it to be a member. */
  async launch(): Promise<BenchReplica> {
    const replica = await this.#replicas.launch();
    this.#transport?.service.add(replica.httpPort);
    return replica;
  }

  async end(replica: BenchReplica, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    // An endpoint is taken out when its Pod is deleted, not when its process has ended.
    if (signal === 'SIGTERM') this.#transport?.service.remove(replica.httpPort);
    await this.#replicas.end(replica, signal);
    this.#transport?.service.remove(replica.httpPort);
  }

  /** So many replicas are up; the newest leave first. */
  async scaleTo(count: number): Promise<void> {
    for (const replica of this.living.slice(count)) await this.end(replica, 'SIGTERM');
    const started = await Promise.all(Array.from({ length: count - this.living.length }, () => this.launch()));
    await Promise.all(started.map((replica) => replica.untilUp()));
  }

  /** All bases at this moment, once. */
  announce(): Promise<void> {
    this.#announcing ??= this.fleet.announce();
    return this.#announcing;
  }

  get isAnnounced(): boolean {
    return this.#announcing !== undefined;
  }

  /** So many replicas share all bases, each base has a module that is Ready, and nothing moves. */
  async settle(replicas: number): Promise<void> {
    await this.scaleTo(replicas);
    await this.announce();
    await this.#replicas.untilBalanced(this.bases);
    this.#loading ??= this.#createModules();
    await this.#loading;
    await this.#replicas.untilUnmoved();
  }

  /** Of all replicas. */
  readonly requestsSince = (since: RequestCounts): Promise<RequestCounts> =>
    this.world.controlPlane.requestCounts({ user: CONTROLLER_USER, since });

  /** Of all living replicas. */
  async metric(name: string, ...labels: readonly string[]): Promise<number> {
    const values = await Promise.all(this.living.map(({ process }) => process.metric(name, ...labels)));
    return values.reduce((sum, value) => sum + value, 0);
  }

  async stop(): Promise<void> {
    await this.leases.close();
    await this.fleet.stop();
    await this.world.stop();
  }

  /** One on each base, bound from the start. */
  async #createModules(): Promise<void> {
    const ready = await ReadyWatch.open(this.world.admin, 'bench=kept');
    const wanted = (await this.fleet.identities()).map((base) =>
      modulePod(`kept-${base}`, [{ name: 'kept' }], { nodeName: nodeNameOf(base), labels: { bench: 'kept' } }),
    );
    try {
      await createPods(this.world.admin, wanted);
      await ready.until(this.bases, ALL_READY_WITHIN_MS);
    } finally {
      await ready.close();
    }
  }
}
