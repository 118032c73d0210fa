import type { Clock } from '../clock.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Informer } from '../kube/watch/informer-types.ts';
import type { Leadership } from '../leadership.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { WorkQueue } from '../queue/work-queue.ts';
import { FreeLeases } from './free-leases.ts';
import { DeletedLeases, HoldTable } from './hold-table.ts';
import { type CachedLease, leaseKeyOf, type TakeReason } from './lease.ts';
import { gainOf, type HandOverReason, type Hold, type LossReason, newHold, observe } from './lease-hold.ts';
import { LEASE_QUEUE, LeaseWriter, type Written } from './lease-writer.ts';
import type { Membership } from './membership.ts';

/** What the Leases need to know of the VNodes that they are about. */
export interface LeaseSubjects {
  readonly nodeUidOf: (nodeName: string) => string | undefined;
  /** The tunnel of the base behind a Node. */
  readonly tunnelOf: (nodeName: string) => string | undefined;
  /** Whether there is anything to lead: the base is heard, or its Node stands. */
  readonly isWanted: (nodeName: string) => boolean;
}

/** Called within the change, so a listener only queues. */
export interface LeaseListener {
  /** This replica leads the Node from now on: called once for each gain. */
  onHeld(nodeName: string, reason: TakeReason): void;
  /** It leads the Node no longer. */
  onLost(nodeName: string, reason: LossReason): void;
}

export interface NodeLeaseControllerOptions extends LeaseSubjects {
  readonly api: Pick<KubeClient, 'getLease' | 'createLease' | 'patchLease' | 'deleteLease'>;
  readonly informer: Informer<CachedLease>;
  readonly membership: Membership;
  readonly env: string;
  /** The holderIdentity: CLIENT_ID, exactly. */
  readonly holder: string;
  readonly isCluster: boolean;
  /** `WORKLOAD_MAX_LEVEL`. */
  readonly maxLevel: number;
  /** From one renewal of a lease to the next. */
  readonly renewIntervalMs: number;
  /** The cluster went back to an older state. */
  readonly onRolledBack: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A renewal that was due while the membership was in doubt is tried again this soon. */
const AGAIN_AFTER_MS = 1_000;
/** A Lease gets its owner with the first renewal after its Node was made; one without for this long has no Node. */
const ORPHAN_AFTER_MS = 60_000;

/** Takes and renews the node leases of VNodes, on a queue and a lane that nothing else uses. */
export class NodeLeaseController implements Leadership {
  readonly #options: NodeLeaseControllerOptions;
  readonly #queue: WorkQueue;
  readonly #writer: LeaseWriter;
  /** Holds of every known VNode, led here or not. Emptied by `release` and `forget`. */
  readonly #holds: HoldTable;
  readonly #deleted: DeletedLeases;
  readonly #free: FreeLeases;
  readonly #listeners: LeaseListener[] = [];
  /** Term of the last `reconsider`. */
  #term = 0;

  constructor(options: NodeLeaseControllerOptions) {
    this.#options = options;
    this.#holds = new HoldTable(options);
    this.#deleted = new DeletedLeases(options);
    this.#queue = new WorkQueue({
      ...options,
      ...LEASE_QUEUE,
      isUrgent: (nodeName) => this.#holds.isOwnOrReleasing(nodeName),
      sync: (nodeName) => this.#sync(nodeName),
    });
    this.#free = new FreeLeases({
      ...options,
      holds: this.#holds,
      onTurn: (nodeName, hold) => {
        hold.isClaiming = true;
        this.#queue.add(nodeName);
      },
    });
    this.#writer = new LeaseWriter({
      ...options,
      queue: this.#queue,
      onLease: (lease) => this.#onLease(lease),
      onWritten: (nodeName, hold, at) => this.#held(nodeName, hold, at),
      onRefused: (nodeName, hold, reason) => this.#lose(nodeName, hold, reason),
    });
    options.informer.addHandler({
      onAdd: (lease) => (lease.kind === 'Foreign' ? this.#onForeign(lease) : this.#onLease(lease)),
      onUpdate: (_old, lease) => this.#onLease(lease),
      onDelete: (lease) => this.#onDelete(lease),
    });
  }

  addListener(listener: LeaseListener): void {
    this.#listeners.push(listener);
  }

  /** How many VNodes there are, and how many of their leases wait to be taken by somebody. */
  size(): { readonly known: number; readonly free: number } {
    return { known: this.#holds.size, free: this.#free.size };
  }

  /** How long the oldest renewal that is due has waited, ms. */
  get renewalWaitMs(): number {
    return this.#queue.urgentWaitMs;
  }

  /** Begins to follow the lease, and to take it when it is this replica's turn; listeners hear of it. */
  follow(nodeName: string): void {
    if (this.#holds.has(nodeName)) return;
    const lease = this.#options.informer.get(leaseKeyOf(nodeName));
    const hold = newHold(this.#options.clock.now(), this.#deleted.get(nodeName));
    this.#holds.set(nodeName, hold);
    if (lease) this.#onLease(lease);
    else this.#consider(nodeName, hold);
  }

  isHeld(nodeName: string): boolean {
    return this.#holds.isHeld(nodeName);
  }

  isInterrupted(nodeName: string): boolean {
    return this.#holds.isInterrupted(nodeName);
  }

  isHolder(nodeName: string): boolean {
    return this.#holds.get(nodeName)?.lease?.holder === this.#options.holder;
  }

  isFollowed(nodeName: string): boolean {
    return this.#options.isCluster && !this.isHeld(nodeName);
  }

  isMember(): boolean {
    return this.#options.membership.isValid();
  }

  heldNames(): string[] {
    return this.#holds.heldNames();
  }

  /** Leases by holder, as far as this replica sees. */
  counts(): Map<string, number> {
    return this.#holds.counts();
  }

  /** Stops leading now and makes another replica the holder. Resolves when that is written or has become needless. */
  handOver(nodeName: string, to: string, reason: HandOverReason): Promise<void> {
    const hold = this.#holds.get(nodeName);
    if (hold === undefined || hold.handOver || !this.isHeld(nodeName)) return Promise.resolve();
    return new Promise((done) => {
      hold.handOver = { to, reason, done };
      this.#lose(nodeName, hold, reason);
      this.#queue.add(nodeName);
    });
  }

  /** Stops renewing and deletes the lease; the base is gone. */
  async release(nodeName: string): Promise<void> {
    const hold = this.#holds.get(nodeName);
    this.forget(nodeName);
    try {
      // One that the watch shows as deleted may stand without its labels.
      const lease = hold?.lease ?? hold?.deleted ?? this.#options.informer.get(leaseKeyOf(nodeName));
      await this.#writer.remove(lease);
    } catch (error) {
      // Still held, or gone already: without the hold the removal of the VNode could not be tried again.
      if (hold) this.#holds.set(nodeName, { ...hold, term: undefined });
      this.#queue.add(nodeName);
      throw error;
    }
  }

  /**
   * Follows it no longer, and leaves it to those who do. If nobody does, a Lease whose base never got a Node would stay
   * for ever: it is deleted a minute later.
   */
  forget(nodeName: string): void {
    this.#holds.get(nodeName)?.handOver?.done();
    this.#holds.delete(nodeName);
    this.#free.delete(nodeName);
    this.#queue.forget(nodeName);
    this.#considerOrphan(this.#options.informer.get(leaseKeyOf(nodeName)));
  }

  run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#free.stop(), { once: true });
    return this.#queue.run(signal);
  }

  /** This replica's renewals have proven more of the silence of others; also at the start of each membership term. */
  reconsider(): void {
    this.#deleted.sweep();
    const { term } = this.#options.membership;
    const isNewTerm = term !== this.#term;
    this.#term = term;
    for (const [nodeName, hold] of this.#holds) {
      if (this.isHeld(nodeName)) continue;
      // One whose write is refused waits for its next try, except after an outage.
      if (isNewTerm || !this.#queue.isRetrying(nodeName)) this.#consider(nodeName, hold);
    }
  }

  /** The membership is over for now. */
  onFenced(): void {
    for (const [nodeName, hold] of this.#holds) {
      hold.isClaiming = false;
      if (hold.term !== undefined) this.#lose(nodeName, hold, 'Fenced');
    }
  }

  /** Once for each, where it is first seen. */
  #onForeign({ namespace, name, holder }: CachedLease): void {
    this.#options.metrics.foreignLeases.inc();
    this.#options.logger.warn(
      { namespace, lease: name, holder },
      'lease has the labels of the controller, but a foreign name or namespace: ignored',
    );
  }

  #onLease(lease: CachedLease): void {
    if (lease.kind !== 'Node') return;
    const hold = this.#holds.get(lease.name);
    if (hold === undefined) this.#considerOrphan(lease);
    const { holder, clock } = this.#options;
    if (hold === undefined || !observe(hold, lease, { holder, now: clock.now() })) return;
    this.#free.delete(lease.name);
    if (lease.holder !== holder) this.#lose(lease.name, hold, 'Taken');
    if (!this.isHeld(lease.name)) this.#consider(lease.name, hold);
  }

  #onDelete(lease: CachedLease): void {
    if (lease.kind !== 'Node') return;
    const hold = this.#holds.get(lease.name);
    this.#deleted.add(lease);
    // Also one that was not seen: it was created and deleted before the answer came.
    if (hold === undefined || (hold.lease && hold.lease.uid !== lease.uid)) return;
    hold.lease = undefined;
    hold.deleted = lease;
    hold.changedAt = this.#options.clock.now();
    this.#queue.add(lease.name);
    if (!this.isHeld(lease.name)) this.#consider(lease.name, hold);
  }

  /** Considers the lease of a VNode that this replica does not follow. */
  #considerOrphan(lease: CachedLease | undefined): void {
    if (lease !== undefined && lease.ownerUid === undefined) this.#queue.addAfter(lease.name, ORPHAN_AFTER_MS);
  }

  /** Held, or alone: at once. Free: when it is this replica's turn. */
  #consider(nodeName: string, hold: Hold): void {
    const { isCluster, clock } = this.#options;
    const reason = this.#holds.reasonToTake(hold);
    if (reason === undefined || clock.now() < hold.foreignUntil) return;
    if (!isCluster || reason === 'Own') {
      this.#queue.add(nodeName);
    } else if (!hold.isClaiming) {
      this.#free.add(nodeName);
    }
  }

  async #sync(nodeName: string): Promise<void> {
    const hold = this.#holds.get(nodeName);
    if (hold === undefined) return this.#writer.removeOrphan(nodeName);
    const { clock, membership, isCluster } = this.#options;
    if (hold.handOver && (await this.#writer.writeHandOver(nodeName, hold, membership.isValid()))) return;
    const isHeld = this.isHeld(nodeName);
    // Leases are confirmed on a fresh view only; the term begins with a look at all of them.
    if (!isHeld && !membership.isCurrent()) {
      // `reconsider` looks at it then, and leaves out what is being claimed already.
      hold.isClaiming = false;
      // It also leaves out a lease that is held again: the membership may be valid soon, in the same term.
      if (this.isInterrupted(nodeName)) this.#queue.addAfter(nodeName, AGAIN_AFTER_MS);
      return;
    }
    const reason = this.#holds.reasonToTake(hold);
    // The leader of a deleted lease creates it again, before all others.
    const isOurTurn = hold.term === membership.term || reason === 'Own' || hold.isClaiming || !isCluster;
    if (reason === undefined || !isOurTurn) {
      hold.isClaiming = false;
      this.#consider(nodeName, hold);
      return;
    }
    const isDue = !isHeld || hold.lease?.isLabelled !== true || clock.now() >= hold.renewAt - 50;
    if (isDue) await this.#writer.write(nodeName, hold, gainOf(hold, reason));
    else this.#queue.addAfter(nodeName, hold.renewAt - clock.now());
  }

  #held(nodeName: string, hold: Hold, at: Written): void {
    const { logger, metrics, isCluster, membership } = this.#options;
    const isGain = !this.isHeld(nodeName);
    hold.renewedAt = at.sentAt;
    hold.renewAt = at.renewAt;
    // Handed over while it was being renewed; or the membership is in doubt, and everything is confirmed when it no
    // longer is.
    if (hold.handOver || !membership.isValid()) return;
    hold.term = at.term;
    hold.isClaiming = false;
    hold.isGiven = false;
    if (!isGain || !this.isHeld(nodeName)) return;
    metrics.leaseTakeovers.inc({ reason: at.reason });
    if (isCluster) logger.info({ node: nodeName, reason: at.reason }, 'this replica leads the node');
    for (const listener of this.#listeners) listener.onHeld(nodeName, at.reason);
  }

  #lose(nodeName: string, hold: Hold, reason: LossReason): void {
    const { logger, metrics } = this.#options;
    hold.isClaiming = false;
    if (hold.term === undefined) return;
    hold.term = undefined;
    metrics.leaseLosses.inc({ reason });
    logger.info({ node: nodeName, reason, holder: hold.lease?.holder }, 'this replica no longer leads the node');
    for (const listener of this.#listeners) listener.onLost(nodeName, reason);
  }
}
