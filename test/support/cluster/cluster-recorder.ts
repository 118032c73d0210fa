import type { Fleet } from '../../../samples/base-simulator/fleet.ts';
import type { CommandRecord } from '../../../samples/base-simulator/history.ts';
import type { Broker } from '../../../samples/broker/broker.ts';
import type { RecordedPublish } from '../../../samples/broker/recorder.ts';
import type { KubeObject } from '../../../samples/control-plane/api-client.ts';
import type { ControlPlane } from '../../../samples/control-plane/control-plane.ts';
import { identityOf, NODE_LEASE_NAMESPACE } from '../../../src/labels.ts';
import { AuditedRequests, renewalsOf, statusWritesOf } from './audited-requests.ts';
import type { ClusterFacts, CommandFact, LeaseFact, NodeFact, NoteFact, OperationFact, PodFact } from './facts.ts';
import { LoopWatch } from './loop-watch.ts';
import { ObjectRecorder, type Seen } from './object-recorder.ts';

export interface RecorderOptions {
  readonly controlPlane: ControlPlane;
  /** Commands are noted there; undefined over HTTP, where bases note who sent them. */
  readonly broker: Broker | undefined;
  /** Namespace of the membership leases. */
  readonly memberNamespace: string;
  /** Which replica is behind a service account. */
  readonly replicaOfUser: (user: string) => string | undefined;
}

/** Notes everything that the checks of sharding are made on. */
export class ClusterRecorder {
  readonly #options: RecorderOptions;
  readonly #audit: AuditedRequests;
  readonly #loop = new LoopWatch();
  readonly #fleets: Fleet[] = [];
  readonly #leases: LeaseFact[] = [];
  /** When a version of a membership lease says that it was renewed. */
  readonly #renewals: { replica: string; at: number }[] = [];
  /** By base. */
  readonly #holders = new Map<string, string>();
  #movedAt = 0;
  readonly #commands: CommandFact[] = [];
  readonly #pods: PodFact[] = [];
  /** By UID; emptied as Pods go. */
  readonly #livePods = new Map<string, PodFact>();
  readonly #nodes: NodeFact[] = [];
  readonly #notes: NoteFact[] = [];
  readonly #watches: ObjectRecorder[] = [];

  private constructor(options: RecorderOptions) {
    this.#options = options;
    this.#audit = new AuditedRequests(options.controlPlane.directory);
  }

  static async start(options: RecorderOptions): Promise<ClusterRecorder> {
    const recorder = new ClusterRecorder(options);
    const { admin } = options.controlPlane;
    const kinds: [string, (seen: Seen) => void][] = [
      ['/apis/coordination.k8s.io/v1/leases', (seen) => recorder.#noteLease(seen)],
      ['/api/v1/pods', (seen) => recorder.#notePod(podFactOf(seen))],
      ['/api/v1/nodes', (seen) => recorder.#nodes.push(nodeFactOf(seen))],
    ];
    for (const [path, onSeen] of kinds) recorder.#watches.push(await ObjectRecorder.start(admin, path, onSeen));
    options.broker?.intercept((message) => recorder.#noteMessage(message));
    return recorder;
  }

  /** What its bases are told to do is noted from now on. */
  follow(fleet: Fleet): void {
    this.#fleets.push(fleet);
    const noted = new WeakSet<CommandRecord>();
    fleet.history.subscribe((record) => {
      if (this.#options.broker || noted.has(record)) return;
      noted.add(record);
      const replica = replicaOfAgent((record as { userAgent?: string }).userAgent);
      if (replica !== undefined) this.#commands.push(this.#commandOf(replica, record));
    });
  }

  /** Stands on the timeline of a report. */
  note(text: string): void {
    this.#notes.push({ text, at: Date.now() });
  }

  /** The newest version of each node lease that exists, by base. */
  leases(): Map<string, LeaseFact> {
    const newest = new Map(this.#leases.map((lease) => [lease.base, lease]));
    return new Map([...newest].filter(([, { isGone }]) => !isGone));
  }

  /** The newest version of each Pod that exists. */
  livePods(): PodFact[] {
    return [...this.#livePods.values()];
  }

  /** When a lease was last seen to change its holder; wall clock, ms. */
  get movedAt(): number {
    return this.#movedAt;
  }

  /** Lease versions in all: a mark for `leasesSince`. */
  get leaseCount(): number {
    return this.#leases.length;
  }

  leasesSince(mark: number): readonly LeaseFact[] {
    return this.#leases.slice(mark);
  }

  /** What a service account has written to node leases, Nodes and Pods, as `patch leases name`. Events change nothing. */
  async writesOf(account: string): Promise<string[]> {
    const requests = await this.#audit.read();
    return requests
      .filter(({ user }) => user.endsWith(`:${account}`))
      .filter(({ namespace, resource }) => namespace !== this.#options.memberNamespace && resource !== 'events')
      .map(({ verb, resource, name }) => `${verb} ${resource} ${name}`);
  }

  async facts(): Promise<ClusterFacts> {
    const { replicaOfUser } = this.#options;
    const requests = await this.#audit.read();
    return {
      leases: this.#leases,
      renewals: [...this.#renewals, ...renewalsOf(requests, replicaOfUser, this.#options.memberNamespace)],
      commands: this.#commands,
      operations: this.#fleets.flatMap(({ history }) => history.records().map(operationFactOf)),
      pods: this.#pods,
      nodes: this.#nodes,
      writes: statusWritesOf(requests, replicaOfUser),
      restarts: [],
      pauses: this.#loop.pauses,
      notes: this.#notes,
    };
  }

  /** What was noted since that time. */
  notesSince(at: number): string[] {
    return this.#notes.filter((note) => note.at >= at).map(({ text }) => text);
  }

  /** How long the test itself stood still since that time, in ms. */
  pausedMs(since: number): number {
    return this.#loop.pausedMs(since);
  }

  async stop(): Promise<void> {
    this.#loop.stop();
    this.#options.broker?.intercept(undefined);
    await Promise.all(this.#watches.map((watch) => watch.stop()));
    await this.#audit.close();
  }

  #noteLease({ object, at, isGone }: Seen): void {
    const { namespace, name } = object.metadata;
    const holder = object.spec?.holderIdentity ?? '';
    if (namespace === this.#options.memberNamespace) {
      this.#renewals.push({ replica: holder, at: millisecondsOf(object.spec?.renewTime) });
      return;
    }
    const base = identityOf(name);
    if (namespace !== NODE_LEASE_NAMESPACE || base === undefined) return;
    if (this.#holders.get(base) !== holder) this.#movedAt = at;
    this.#holders.set(base, holder);
    this.#leases.push({
      base,
      holder,
      acquiredAt: millisecondsOf(object.spec?.acquireTime),
      renewedAt: millisecondsOf(object.spec?.renewTime),
      transitions: object.spec?.leaseTransitions ?? 0,
      resourceVersion: object.metadata.resourceVersion,
      at,
      isGone,
    });
  }

  #notePod(pod: PodFact): void {
    this.#pods.push(pod);
    if (pod.isGone) this.#livePods.delete(pod.uid);
    else this.#livePods.set(pod.uid, pod);
  }

  #noteMessage({ clientId = '', topic, payload }: RecordedPublish): undefined {
    const [, replica] = /@@@(controller-.+)$/.exec(clientId) ?? [];
    const [, base, command] = /^koupleless_[^/]+\/([^/]+)\/([^/]+)$/.exec(topic) ?? [];
    if (replica === undefined || base === undefined || command === undefined) return;
    this.#commands.push(this.#commandOf(replica, { base, command, ...bizOf(payload) }));
  }

  #commandOf(replica: string, of: Pick<CommandRecord, 'base' | 'command' | 'bizName' | 'bizVersion'>): CommandFact {
    const { base, command } = of;
    return { replica, base, command, module: moduleOf(of), at: Date.now() };
  }
}

/** `module-controller/0.1.0 (controller-0)` */
export function replicaOfAgent(userAgent: string | undefined): string | undefined {
  return /^module-controller\/\S+ \((.+)\)$/.exec(userAgent ?? '')?.[1];
}

function moduleOf({ bizName, bizVersion }: { bizName?: string; bizVersion?: string }): string {
  return bizName === undefined ? '' : `${bizName}:${bizVersion}`;
}

function bizOf(payload: string | undefined): { bizName?: string; bizVersion?: string } {
  try {
    const { bizName, bizVersion } = JSON.parse(payload ?? '{}');
    return { ...(bizName && { bizName }), ...(bizVersion && { bizVersion }) };
  } catch {
    return {};
  }
}

function operationFactOf(record: CommandRecord): OperationFact {
  const { base, command, outcome, receivedAt, finishedAt, stateAtReceipt = '' } = record;
  return { base, command, module: moduleOf(record), stateAtReceipt, outcome, at: receivedAt, finishedAt };
}

/** `deletionTimestamp` is the end of the grace period, in whole seconds. */
function podFactOf({ object: { metadata, spec, status }, at, isGone }: Seen): PodFact {
  const asked = Date.parse(metadata.deletionTimestamp) - (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  return {
    name: metadata.name,
    uid: metadata.uid,
    nodeName: spec.nodeName ?? '',
    modules: spec.containers.map(moduleOfContainer),
    deletedAt: metadata.deletionTimestamp === undefined ? undefined : Math.min(at, asked),
    isOver: status?.phase === 'Succeeded' || status?.phase === 'Failed',
    ready: readyOf(status).status,
    at,
    isGone,
  };
}

function moduleOfContainer({ name, env = [] }: KubeObject): string {
  return `${name}:${env.find((entry: { name: string }) => entry.name === 'BIZ_VERSION')?.value}`;
}

function nodeFactOf({ object: { metadata, status }, at, isGone }: Seen): NodeFact {
  const { status: ready, reason } = readyOf(status);
  return { name: metadata.name, uid: metadata.uid, ready, reason, at, isGone };
}

function readyOf(status: KubeObject): { status: string; reason: string } {
  const ready = status?.conditions?.find(({ type }: { type: string }) => type === 'Ready');
  return { status: ready?.status ?? 'None', reason: ready?.reason ?? '' };
}

function millisecondsOf(time: string | undefined): number {
  return time === undefined ? 0 : Date.parse(time);
}
