import type { Fleet } from '../../../samples/base-simulator/fleet.ts';
import type { SimulatedBase } from '../../../samples/base-simulator/simulated-base.ts';
import { startBroker } from '../../../samples/broker/broker.ts';
import { createAccount } from '../../support/cluster/accounts.ts';
import { MEMBER_NAMESPACE, Replica } from '../../support/cluster/replica.ts';
import { MANY_PODS } from '../../support/cluster-settings.ts';
import { eventually } from '../../support/eventually.ts';
import { isSchedulable, nodes } from '../../support/observe.ts';
import { MqttTransport } from '../../support/transport.ts';
import { type OwnWorld, startOwnWorld } from '../../support/world.ts';
import { ROTATING_AUDIT } from './audit-tail.ts';
import { History } from './history.ts';
import { SoakReplica } from './soak-replica.ts';

export interface SoakWorldOptions {
  readonly bases: number;
  readonly replicas: number;
  /** Modules that replicas load before anything else, as URLs. */
  readonly preloads: readonly string[];
  /** Gives [0, 1), for the bases. */
  readonly random: () => number;
  readonly onProgress: (line: string) => void;
}

const EVENTS_LIVE = '--event-ttl=15m';
/** All that the history needs is told as it comes. */
const FLEET_REMEMBERS = 1_000;
const NODES_WITHIN_MS = 120_000;

/** Every controller of this world loads them. */
class PreloadingTransport extends MqttTransport {
  readonly #preloads: readonly string[];

  constructor(broker: MqttTransport['broker'], preloads: readonly string[]) {
    super(broker);
    this.#preloads = preloads;
  }

  override async controllerEnv(): Promise<Record<string, string>> {
    const options = this.#preloads.map((url) => `--import ${url}`).join(' ');
    return { ...(await super.controllerEnv()), NODE_OPTIONS: options };
  }
}

/** A control plane, several replicas, their bases, and a history of it all that does not grow. */
export class SoakWorld {
  readonly world: OwnWorld;
  readonly history: History;
  readonly fleet: Fleet;
  readonly replicas: readonly SoakReplica[];

  private constructor(parts: { world: OwnWorld; history: History; fleet: Fleet; replicas: readonly SoakReplica[] }) {
    this.world = parts.world;
    this.history = parts.history;
    this.fleet = parts.fleet;
    this.replicas = parts.replicas;
  }

  /** Resolves when all Nodes may be used. */
  static async start({ bases, replicas: count, preloads, random, onProgress }: SoakWorldOptions): Promise<SoakWorld> {
    const broker = await startBroker({ record: false, recordPayloads: true });
    const extraArgs = { ...MANY_PODS.extraArgs, 'kube-apiserver': [...ROTATING_AUDIT, EVENTS_LIVE] };
    const world = await startOwnWorld(
      { ...MANY_PODS, extraArgs, auditLog: true, onProgress },
      { transport: new PreloadingTransport(broker, preloads) },
    );
    const ends: (() => Promise<void>)[] = [() => world.stop()];
    try {
      const { replicas, replicaOfUser } = await createReplicas(world, count);
      const { controlPlane } = world;
      const history = await History.start({ controlPlane, broker, namespace: MEMBER_NAMESPACE, replicaOfUser });
      ends.push(() => history.stop());
      await Promise.all(replicas.map((replica) => replica.start()));
      const fleet = await world.startFleet({
        count: bases,
        announce: false,
        random,
        // Without it a second version over MQTT is installed twice (docs/modules.md, "Two versions on one base").
        activateNewModule: true,
        historyLimit: FLEET_REMEMBERS,
      });
      history.follow(fleet);
      fleet.announce();
      await eventually(async () => {
        const usable = (await nodes(world.admin)).filter(isSchedulable).length;
        if (usable !== bases) throw new Error(`${usable} of ${bases} Nodes can be used`);
      }, NODES_WITHIN_MS);
      return new SoakWorld({ world, history, fleet, replicas });
    } catch (error) {
      for (const end of ends.reverse()) await end();
      throw error;
    }
  }

  replica(index: number): SoakReplica {
    const replica = this.replicas[index];
    if (!replica) throw new Error(`no replica ${index}`);
    return replica;
  }

  base(index: number): SimulatedBase {
    const base = this.fleet.bases[index];
    if (!base) throw new Error(`no base ${index}`);
    return base;
  }

  /** Identities. */
  get aliveBases(): string[] {
    return this.fleet.bases.filter(({ isAlive }) => isAlive).map(({ identity }) => identity);
  }

  async stop(): Promise<void> {
    await this.history.stop();
    await this.world.stop();
    await Promise.all(this.replicas.map((replica) => replica.stop()));
  }
}

async function createReplicas(world: OwnWorld, count: number) {
  const byUser = new Map<string, string>();
  const replicas: SoakReplica[] = [];
  for (let index = 0; index < count; index++) {
    const clientId = `controller-${index}`;
    const account = `module-${clientId}`;
    await createAccount(world.controlPlane, account);
    byUser.set(`system:serviceaccount:${MEMBER_NAMESPACE}:${account}`, clientId);
    replicas.push(
      new SoakReplica(
        await Replica.create({ world, clientId, account, brokerPort: world.broker.port, overHttp: false }),
      ),
    );
  }
  return { replicas, replicaOfUser: (user: string): string | undefined => byUser.get(user) };
}
