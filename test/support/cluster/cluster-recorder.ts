import type { Fleet } from '../../../samples/base-simulator/fleet.ts';
import type { CommandRecord } from '../../../samples/base-simulator/history.ts';
import type { Broker } from '../../../samples/broker/broker.ts';
import type { RecordedPublish } from '../../../samples/broker/recorder.ts';
import type { ControlPlane } from '../../../samples/control-plane/control-plane.ts';
import { NODE_LEASE_NAMESPACE } from '../../../src/labels.ts';
import { AuditedRequests, isMemberLease, renewalsOf, statusWritesOf } from './audited-requests.ts';
import type { ClusterFacts, CommandFact, LeaseFact, NodeFact, NoteFact, PodFact } from './facts.ts';
import {
  commandFactOf,
  commandOf,
  leaseFactOf,
  millisecondsOf,
  nodeFactOf,
  operationFactOf,
  podFactOf,
} from './facts-of.ts';
import { LoopWatch } from './loop-watch.ts';
import { ObjectRecorder, type Seen } from './object-recorder.ts';

export interface RecorderOptions {
  readonly controlPlane: ControlPlane;
  /** Commands over MQTT are noted there. */
  readonly broker: Broker | undefined;
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

  /** Notes the commands that its bases get from now on. Over HTTP each base knows who sent one. */
  follow(fleet: Fleet, { overHttp }: { overHttp: boolean }): void {
    this.#fleets.push(fleet);
    if (!overHttp) return;
    const noted = new WeakSet<CommandRecord>();
    fleet.history.subscribe((record) => {
      if (noted.has(record)) return;
      noted.add(record);
      const replica = replicaOfAgent((record as { userAgent?: string }).userAgent);
      if (replica !== undefined) this.#commands.push(commandOf(replica, record));
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

  /** Commands that came in after that time; wall clock, ms. */
  commandsSince(at: number): readonly CommandFact[] {
    return this.#commands.filter((command) => command.at > at);
  }

  /** What a service account has written to node leases, Nodes and Pods, as `patch leases name`. Events change nothing. */
  async writesOf(account: string): Promise<string[]> {
    const requests = await this.#audit.read();
    return requests
      .filter(({ user }) => user.endsWith(`:${account}`))
      .filter(({ name, resource }) => !isMemberLease(name) && resource !== 'events')
      .map(({ verb, resource, name }) => `${verb} ${resource} ${name}`);
  }

  async facts(): Promise<ClusterFacts> {
    const { replicaOfUser } = this.#options;
    const requests = await this.#audit.read();
    return {
      leases: this.#leases,
      renewals: [...this.#renewals, ...renewalsOf(requests, replicaOfUser)],
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
    if (isMemberLease(name)) {
      this.#renewals.push({ replica: holder, at: millisecondsOf(object.spec?.renewTime) });
      return;
    }
    const lease = namespace === NODE_LEASE_NAMESPACE ? leaseFactOf({ object, at, isGone }) : undefined;
    if (lease === undefined) return;
    if (this.#holders.get(lease.base) !== holder) this.#movedAt = at;
    this.#holders.set(lease.base, holder);
    this.#leases.push(lease);
  }

  #notePod(pod: PodFact): void {
    this.#pods.push(pod);
    if (pod.isGone) this.#livePods.delete(pod.uid);
    else this.#livePods.set(pod.uid, pod);
  }

  #noteMessage(message: RecordedPublish): undefined {
    const command = commandFactOf(message);
    if (command !== undefined) this.#commands.push(command);
  }
}

/** `module-controller/0.1.0 (controller-0)` */
export function replicaOfAgent(userAgent: string | undefined): string | undefined {
  return /^module-controller\/\S+ \((.+)\)$/.exec(userAgent ?? '')?.[1];
}
