import { projectLease } from '../../src/lease/lease.ts';
import { NodeLeaseController } from '../../src/lease/node-lease-controller.ts';
import { silentLogger } from '../../src/logger.ts';
import { createMetrics } from '../../src/metrics.ts';
import { PodController } from '../../src/pod/pod-controller.ts';
import { projectPod, type VPod } from '../../src/pod/vpod.ts';
import type { BaseInfo } from '../../src/tunnel/base.ts';
import type { ModuleKey, ModuleState } from '../../src/tunnel/module.ts';
import type { Envelope } from '../../src/tunnel/tunnel.ts';
import { Tunnels } from '../../src/tunnel/tunnels.ts';
import { BaseInquirer } from '../../src/vnode/base-inquirer.ts';
import { LivenessController } from '../../src/vnode/liveness-controller.ts';
import { NodeController } from '../../src/vnode/node-controller.ts';
import { VNodeController } from '../../src/vnode/vnode-controller.ts';
import { projectNode } from '../../src/vnode/vnode-object.ts';
import { VNodeStore } from '../../src/vnode/vnode-store.ts';
import { idOf, LEDGER_OPTIONS, makeBase, makeHealth, makePodObject, makeResult, type PodOptions } from './builders.ts';
import { FakeApi } from './fake-api.ts';
import { FakeClock, settle } from './fake-clock.ts';
import { FakeInformer } from './fake-informer.ts';
import { FakeTunnel } from './fake-tunnel.ts';

/** A base of the rig: it beats each 10 s, and answers at once what it is asked, unless told otherwise. */
export interface RigBase {
  info: BaseInfo;
  isSilent: boolean;
  answersLists: boolean;
  answersHealth: boolean;
  /** Whether commands are executed and answered; without, a test answers by hand. */
  answersCommands: boolean;
  health: ReturnType<typeof makeHealth>;
  readonly modules: Map<ModuleKey, ModuleState>;
}

/** Time that can also pass while the process does not run: all timers are that late then. */
class RigClock extends FakeClock {
  #skippedMs = 0;

  override now(): number {
    return super.now() + this.#skippedMs;
  }

  override wallTime(): Date {
    return new Date(super.wallTime().getTime() + this.#skippedMs);
  }

  skip(ms: number): void {
    this.#skippedMs += ms;
  }
}

export interface CoreRigOptions {
  readonly isCluster?: boolean;
}

/** The whole core with an API server, a tunnel, bases and time of the test's making. */
export class CoreRig {
  readonly clock = new RigClock();
  readonly metrics = createMetrics();
  readonly tunnel = new FakeTunnel();
  readonly store = new VNodeStore();
  readonly bases = new Map<string, RigBase>();
  /** `Warning UnroutableAddress vnode.b1`. */
  readonly events: string[] = [];
  readonly eventTexts: string[] = [];
  readonly api: FakeApi;
  readonly nodeInformer = new FakeInformer(this.clock, projectNode);
  readonly podInformer = new FakeInformer(this.clock, projectPod, { node: (pod: VPod) => pod.nodeName });
  readonly leaseInformer = new FakeInformer(this.clock, projectLease);
  readonly leases: NodeLeaseController;
  readonly nodes: NodeController;
  readonly pods: PodController;
  readonly vnodes: VNodeController;
  readonly liveness: LivenessController;
  readonly #abort = new AbortController();
  readonly #running: Promise<unknown>[] = [];

  constructor({ isCluster = false }: CoreRigOptions = {}) {
    const informers = { node: this.nodeInformer, pod: this.podInformer, lease: this.leaseInformer };
    this.api = new FakeApi((kind, event) => informers[kind].deliver(event));
    const { api, clock, metrics, store } = this;
    const shared = { clock, logger: silentLogger, metrics };
    const tunnels = new Tunnels([this.tunnel]);
    const inquirer = new BaseInquirer({ tunnels, clock, logger: silentLogger });
    const recorder = {
      event: (subject: { name: string }, type: string, reason: string, message: string): void => {
        this.events.push(`${type} ${reason} ${subject.name}`);
        this.eventTexts.push(message);
      },
    };
    const enqueueNode = (name: string): void => this.nodes.enqueue(name);
    const enqueuePods = (name: string): void => this.pods.enqueue(name);
    this.leases = new NodeLeaseController({
      api,
      informer: this.leaseInformer,
      env: 'dev',
      holder: 'me',
      isCluster,
      nodeUidOf: (name) => this.nodes.uidOf(name),
      onHeld: (name) => {
        enqueueNode(name);
        enqueuePods(name);
      },
      ...shared,
    });
    this.nodes = new NodeController({
      api,
      informer: this.nodeInformer,
      podInformer: this.podInformer,
      store,
      leases: this.leases,
      recorder,
      env: 'dev',
      version: '0.1.0',
      isCluster,
      workers: 8,
      ...shared,
    });
    this.pods = new PodController({
      api,
      informer: this.podInformer,
      baseOf: (name) => this.vnodes.managedBase(name),
      tunnels,
      recorder,
      workers: 8,
      ...shared,
    });
    this.vnodes = new VNodeController({
      store,
      nodeInformer: this.nodeInformer,
      leases: this.leases,
      inquirer,
      recorder,
      enqueueNode,
      enqueuePods,
      ledger: LEDGER_OPTIONS,
      ...shared,
    });
    this.liveness = new LivenessController({ store, tunnels, inquirer, enqueueNode, enqueuePods, ...shared });
    this.tunnel.onSent = (question, identity, key) => this.#receive(question, identity, key);
  }

  /** Starts all parts; what is in the API by then is what an earlier process left. */
  async start(): Promise<void> {
    const { signal } = this.#abort;
    for (const part of [this.leases, this.nodes, this.pods, this.liveness]) this.#running.push(part.run(signal));
    const beat = (): void => {
      for (const identity of this.bases.keys()) this.heartbeat(identity);
      this.clock.setTimer(beat, 10_000);
    };
    this.clock.setTimer(beat, 10_000);
    await settle();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await Promise.all(this.#running);
  }

  /** A base that exists and is not heard of yet. */
  base(identity: string, more: Partial<RigBase> = {}): RigBase {
    const base: RigBase = {
      info: makeBase(identity, { ip: `198.51.100.${this.bases.size + 1}` }),
      isSilent: false,
      answersLists: true,
      answersHealth: true,
      answersCommands: true,
      health: makeHealth(),
      modules: new Map(),
      ...more,
    };
    this.bases.set(identity, base);
    return base;
  }

  /** A base that is found, with a Node and a Lease. */
  async foundBase(identity: string, more: Partial<RigBase> = {}): Promise<RigBase> {
    const base = this.base(identity, more);
    this.heartbeat(identity);
    await this.pass(1_000);
    return base;
  }

  heartbeat(identity: string): void {
    const base = this.bases.get(identity);
    if (base && !base.isSilent && this.tunnel.isLinkUp) this.vnodes.onHeartbeat(this.envelope(identity), base.info);
  }

  list(identity: string): void {
    const modules = [...(this.bases.get(identity)?.modules ?? [])].map(([key, state]) => ({ ...idOf(key), state }));
    this.vnodes.onModuleList(this.envelope(identity), modules);
  }

  /** The base process is started anew under its identity, with nothing in it. */
  restart(identity: string): void {
    this.bases.get(identity)?.modules.clear();
    this.vnodes.onBaselineQuery(this.envelope(identity));
  }

  linkDown(): void {
    this.tunnel.isLinkUp = false;
    this.vnodes.onLinkDown(this.tunnel.name);
  }

  linkUp(): void {
    this.tunnel.isLinkUp = true;
    this.vnodes.onLinkUp(this.tunnel.name);
  }

  envelope(identity: string): Envelope {
    return { tunnel: this.tunnel.name, identity, publishedAt: 1_000_000 + this.clock.now() };
  }

  addPod(options: PodOptions = {}): void {
    this.api.put('pod', makePodObject(options));
  }

  /** As `kubectl delete pod`: the Pod stays until somebody confirms. */
  deletePod(name: string): void {
    const pod = this.api.pod(name);
    if (pod === undefined) throw new Error(`no pod ${name}`);
    this.api.put('pod', { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advanceAsync(ms);
    await settle();
  }

  /** `Running True`, `Pending False BaseUnreachable`: phase and Ready of a Pod. */
  podState(name: string): string | undefined {
    const status = this.api.pod(name)?.status;
    if (status === undefined) return undefined;
    const ready = status.conditions?.find(({ type }) => type === 'Ready');
    return [status.phase, ready?.status, ready?.reason].filter(Boolean).join(' ');
  }

  container(name: string, index = 0) {
    return this.api.pod(name)?.status?.containerStatuses?.[index];
  }

  condition(node: string, type: string): string | undefined {
    const found = this.api.node(node)?.status?.conditions?.find((condition) => condition.type === type);
    return found && `${found.status} ${found.reason}`;
  }

  /** Answers come in turn, not within the call that asks. */
  #receive(question: string, identity: string, key: ModuleKey): void {
    const base = this.bases.get(identity);
    if (base === undefined || base.isSilent) return;
    queueMicrotask(() => {
      if (question === 'list' && base.answersLists) this.list(identity);
      if (question === 'health' && base.answersHealth) this.vnodes.onHealth(this.envelope(identity), base.health);
      if (question === 'install' && base.answersCommands) {
        base.modules.set(key, 'ACTIVATED');
        this.vnodes.onOperationResult(this.envelope(identity), makeResult('install', key));
      }
      if (question === 'uninstall' && base.answersCommands) {
        base.modules.delete(key);
        this.vnodes.onOperationResult(this.envelope(identity), makeResult('uninstall', key));
      }
    });
  }
}
