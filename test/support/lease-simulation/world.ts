import { renewalPeriodMsOf } from '../../../src/lease/lease.ts';
import { LeaseServer } from './lease-server.ts';
import { ServerMachine } from './link.ts';
import { Replica } from './replica.ts';
import { Dice, Timeline } from './timeline.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly replicas: number;
  readonly maxLatencyMs: number;
  readonly isRebalancing: boolean;
  /** Default 10 s. */
  readonly renewIntervalMs?: number;
}

const KEPT_LINES = 60;
/** A Node is there this long after its base was led for the first time. */
const NODE_MADE_MS = 300;
/** Heartbeats and Nodes make a base known to each replica within so long. */
const HEARD_MS = 2_000;
/** Leases of a Node that is gone are collected. */
const COLLECTED_MS = 2_000;
const MAX_DRIFT = 0.02;

interface Base {
  isHeard: boolean;
  /** Of the Node that stands for it. */
  nodeUid: string | undefined;
}

/** Replicas, the API server between them, and the bases; with whatever can go wrong. */
export class World {
  readonly timeline = new Timeline();
  readonly dice: Dice;
  readonly server: LeaseServer;
  readonly machine = new ServerMachine();
  /** By index; one that was started again stands in the place of the earlier one. */
  readonly replicas: Replica[] = [];
  /** Those that may be alive. */
  processes: Replica[] = [];
  /** By Node. */
  readonly bases = new Map<string, Base>();
  readonly #options: WorldOptions;
  readonly #lines: string[] = [];
  readonly #all: Replica[] = [];
  /** Of the Leases of bases, by Node. */
  readonly #writtenAt = new Map<string, number>();
  #longestSilenceMs = 0;
  #started = 0;
  #baseCount = 0;
  #nodeCount = 0;
  /** Changes of holders, in order. */
  readonly transitions: { readonly at: number; readonly nodeName: string; readonly to: string | undefined }[] = [];

  constructor(options: WorldOptions) {
    this.#options = options;
    this.dice = new Dice(options.seed);
    this.server = new LeaseServer(this.dice);
    const holders = new Map<string, string | undefined>();
    this.server.onEvent = (event) => {
      const { name, annotations = {} } = event.object.metadata;
      const holder = event.type === 'DELETED' ? undefined : (event.object.spec?.holderIdentity ?? '');
      const by = Object.values(annotations)[0] ?? '';
      this.note(`${event.type} ${name} ${event.version} holder=${holder} ${by}`);
      if (this.bases.has(name) && event.object.metadata.namespace === 'kube-node-lease') {
        this.#noteWrite(name);
        if (holders.get(name) !== holder) {
          holders.set(name, holder);
          this.transitions.push({ at: this.timeline.now, nodeName: name, to: holder });
        }
      }
      for (const replica of this.processes) replica.watch.push(event);
    };
    this.timeline.isSampling = () => this.processes.some(({ host }) => host.isCatchingUp);
    for (let index = 0; index < options.replicas; index++) this.start(index);
  }

  get trace(): string {
    return this.#lines.join('\n');
  }

  /** The longest time that a Lease of a base was not written, ms: a Node that waits 50 s becomes Unknown. */
  longestSilenceMs(): number {
    const silent = [...this.#writtenAt.values()].map((at) => this.timeline.now - at);
    return Math.max(this.#longestSilenceMs, ...silent);
  }

  #noteWrite(name: string): void {
    const { now } = this.timeline;
    this.#longestSilenceMs = Math.max(this.#longestSilenceMs, now - (this.#writtenAt.get(name) ?? now));
    this.#writtenAt.set(name, now);
  }

  note(line: string): void {
    this.#lines.push(`${this.timeline.now.toFixed(1).padStart(10)} ${line}`);
    if (this.#lines.length > KEPT_LINES) this.#lines.shift();
  }

  /** A process with the CLIENT_ID of that index; the one before is not asked. */
  start(index: number): Replica {
    const { isRebalancing, maxLatencyMs, renewIntervalMs = renewalPeriodMsOf(10_000) } = this.#options;
    const replica = new Replica({
      clientId: `controller-${index}`,
      nonce: `c${index}#${this.#started++}`,
      timeline: this.timeline,
      dice: this.dice,
      server: this.server,
      machine: this.machine,
      rate: 1 + (this.dice.next() * 2 - 1) * MAX_DRIFT,
      maxLatencyMs,
      isRebalancing,
      renewIntervalMs,
      nodeUidOf: (nodeName) => this.bases.get(nodeName)?.nodeUid,
      isHeard: (nodeName) => this.bases.get(nodeName)?.isHeard === true,
      removeNode: (nodeName) => this.#removeNode(nodeName),
      onHeld: (nodeName) => this.timeline.after(NODE_MADE_MS, () => this.#makeNode(nodeName)),
      note: (line) => this.note(line),
    });
    this.note(`${replica.nonce} starts`);
    this.#all.push(replica);
    this.processes = [...this.processes.filter(({ isLive }) => isLive), replica];
    this.replicas[index] = replica;
    replica.start();
    for (const [nodeName, { isHeard, nodeUid }] of this.bases) {
      if (isHeard || nodeUid !== undefined) this.#hear(replica, nodeName, HEARD_MS);
    }
    return replica;
  }

  /** Bases come up; each replica hears of them at its own moment. */
  appear(count: number, heardMs = HEARD_MS): void {
    for (let index = 0; index < count; index++) {
      const nodeName = `vnode.b${this.#baseCount++}`;
      this.note(`${nodeName} appears`);
      this.bases.set(nodeName, { isHeard: true, nodeUid: undefined });
      for (const replica of this.processes) this.#hear(replica, nodeName, heardMs);
    }
  }

  /** One that was there before is heard again. */
  reappear(nodeName: string): void {
    const base = this.bases.get(nodeName);
    if (base === undefined || base.isHeard) return;
    this.note(`${nodeName} appears again`);
    base.isHeard = true;
    for (const replica of this.processes) this.#hear(replica, nodeName, HEARD_MS);
  }

  vanish(nodeName: string): void {
    const base = this.bases.get(nodeName);
    if (!base?.isHeard) return;
    this.note(`${nodeName} vanishes`);
    base.isHeard = false;
    for (const replica of this.processes) {
      this.timeline.after(this.dice.below(HEARD_MS), () => replica.letGo(nodeName));
    }
  }

  #hear(replica: Replica, nodeName: string, withinMs: number): void {
    this.timeline.after(this.dice.below(withinMs), () => {
      const { isHeard, nodeUid } = this.bases.get(nodeName) ?? {};
      if (!isHeard && nodeUid === undefined) return;
      replica.hold(nodeName);
      if (!isHeard) replica.letGo(nodeName);
    });
  }

  #makeNode(nodeName: string): void {
    const base = this.bases.get(nodeName);
    if (base?.isHeard) base.nodeUid ??= `n${this.#nodeCount++}`;
  }

  #removeNode(nodeName: string): void {
    const base = this.bases.get(nodeName);
    const uid = base?.nodeUid;
    if (base === undefined || uid === undefined) return;
    base.nodeUid = undefined;
    this.timeline.after(COLLECTED_MS, () => {
      const key = `kube-node-lease/${nodeName}`;
      if (this.server.leases.get(key)?.metadata.ownerReferences?.[0]?.uid === uid) this.server.collect(key);
    });
  }

  wantedNames(): string[] {
    return [...this.bases].filter(([, { isHeard }]) => isHeard).map(([nodeName]) => nodeName);
  }

  live(): Replica[] {
    return this.processes.filter(({ isLive }) => isLive);
  }

  leadersOf(nodeName: string): Replica[] {
    return this.processes.filter((replica) => replica.isHeld(nodeName));
  }

  holders(): Map<string, string | undefined> {
    return new Map([...this.bases.keys()].map((nodeName) => [nodeName, this.server.holderOf(nodeName)]));
  }

  async pass(ms: number): Promise<void> {
    await this.timeline.pass(ms);
  }

  close(): void {
    for (const replica of this.#all) replica.dispose();
  }
}
