import { createCore, createKnownBases } from '../../src/assembly/core.ts';
import { projectNode } from '../../src/kinds/vnode-object.ts';
import { secondsTime } from '../../src/kube/micro-time.ts';
import type { ConfigMapObject } from '../../src/kube/objects.ts';
import { projectLease } from '../../src/lease/lease.ts';
import { SoleMembership } from '../../src/lease/membership.ts';
import type { NodeLeaseController } from '../../src/lease/node-lease-controller.ts';
import { type Logger, silentLogger } from '../../src/logger.ts';
import { createMetrics } from '../../src/metrics.ts';
import { encodeEntry, shardOf } from '../../src/pod/contact-record.ts';
import { recordNameOf } from '../../src/pod/contact-store.ts';
import { ownerOfNamespaces } from '../../src/pod/name-owners.ts';
import type { PodController } from '../../src/pod/pod-controller.ts';
import type { UnknownModulePolicy } from '../../src/pod/unknown-modules.ts';
import { projectPod, type VPod } from '../../src/pod/vpod.ts';
import type { BaseHealth, BaseInfo } from '../../src/tunnel/base.ts';
import type { ModuleCommand, ModuleKey } from '../../src/tunnel/module.ts';
import type { Envelope, TunnelName } from '../../src/tunnel/tunnel.ts';
import { Tunnels } from '../../src/tunnel/tunnels.ts';
import type { BaseCandidates } from '../../src/vnode/base-candidates.ts';
import type { LivenessController } from '../../src/vnode/liveness-controller.ts';
import type { NewBaseLimits } from '../../src/vnode/new-bases.ts';
import type { NodeController } from '../../src/vnode/node-controller.ts';
import type { VNodeStore } from '../../src/vnode/vnode.ts';
import type { VNodeController } from '../../src/vnode/vnode-controller.ts';
import { idOf, LEDGER_OPTIONS, makeBase, makeHealth, makePodObject, makeResult, type PodOptions } from './builders.ts';
import { FakeApi } from './fake-api.ts';
import { FakeClock, settle } from './fake-clock.ts';
import { FakeInformer } from './fake-informer.ts';
import { FakeMembership } from './fake-membership.ts';
import { FakeTunnel } from './fake-tunnel.ts';
import { execute, type RigBase } from './rig-base.ts';

/** A monotonic clock starts anywhere: with zero, a difference would look like a sum. */
const STARTED_AT = 3_600_000;

/** Time that can also pass while the process does not run: all timers are that late then. */
class RigClock extends FakeClock {
  #skippedMs = 0;

  override now(): number {
    return STARTED_AT + super.now() + this.#skippedMs;
  }

  override wallTime(): Date {
    return new Date(super.wallTime().getTime() + this.#skippedMs);
  }

  override bootTime(): number {
    return super.bootTime() + this.#skippedMs;
  }

  skip(ms: number): void {
    this.#skippedMs += ms;
  }
}

const BEAT_MS = { mqtt_tunnel_provider: 10_000, http_tunnel_provider: 12_000 };

/** Commands and answers go without time passing: a livelock would never end by itself. */
const MAX_COMMANDS = 500;

export interface CoreRigOptions {
  readonly isCluster?: boolean;
  readonly unknownModulePolicy?: UnknownModulePolicy;
  /** Default 0: a module is uninstalled at once. */
  readonly preStopSleepSeconds?: number;
  readonly namesBasePods?: boolean;
  /** Default: none. */
  readonly sharedNamespaces?: readonly (readonly string[])[];
  /** Default: one that says nothing. */
  readonly logger?: Logger;
  /** Default 500. */
  readonly maxCommands?: number;
  readonly newBases?: Partial<NewBaseLimits>;
}

/** The whole core with an API server, a tunnel, bases and time of the test's making. */
export class CoreRig {
  readonly clock = new RigClock();
  readonly metrics = createMetrics();
  readonly tunnel = new FakeTunnel();
  readonly http = new FakeTunnel('http_tunnel_provider');
  readonly store: VNodeStore;
  readonly bases = new Map<string, RigBase>();
  /** `Warning UnroutableAddress vnode.b1`. */
  readonly events: string[] = [];
  readonly eventTexts: string[] = [];
  readonly api: FakeApi;
  readonly nodeInformer = new FakeInformer(this.clock, projectNode);
  readonly podInformer = new FakeInformer(this.clock, projectPod, { node: (pod: VPod) => pod.nodeName });
  readonly leaseInformer = new FakeInformer(this.clock, (lease) => projectLease(lease, 'dev'));
  /** Of a rig that is one of several replicas. */
  readonly membership = new FakeMembership(this.clock);
  isLeaving = false;
  readonly leases: NodeLeaseController;
  /** Of the API server. */
  readonly traffic = { isCalm: true };
  readonly nodes: NodeController;
  readonly pods: PodController;
  readonly vnodes: VNodeController;
  readonly liveness: LivenessController;
  readonly candidates: BaseCandidates;
  /** Whether a command may leave for a base. */
  readonly isOurs: (identity: string) => boolean;
  readonly #isCluster: boolean;
  readonly #maxCommands: number;
  #commandCount = 0;
  readonly #abort = new AbortController();
  readonly #running: Promise<unknown>[] = [];

  constructor(options: CoreRigOptions = {}) {
    const {
      isCluster = false,
      unknownModulePolicy = 'remove',
      logger = silentLogger,
      sharedNamespaces = [],
      newBases,
    } = options;
    this.#isCluster = isCluster;
    this.#maxCommands = options.maxCommands ?? MAX_COMMANDS;
    const informers = { node: this.nodeInformer, pod: this.podInformer, lease: this.leaseInformer };
    this.api = new FakeApi((kind, event) => informers[kind].deliver(event));
    const bases = createKnownBases({
      api: this.api,
      informers: { nodes: this.nodeInformer, pods: this.podInformer, leases: this.leaseInformer },
      membership: isCluster ? this.membership : new SoleMembership('me'),
      env: 'dev',
      holder: 'me',
      isCluster,
      maxLevel: 3,
      renewIntervalMs: 10_000,
      onRolledBack: () => this.podInformer.wasRolledBack(),
      clock: this.clock,
      logger,
      metrics: this.metrics,
    });
    this.store = bases.store;
    this.leases = bases.leases;
    this.isOurs = bases.isOurs;
    const core = createCore(bases, {
      tunnels: new Tunnels([this.tunnel, this.http]),
      recorder: {
        event: ({ name }, type, reason, message) => {
          this.events.push(`${type} ${reason} ${name}`);
          this.eventTexts.push(message);
        },
      },
      traffic: this.traffic,
      kubeletVersion: () => 'v1.35.4-koupleless-0.1.0',
      workers: 8,
      ledger: LEDGER_OPTIONS,
      newBases: { maxVNodes: 5_000, newNodesPerMinute: 3_000, newBasesPerMinute: 60, ...newBases },
      unknownModulePolicy,
      preStopSleepSeconds: options.preStopSleepSeconds ?? 0,
      namesBasePods: options.namesBasePods ?? false,
      ownerOf: ownerOfNamespaces(sharedNamespaces),
      isLeaving: () => this.isLeaving,
      onLinkChange: () => {},
    });
    this.nodes = core.nodes;
    this.pods = core.pods;
    this.vnodes = core.vnodes;
    this.liveness = core.liveness;
    this.candidates = core.candidates;
    for (const tunnel of [this.tunnel, this.http]) {
      tunnel.upAt = this.clock.now();
      tunnel.onSent = (question, identity, key) => this.#receive(tunnel, question, identity, key);
    }
  }

  /** Starts all parts; what is in the API by then is what an earlier process left. */
  async start(): Promise<void> {
    const { signal } = this.#abort;
    for (const part of [this.leases, this.nodes, this.pods, this.liveness]) this.#running.push(part.run(signal));
    for (const { name } of [this.tunnel, this.http]) this.#beatOver(name);
    if (this.#isCluster) this.#renewMembership();
    await settle();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await Promise.all(this.#running);
  }

  /** Ends this process. Another one has then started, and has found nothing but this Node. */
  async succeededBy(nodeName: string): Promise<CoreRig> {
    const node = this.api.node(nodeName);
    if (node === undefined) throw new Error(`no Node ${nodeName}`);
    await this.stop();
    const next = new CoreRig();
    next.api.put('node', node);
    await next.start();
    return next;
  }

  /** A base that exists and is not heard of yet. */
  base(identity: string, more: Partial<RigBase> = {}): RigBase {
    const base: RigBase = {
      info: makeBase(identity, { ip: `198.51.100.${this.bases.size + 1}` }),
      isSilent: false,
      answersLists: true,
      answersHealth: true,
      answersCommands: true,
      tunnel: this.tunnel.name,
      activatesNew: false,
      switches: 'done',
      health: makeHealth(),
      startedAt: this.clock.now(),
      modules: new Map(),
      ...more,
    };
    this.bases.set(identity, base);
    return base;
  }

  /** This ENV met the base before: an earlier process recorded what it keeps. Before the rig starts. */
  remember(identity: string, kept: readonly ModuleKey[] = []): void {
    const name = `${recordNameOf('dev')}-${shardOf(identity)}`;
    const data = { ...this.api.configMaps()[name], [identity]: encodeEntry(new Set(kept), '2025-12-24T00:00:00.000Z') };
    this.api.put('configmap', { metadata: { name }, data } as ConfigMapObject);
  }

  /** What the record says of a base; undefined for one that was never met. */
  recordOf(identity: string): unknown {
    const maps = Object.values(this.api.configMaps());
    const text = maps.map((data) => data[identity]).find((value) => value !== undefined);
    return text === undefined ? undefined : (JSON.parse(text) as { kept: unknown }).kept;
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
    if (base === undefined || base.isSilent) return;
    const { sender } = base;
    const envelope = { ...this.envelope(identity), ...(sender === undefined ? {} : { sender }) };
    if (this.#tunnelOf(base).isLinkUp) this.vnodes.onHeartbeat(envelope, base.info);
  }

  list(identity: string, askedAt?: number): void {
    const modules = [...(this.bases.get(identity)?.modules ?? [])].map(([key, state]) => ({ ...idOf(key), state }));
    this.vnodes.onModuleList(this.envelope(identity, askedAt), modules);
  }

  /** The base answers a command with a failure. */
  fail(identity: string, command: ModuleCommand, key: ModuleKey, message: string): void {
    const result = makeResult(command, key, { outcome: 'failed', message });
    this.vnodes.onOperationResult(this.envelope(identity), result);
  }

  /** The base executes a command, and answers that it is done. */
  answer(identity: string, command: ModuleCommand, key: ModuleKey): void {
    const base = this.bases.get(identity);
    if (base === undefined) throw new Error(`no base ${identity}`);
    const spec = this.#tunnelOf(base).specs.get(key) ?? idOf(key);
    this.vnodes.onOperationResult(this.envelope(identity), execute(base, command, spec));
  }

  /** Somebody who calls himself `identity` is heard: over MQTT, or over HTTP at an address. */
  claim(identity: string, tunnel: TunnelName, more: Partial<BaseInfo> = {}): void {
    this.vnodes.onHeartbeat({ tunnel, identity, publishedAt: undefined }, makeBase(identity, more));
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
    this.tunnel.upAt = this.clock.now();
    this.vnodes.onLinkUp(this.tunnel.name);
  }

  /** Over MQTT a message has the base's time, over HTTP an answer has the time of its question. */
  envelope(identity: string, askedAt?: number): Envelope {
    const tunnel = this.bases.get(identity)?.tunnel ?? this.tunnel.name;
    if (tunnel === this.tunnel.name) return { tunnel, identity, publishedAt: 1_000_000 + this.clock.now() };
    if (askedAt === undefined) return { tunnel, identity, publishedAt: undefined };
    const { sender, info } = this.bases.get(identity) ?? {};
    const named = sender === undefined || info === undefined ? {} : { answeredBy: identity, place: info };
    return { tunnel, identity, publishedAt: undefined, askedAt, ...named };
  }

  addPod(options: PodOptions = {}): void {
    this.api.put('pod', makePodObject(options));
  }

  /** As `kubectl delete pod`: the Pod stays until somebody confirms. */
  deletePod(name: string, graceSeconds = 30): void {
    const pod = this.api.pod(name);
    if (pod === undefined) throw new Error(`no pod ${name}`);
    const endsAt = new Date(this.clock.wallTime().getTime() + 1000 * graceSeconds);
    const deletion = { deletionTimestamp: secondsTime(endsAt), deletionGracePeriodSeconds: graceSeconds };
    this.api.put('pod', { ...pod, metadata: { ...pod.metadata, ...deletion } });
  }

  /** How often a base was queued because of its Pods. */
  async podAdds(): Promise<number> {
    const { values } = await this.metrics.queueAdds.get();
    return values.find(({ labels }) => labels.name === 'pods')?.value ?? 0;
  }

  /** What bases were told to do since the last call of it, over whatever tunnel. */
  commands(): string[] {
    const isCommand = (line: string): boolean => !/^(list|health) /.test(line);
    return [...this.tunnel.take(), ...this.http.take()].filter(isCommand);
  }

  /** `biz1:1 ACTIVATED` of each module that the base has. */
  modulesOf(identity: string): string[] {
    return [...(this.bases.get(identity)?.modules ?? [])].map(([key, state]) => `${key} ${state}`).sort();
  }

  /** The waiting reason of a Pod's first container. */
  waiting(name: string): string | undefined {
    return this.container(name)?.state?.waiting?.reason;
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

  /** As often as the real one tells that more is proven. */
  #renewMembership(): void {
    this.clock.setTimer(() => {
      if (this.membership.valid) this.leases.reconsider();
      this.#renewMembership();
    }, 2_000);
  }

  #beatOver(tunnel: TunnelName): void {
    this.clock.setTimer(() => {
      for (const [identity, base] of this.bases) if (base.tunnel === tunnel) this.heartbeat(identity);
      this.#beatOver(tunnel);
    }, BEAT_MS[tunnel]);
  }

  /** Over HTTP its age tells of a restart, so there it has one. */
  #healthOf(base: RigBase): BaseHealth {
    const { runTimeSeconds } = base.health;
    if (base.tunnel !== this.http.name || runTimeSeconds === undefined) return base.health;
    return { ...base.health, runTimeSeconds: runTimeSeconds + Math.floor((this.clock.now() - base.startedAt) / 1000) };
  }

  #tunnelOf({ tunnel }: RigBase): FakeTunnel {
    return tunnel === this.http.name ? this.http : this.tunnel;
  }

  /** Answers come in turn, not within the call that asks. */
  #receive(tunnel: FakeTunnel, question: Question, identity: string, key: ModuleKey): void {
    const base = this.bases.get(identity);
    if (base === undefined || base.isSilent || base.tunnel !== tunnel.name) return;
    const askedAt = this.clock.now();
    queueMicrotask(() => {
      if (question === 'list') {
        if (base.answersLists) this.list(identity, askedAt);
      } else if (question === 'health') {
        if (base.answersHealth) this.vnodes.onHealth(this.envelope(identity, askedAt), this.#healthOf(base));
      } else if (base.answersCommands && ++this.#commandCount <= this.#maxCommands) {
        const result = execute(base, question, tunnel.specs.get(key) ?? idOf(key));
        this.vnodes.onOperationResult(this.envelope(identity, askedAt), result);
      }
    });
  }
}

type Question = Parameters<FakeTunnel['onSent']>[0];
