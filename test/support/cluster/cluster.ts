import type { Fleet, FleetOptions } from '../../../samples/base-simulator/fleet.ts';
import { startBroker } from '../../../samples/broker/broker.ts';
import type { MqttBroker } from '../../../samples/broker/mqtt-broker.ts';
import { MANY_PODS } from '../cluster-settings.ts';
import { ended } from '../ended.ts';
import { MqttTransport, needExternalAddress, type Transport } from '../transport.ts';
import { type OwnWorld, startOwnWorld } from '../world.ts';
import { createAccount } from './accounts.ts';
import { ClusterRecorder } from './cluster-recorder.ts';
import { MEMBER_NAMESPACE, Replica } from './replica.ts';
import { ServiceProxy, type ServiceProxyOptions } from './service-proxy.ts';

export type TunnelKind = 'mqtt' | 'http';

/** Over MQTT through a broker in this process. Over HTTP bases post to one address, and a replica in turn takes it. */
class ClusterTransport implements Transport {
  readonly #mqtt: MqttTransport | undefined;
  readonly #service: ServiceProxy | undefined;

  constructor(mqtt: MqttTransport | undefined, service: ServiceProxy | undefined) {
    this.#mqtt = mqtt;
    this.#service = service;
  }

  get broker(): MqttBroker {
    if (!this.#mqtt) throw new Error('there is a broker over MQTT only');
    return this.#mqtt.broker;
  }

  async controllerEnv(): Promise<Record<string, string>> {
    return { ...(await this.#mqtt?.controllerEnv()), ...(this.#service ? { ENABLE_HTTP_TUNNEL: 'true' } : {}) };
  }

  /** Over MQTT where there are both. */
  async fleetTarget(): Promise<{ brokerUrl: string } | { controllerUrl: string }> {
    if (this.#mqtt) return this.#mqtt.fleetTarget();
    if (!this.#service) throw new Error('a cluster needs a tunnel');
    return { controllerUrl: this.#service.url };
  }

  async stop(): Promise<void> {
    await this.#mqtt?.stop();
    await this.#service?.stop();
  }
}

export interface ClusterFleetOptions extends Partial<FleetOptions> {
  /** Default: the first tunnel of the cluster. */
  readonly over?: TunnelKind;
}

/** A world with several replicas that share its bases, each with wires that can be cut, and a recorder of it all. */
export class Cluster {
  readonly world: OwnWorld;
  readonly recorder: ClusterRecorder;
  readonly tunnels: readonly TunnelKind[];
  readonly fleets: Fleet[] = [];
  /** Of its history; wall clock, ms. */
  checkedUntil = 0;
  readonly #replicas: Replica[] = [];
  readonly #accounts: Map<string, string>;
  readonly #service: ServiceProxy | undefined;

  private constructor(parts: {
    world: OwnWorld;
    recorder: ClusterRecorder;
    tunnels: readonly TunnelKind[];
    accounts: Map<string, string>;
    service: ServiceProxy | undefined;
  }) {
    this.world = parts.world;
    this.recorder = parts.recorder;
    this.tunnels = parts.tunnels;
    this.#accounts = parts.accounts;
    this.#service = parts.service;
  }

  /** Without a replica. */
  static async start(tunnels: readonly TunnelKind[], serviceOptions: ServiceProxyOptions = {}): Promise<Cluster> {
    if (tunnels.includes('http')) needExternalAddress();
    const service = tunnels.includes('http') ? await ServiceProxy.start(serviceOptions) : undefined;
    const mqtt = tunnels.includes('mqtt')
      ? new MqttTransport(await startBroker({ record: false, recordPayloads: true }))
      : undefined;
    const transport = new ClusterTransport(mqtt, service);
    // Only what replicas and tenants write is checked; the stock components write as much again.
    const auditLog = { userGroups: ['system:serviceaccounts'] };
    const world = await startOwnWorld({ ...MANY_PODS, auditLog }, { transport });
    const accounts = new Map<string, string>();
    const recorder = await ClusterRecorder.start({
      controlPlane: world.controlPlane,
      broker: mqtt && world.aedes,
      replicaOfUser: (user) => accounts.get(user),
    });
    return new Cluster({ world, recorder, tunnels, accounts, service });
  }

  /** Over HTTP only. */
  get service(): ServiceProxy {
    if (!this.#service) throw new Error('there is a Service over HTTP only');
    return this.#service;
  }

  get hasService(): boolean {
    return this.#service !== undefined;
  }

  get replicas(): readonly Replica[] {
    return this.#replicas;
  }

  get living(): Replica[] {
    return this.#replicas.filter(({ isAlive }) => isAlive);
  }

  replica(index: number): Replica {
    const replica = this.#replicas[index];
    if (!replica) throw new Error(`no replica ${index}`);
    return replica;
  }

  /** One more, not started; `name`: of its account, where that is not its CLIENT_ID. */
  async add(clientId: string, name = clientId): Promise<Replica> {
    const { world } = this;
    const account = `module-controller-${name}`;
    await createAccount(world.controlPlane, account);
    this.#accounts.set(`system:serviceaccount:${MEMBER_NAMESPACE}:${account}`, clientId);
    const brokerPort = this.tunnels.includes('mqtt') ? world.broker.port : undefined;
    const replica = await Replica.create({ world, clientId, account, brokerPort, overHttp: this.hasService });
    this.#replicas.push(replica);
    this.#service?.add(replica.httpPort);
    return replica;
  }

  /** It is ended, and nothing more is known of it. */
  async remove(replica: Replica, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (replica.isAlive) await replica.end(signal);
    this.#service?.remove(replica.httpPort);
    this.#replicas.splice(this.#replicas.indexOf(replica), 1);
    await replica.stop();
  }

  async startFleet({ over = this.tunnels[0], ...options }: ClusterFleetOptions): Promise<Fleet> {
    // Without it a second version over MQTT is installed twice: it cannot be switched to (docs/modules.md, "Two versions on one base").
    const activateNewModule = over === 'mqtt';
    const target = over === 'http' ? { brokerUrl: undefined, controllerUrl: this.service.url } : {};
    const fleet = await this.world.startFleet({ activateNewModule, ...options, ...target, announce: false });
    this.recorder.follow(fleet, { overHttp: over === 'http' });
    this.fleets.push(fleet);
    if (options.announce ?? true) fleet.announce();
    return fleet;
  }

  /** `count` bases in all, spread over the tunnels; the tunnel is a part of their names where there are two. */
  async startFleets({ count, identityPrefix = 'base-', ...options }: { count: number } & Partial<FleetOptions>) {
    const share = Math.ceil(count / this.tunnels.length);
    return Promise.all(
      this.tunnels.map((over, index) =>
        this.startFleet({
          ...options,
          over,
          count: Math.min(share, count - index * share),
          identityPrefix: this.tunnels.length === 1 ? identityPrefix : `${over}-${identityPrefix}`,
        }),
      ),
    );
  }

  /** Bases by holder, as the leases say. */
  holdings(): Map<string, string[]> {
    const leases = [...this.recorder.leases().values()];
    const byHolder = Map.groupBy(leases, ({ holder }) => holder);
    return new Map([...byHolder].map(([holder, held]) => [holder, held.map(({ base }) => base).sort()]));
  }

  basesOf(replica: Replica): string[] {
    return this.holdings().get(replica.clientId) ?? [];
  }

  /** Identities. */
  basesOver(tunnel: TunnelKind): string[] {
    return this.fleets.flatMap(({ bases }) =>
      bases.filter((base) => base.tunnel === tunnel).map(({ identity }) => identity),
    );
  }

  /** Ends every fault: wires whole, everybody awake, the dead started again. */
  async heal(): Promise<void> {
    this.#service?.pin();
    for (const name of ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const) {
      const component = this.world.controlPlane.component(name);
      if (component.pid === undefined) await component.start();
      else component.kill('SIGCONT');
    }
    for (const replica of this.#replicas) {
      this.#service?.add(replica.httpPort);
      await replica.wires('pass');
      if (!replica.isAlive) await replica.start();
      replica.thaw();
    }
  }

  async stop(): Promise<void> {
    await ended('the recorder', this.recorder.stop());
    await this.world.stop();
    await ended('the wires of the replicas', Promise.all(this.#replicas.map((replica) => replica.stop())));
  }
}
