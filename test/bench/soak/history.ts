import type { Fleet } from '../../../samples/base-simulator/fleet.ts';
import type { CommandRecord } from '../../../samples/base-simulator/history.ts';
import type { Broker } from '../../../samples/broker/broker.ts';
import type { ControlPlane } from '../../../samples/control-plane/control-plane.ts';
import { layoutOf } from '../../../samples/control-plane/layout.ts';
import { NODE_LEASE_NAMESPACE } from '../../../src/labels.ts';
import { isMemberLease, renewalsOf, statusWritesOf } from '../../support/cluster/audited-requests.ts';
import { commandsOfOthers, writesOfOthers } from '../../support/cluster/check-leaders.ts';
import { executedTwice, uninstalledThoughWanted } from '../../support/cluster/check-modules.ts';
import { type ClusterFacts, NO_FACTS, type PodFact } from '../../support/cluster/facts.ts';
import {
  commandFactOf,
  leaseFactOf,
  millisecondsOf,
  nodeFactOf,
  operationFactOf,
  podFactOf,
} from '../../support/cluster/facts-of.ts';
import { LoopWatch } from '../../support/cluster/loop-watch.ts';
import { ObjectRecorder, type Seen } from '../../support/cluster/object-recorder.ts';
import { reportOf } from '../../support/cluster/report.ts';
import type { Violation } from '../../support/cluster/violation.ts';
import { AuditTail } from './audit-tail.ts';
import { type Outage, unexplainedNodes } from './outages.ts';
import { judgedUntil, withoutPast } from './slices.ts';

export interface HistoryOptions {
  readonly controlPlane: ControlPlane;
  readonly broker: Broker;
  /** Of the replicas' accounts and of their membership leases. */
  readonly namespace: string;
  readonly replicaOfUser: (user: string) => string | undefined;
}

export interface Checked {
  readonly violations: readonly Violation[];
  /** With what happened around them; '' without a violation. */
  readonly report: string;
}

/** What a watch or the audit log may be behind. */
const LAG_MS = 5_000;
/** So long before what is judged next all is remembered. */
const REMEMBERED_MS = 90_000;
type Growing = { -readonly [Kind in keyof ClusterFacts]: ClusterFacts[Kind][number][] };

/** Notes all that the checks of test/support/cluster are made on, checks it in slices, and forgets what is checked. */
export class History {
  readonly #options: HistoryOptions;
  readonly #audit: AuditTail;
  readonly #loop = new LoopWatch();
  readonly #watches: ObjectRecorder[] = [];
  readonly #unfollow: (() => void)[] = [];
  #facts = emptied(NO_FACTS);
  /** Not in `#facts` yet: what became of them is not known at once. Emptied by each check. */
  #records: CommandRecord[] = [];
  #outages: (Outage & { to: number })[] = [];
  /** By UID; emptied as Pods go. */
  readonly #livePods = new Map<string, PodFact>();
  /** Names; emptied as they go. */
  readonly #liveNodes = new Set<string>();
  #podsGone = 0;
  #checkedUntil = 0;

  private constructor(options: HistoryOptions) {
    this.#options = options;
    this.#audit = new AuditTail(layoutOf(options.controlPlane.directory).auditLog, options.namespace);
  }

  static async start(options: HistoryOptions): Promise<History> {
    const history = new History(options);
    const { admin } = options.controlPlane;
    const kinds: [string, (seen: Seen) => void][] = [
      ['/apis/coordination.k8s.io/v1/leases', (seen) => history.#noteLease(seen)],
      ['/api/v1/pods', (seen) => history.#notePod(seen)],
      ['/api/v1/nodes', (seen) => history.#noteNode(seen)],
    ];
    for (const [path, onSeen] of kinds) history.#watches.push(await ObjectRecorder.start(admin, path, onSeen));
    options.broker.intercept((message) => {
      const command = commandFactOf(message);
      if (command) history.#facts.commands.push(command);
      return undefined;
    });
    return history;
  }

  /** The newest version of each Pod that exists. */
  get pods(): readonly PodFact[] {
    return [...this.#livePods.values()];
  }

  /** Names. */
  get nodes(): readonly string[] {
    return [...this.#liveNodes];
  }

  /** Pods that came and have gone. */
  get podsGone(): number {
    return this.#podsGone;
  }

  /** What its bases are told to do is noted from now on. */
  follow({ history }: Fleet): void {
    let last = -1;
    const unfollow = history.subscribe((record) => {
      // Told again when it has ended.
      if (record.sequence <= last) return;
      last = record.sequence;
      this.#records.push(record);
    });
    this.#unfollow.push(unfollow);
  }

  /** Stands on the timeline of a report. */
  note(text: string): void {
    this.#facts.notes.push({ text, at: Date.now() });
  }

  /** From now on the base is away; what is returned ends that. */
  outageOf(base: string): () => void {
    const outage = { base, from: Date.now(), to: Number.POSITIVE_INFINITY };
    this.#outages.push(outage);
    return () => {
      outage.to = Date.now();
    };
  }

  /** A new process of a base: what the old one had is lost. */
  restarted(base: string): void {
    this.#facts.restarts.push({ base, at: Date.now() });
  }

  /** What happened since the last check, but for the last seconds; `isLast`: with them. */
  async check({ isLast = false } = {}): Promise<Checked> {
    const [since, until] = [this.#checkedUntil, isLast ? Number.POSITIVE_INFINITY : Date.now() - LAG_MS];
    this.#checkedUntil = until;
    await this.#readAudit();
    const facts = this.#whole();
    const judged = judgedUntil(facts, until);
    const checks = [commandsOfOthers, executedTwice, uninstalledThoughWanted, writesOfOthers];
    // `since` itself was judged before.
    const violations = [
      ...checks.flatMap((check) => check(judged, { since: since + 1 })),
      ...unexplainedNodes(facts.nodes, this.#outages, { since, until }),
    ].sort((a, b) => a.at - b.at);
    const report = reportOf(facts, violations);
    if (!isLast) this.#forget(facts, until - REMEMBERED_MS);
    return { violations, report };
  }

  /** How much is remembered now. */
  get size(): number {
    return Object.values(this.#facts).reduce((sum, facts) => sum + facts.length, this.#records.length);
  }

  async stop(): Promise<void> {
    this.#loop.stop();
    this.#options.broker.intercept(undefined);
    for (const unfollow of this.#unfollow) unfollow();
    await Promise.all(this.#watches.map((watch) => watch.stop()));
    await this.#audit.close();
  }

  async #readAudit(): Promise<void> {
    const { replicaOfUser } = this.#options;
    const requests = await this.#audit.take();
    this.#facts.writes.push(...statusWritesOf(requests, replicaOfUser));
    this.#facts.renewals.push(...renewalsOf(requests, replicaOfUser));
  }

  #whole(): ClusterFacts {
    const operations = [...this.#facts.operations, ...this.#records.map(operationFactOf)];
    return { ...this.#facts, operations, pauses: [...this.#loop.pauses] };
  }

  #forget(facts: ClusterFacts, horizon: number): void {
    const left = withoutPast(facts, horizon);
    const isOver = ({ receivedAt }: CommandRecord): boolean => receivedAt < horizon;
    const recent = new Set(this.#records.filter((record) => !isOver(record)).map(({ sequence }) => sequence));
    this.#records = this.#records.filter(({ sequence }) => recent.has(sequence));
    // What is still a record is not yet a fact.
    this.#facts = { ...emptied(left), operations: left.operations.filter(({ at }) => at < horizon), pauses: [] };
    this.#loop.pauses.splice(0, this.#loop.pauses.length - left.pauses.length);
    this.#outages = this.#outages.filter(({ to }) => to >= horizon);
  }

  #noteLease(seen: Seen): void {
    const { metadata, spec } = seen.object;
    if (isMemberLease(metadata.name)) {
      this.#facts.renewals.push({ replica: spec?.holderIdentity ?? '', at: millisecondsOf(spec?.renewTime) });
      return;
    }
    const lease = metadata.namespace === NODE_LEASE_NAMESPACE ? leaseFactOf(seen) : undefined;
    if (lease) this.#facts.leases.push(lease);
  }

  #notePod(seen: Seen): void {
    const pod = podFactOf(seen);
    this.#facts.pods.push(pod);
    if (!pod.isGone) this.#livePods.set(pod.uid, pod);
    else if (this.#livePods.delete(pod.uid)) this.#podsGone += 1;
  }

  #noteNode(seen: Seen): void {
    const node = nodeFactOf(seen);
    this.#facts.nodes.push(node);
    if (node.isGone) this.#liveNodes.delete(node.name);
    else this.#liveNodes.add(node.name);
  }
}

function emptied(facts: ClusterFacts): Growing {
  return Object.fromEntries(Object.entries(facts).map(([kind, of]) => [kind, [...of]])) as unknown as Growing;
}
