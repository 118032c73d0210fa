import type { Clock } from '../clock.ts';
import { ControllerError } from '../errors.ts';
import { isAlreadyExists, isConflict, isInvalidUid, isNotFound } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Informer } from '../kube/informer-types.ts';
import { microTime } from '../kube/micro-time.ts';
import type { LeaseObject } from '../kube/objects.ts';
import { compareResourceVersions } from '../kube/resource-version.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { phaseOf } from '../queue/phase.ts';
import { WorkQueue } from '../queue/work-queue.ts';
import {
  type CachedLease,
  canHold,
  LEASE_DURATION_SECONDS,
  type LeaseFacts,
  leaseKeyOf,
  leasePatchOf,
  newLeaseOf,
  otherEnvOf,
  projectLease,
  RENEW_INTERVAL_MS,
} from './lease.ts';

export interface NodeLeaseControllerOptions {
  readonly api: KubeClient;
  readonly informer: Informer<CachedLease>;
  readonly env: string;
  /** The holderIdentity: CLIENT_ID, exactly. */
  readonly holder: string;
  readonly isCluster: boolean;
  readonly nodeUidOf: (nodeName: string) => string | undefined;
  /** The lease is ours since now: called once per gain. */
  readonly onHeld: (nodeName: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A Lease gets its owner with the first renewal after its Node was made; one without for this long has no Node. */
const ORPHAN_AFTER_MS = 60_000;

/** A name that another ENV has is asked for again this often. */
const FOREIGN_AFTER_MS = 60_000;

interface Hold {
  /** The newest version of it, from the watch or from an answer; undefined when it has to be created. */
  lease: CachedLease | undefined;
  isHeld: boolean;
  renewedAt: number;
}

/** Takes and renews the node leases of this process's VNodes, on a queue and a lane that nothing else uses. */
export class NodeLeaseController {
  readonly #options: NodeLeaseControllerOptions;
  readonly #queue: WorkQueue;
  /** Emptied by `release`. */
  readonly #holds = new Map<string, Hold>();
  /** Since when another holder's lease has been as it is, on our clock. Emptied when the lease or the hold goes. */
  readonly #seen = new Map<string, { resourceVersion: string; at: number }>();

  constructor(options: NodeLeaseControllerOptions) {
    this.#options = options;
    const { clock, logger, metrics, informer } = options;
    // A renewal that failed is tried again soon and at least each 7 s, as a kubelet does.
    const backoff = { baseMs: 200, maxMs: 7_000 };
    this.#queue = new WorkQueue({
      name: 'leases',
      workers: 16,
      sync: (key) => this.#sync(key),
      clock,
      logger,
      metrics,
      backoff,
    });
    informer.addHandler({
      onAdd: (lease) => this.#onLease(lease),
      onUpdate: (_old, lease) => this.#onLease(lease),
      onDelete: (lease) => this.#onDelete(lease),
    });
  }

  /** Begins to take the lease and keeps it from then on; `onHeld` tells when it is ours. */
  hold(nodeName: string): void {
    if (this.#holds.has(nodeName)) return;
    const lease = this.#options.informer.get(leaseKeyOf(nodeName));
    this.#holds.set(nodeName, { lease: undefined, isHeld: false, renewedAt: Number.NEGATIVE_INFINITY });
    if (lease) this.#onLease(lease);
    this.#queue.add(nodeName);
  }

  /** Whether commands may be sent and statuses written for the Node. */
  isHeld(nodeName: string): boolean {
    const hold = this.#holds.get(nodeName);
    if (!hold?.isHeld) return false;
    // Alone, nobody can take it from us, so an API server that is down does not stop us.
    const ageMs = this.#options.clock.now() - hold.renewedAt;
    return !this.#options.isCluster || ageMs < LEASE_DURATION_SECONDS * 1000;
  }

  /** Stops renewing and deletes the lease; the base is gone. */
  async release(nodeName: string): Promise<void> {
    const hold = this.#holds.get(nodeName);
    this.#holds.delete(nodeName);
    this.#seen.delete(nodeName);
    this.#queue.forget(nodeName);
    const lease = this.#options.informer.get(leaseKeyOf(nodeName)) ?? hold?.lease;
    if (lease === undefined) return;
    try {
      await this.#options.api.deleteLease(nodeName, lease.uid);
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return;
      // Still ours: without the hold the removal of the VNode could not be tried again.
      if (hold) this.#holds.set(nodeName, hold);
      this.#queue.add(nodeName);
      throw error;
    }
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  #onLease(lease: CachedLease): void {
    const hold = this.#holds.get(lease.name);
    if (hold === undefined && lease.ownerUid === undefined) this.#queue.addAfter(lease.name, ORPHAN_AFTER_MS);
    if (hold === undefined || isOlder(lease, hold.lease)) return;
    hold.lease = lease;
    if (lease.holder === this.#options.holder) {
      this.#seen.delete(lease.name);
      return;
    }
    if (this.#seen.get(lease.name)?.resourceVersion !== lease.resourceVersion) {
      this.#seen.set(lease.name, { resourceVersion: lease.resourceVersion, at: this.#options.clock.now() });
    }
    this.#queue.add(lease.name);
  }

  #onDelete(lease: CachedLease): void {
    const hold = this.#holds.get(lease.name);
    if (hold === undefined || hold.lease?.uid !== lease.uid) return;
    hold.lease = undefined;
    this.#queue.add(lease.name);
  }

  async #sync(nodeName: string): Promise<void> {
    const hold = this.#holds.get(nodeName);
    if (hold === undefined) {
      await this.#removeOrphan(nodeName);
      return;
    }
    const { clock, holder, isCluster } = this.#options;
    const startedAt = clock.now();
    const seen = this.#seen.get(nodeName);
    const unchangedMs = seen === undefined ? 0 : startedAt - seen.at;
    const { lease } = hold;
    if (!canHold(lease, { holder, isCluster, unchangedMs })) {
      hold.isHeld = false;
      this.#queue.addAfter(nodeName, LEASE_DURATION_SECONDS * 1000 - unchangedMs);
      return;
    }
    const dueAt = hold.renewedAt + RENEW_INTERVAL_MS;
    const isDue = !this.isHeld(nodeName) || lease === undefined || startedAt >= dueAt - 50;
    if (isDue) await this.#write(nodeName, hold, lease, startedAt);
    else this.#queue.addAfter(nodeName, dueAt - startedAt);
  }

  /** Left by a controller that was killed between the Lease and the Node of a base that never came back (V69). */
  async #removeOrphan(nodeName: string): Promise<void> {
    const { api, informer, logger, nodeUidOf } = this.#options;
    const lease = informer.get(leaseKeyOf(nodeName));
    if (lease === undefined || lease.ownerUid !== undefined || nodeUidOf(nodeName) !== undefined) return;
    try {
      await api.deleteLease(nodeName, lease.uid);
      logger.info({ node: nodeName }, 'lease without a node deleted');
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }

  async #write(nodeName: string, hold: Hold, lease: CachedLease | undefined, startedAt: number): Promise<void> {
    const { api, informer, metrics } = this.#options;
    const facts = this.#factsOf(nodeName);
    try {
      const answer =
        lease === undefined
          ? await api.createLease(newLeaseOf(facts))
          : await api.patchLease(nodeName, leasePatchOf(lease, facts));
      metrics.leaseRenewals.inc({ result: 'ok' });
      hold.lease = projectLease(answer);
      informer.upsert(answer);
      this.#held(nodeName, hold, startedAt);
    } catch (error) {
      metrics.leaseRenewals.inc({ result: 'error' });
      await this.#afterError(nodeName, hold, error);
    }
  }

  #held(nodeName: string, hold: Hold, renewedAt: number): void {
    const isGain = !this.isHeld(nodeName);
    hold.isHeld = true;
    hold.renewedAt = renewedAt;
    // The first renewal comes early by a phase of the name's own, so that bases found at once spread out.
    const phase = isGain ? 0.2 + 0.8 * phaseOf(nodeName) : 1;
    if (isGain) hold.renewedAt = renewedAt - (1 - phase) * RENEW_INTERVAL_MS;
    this.#queue.addAfter(nodeName, RENEW_INTERVAL_MS * phase);
    if (isGain) this.#options.onHeld(nodeName);
  }

  /** Our view of the lease was old: look at it once, then decide again. Anything else is tried again as it is. */
  async #afterError(nodeName: string, hold: Hold, error: unknown): Promise<void> {
    const isStale = hold.lease !== undefined && (isNotFound(error) || isInvalidUid(error));
    if (isStale) {
      hold.lease = undefined;
      this.#queue.add(nodeName);
      return;
    }
    if (!isAlreadyExists(error) && !isConflict(error)) throw error;
    const answer = await this.#options.api.getLease(nodeName);
    if (this.#isForeign(answer)) {
      hold.isHeld = false;
      this.#queue.addAfter(nodeName, FOREIGN_AFTER_MS);
      return;
    }
    this.#options.informer.upsert(answer);
    // What the server says now counts, whatever we believed.
    hold.lease = undefined;
    this.#onLease(projectLease(answer));
    this.#queue.add(nodeName);
  }

  #isForeign(lease: LeaseObject): boolean {
    const env = otherEnvOf(lease, this.#options.env);
    if (env === undefined) return false;
    this.#options.metrics.nodeNameConflicts.inc();
    const message = `lease ${lease.metadata.name} is of ENV ${env}: two ENVs of one cluster need different identities`;
    this.#options.logger.warn({ err: new ControllerError('VNode.NameTaken', message) }, 'base cannot become a node');
    return true;
  }
  #factsOf(nodeName: string): LeaseFacts {
    const { env, holder, clock, nodeUidOf } = this.#options;
    return { nodeName, env, holder, nowText: microTime(clock.wallTime()), nodeUid: nodeUidOf(nodeName) };
  }
}

function isOlder(lease: CachedLease, known: CachedLease | undefined): boolean {
  return known?.uid === lease.uid && compareResourceVersions(lease.resourceVersion, known.resourceVersion) < 0;
}
