import type { Fleet, FleetOptions } from '../../../samples/base-simulator/fleet.ts';
import { startBroker } from '../../../samples/broker/broker.ts';
import { MANY_PODS } from '../cluster-settings.ts';
import { ended } from '../ended.ts';
import { MqttTransport, needExternalAddress, type Transport } from '../transport.ts';
import { startWorld, type World } from '../world.ts';
import { createAccount } from './accounts.ts';
import { ClusterRecorder } from './cluster-recorder.ts';
import { MEMBER_NAMESPACE, Replica } from './replica.ts';
import { ServiceProxy, type ServiceProxyOptions } from './service-proxy.ts';

export type TunnelKind = 'mqtt' | 'http';

/** Bases post to one address; whoever of the replicas takes it. */
class ServiceTransport implements Transport {
  readonly service: ServiceProxy;

  constructor(service: ServiceProxy) {
    this.service = service;
  }

  get broker(): never {
    throw new Error('there is no broker over HTTP');
  }

  async controllerEnv(): Promise<Record<string, string>> {
    return { ENABLE_HTTP_TUNNEL: 'true' };
  }

  async fleetTarget(): Promise<{ controllerUrl: string }> {
    needExternalAddress();
    return { controllerUrl: this.service.url };
  }

  stop(): Promise<void> {
    return this.service.stop();
  }
}

/** A world with several replicas that share its bases, each with wires that can be cut, and a recorder of it all. */
export class Cluster {
  readonly world: World;
  readonly recorder: ClusterRecorder;
  readonly tunnel: TunnelKind;
  readonly fleets: Fleet[] = [];
  /** Of its history; wall clock, ms. */
  checkedUntil = 0;
  readonly #replicas: Replica[] = [];
  readonly #accounts: Map<string, string>;
  readonly #service: ServiceProxy | undefined;

  private constructor(parts: {
    world: World;
    recorder: ClusterRecorder;
    tunnel: TunnelKind;
    accounts: Map<string, string>;
    service: ServiceProxy | undefined;
  }) {
    this.world = parts.world;
    this.recorder = parts.recorder;
    this.tunnel = parts.tunnel;
    this.#accounts = parts.accounts;
    this.#service = parts.service;
  }

  /** Without a replica. */
  static async start(tunnel: TunnelKind, serviceOptions: ServiceProxyOptions = {}): Promise<Cluster> {
    const service = tunnel === 'http' ? await ServiceProxy.start(serviceOptions) : undefined;
    const transport = service
      ? new ServiceTransport(service)
      : new MqttTransport(await startBroker({ record: false, recordPayloads: true }));
    const world = await startWorld({ transport, controlPlane: { ...MANY_PODS, auditLog: true } });
    const accounts = new Map<string, string>();
    const recorder = await ClusterRecorder.start({
      controlPlane: world.controlPlane,
      broker: service ? undefined : world.aedes,
      replicaOfUser: (user) => accounts.get(user),
    });
    return new Cluster({ world, recorder, tunnel, accounts, service });
  }

  /** Over HTTP only. */
  get service(): ServiceProxy {
    if (!this.#service) throw new Error('there is a Service over HTTP only');
    return this.#service;
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
    const account = `module-${name}`;
    await createAccount(world.controlPlane, account);
    this.#accounts.set(`system:serviceaccount:${MEMBER_NAMESPACE}:${account}`, clientId);
    const brokerPort = this.#service ? undefined : world.broker.port;
    const replica = await Replica.create({ world, clientId, account, brokerPort });
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

  async startFleet(options: Partial<FleetOptions>): Promise<Fleet> {
    // Without it a second version over MQTT is installed twice: it cannot be switched to (README, "Two versions").
    const activateNewModule = this.tunnel === 'mqtt';
    const fleet = await this.world.startFleet({ activateNewModule, ...options, announce: false });
    this.recorder.follow(fleet);
    this.fleets.push(fleet);
    if (options.announce ?? true) fleet.announce();
    return fleet;
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

  /** Ends every fault: wires whole, everybody awake, the dead started again. */
  async heal(): Promise<void> {
    this.#service?.pin(undefined);
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
