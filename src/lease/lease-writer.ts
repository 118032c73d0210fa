import type { Clock } from '../clock.ts';
import { ControllerError } from '../errors.ts';
import type { KubeClient } from '../kube/client.ts';
import { renewTimeAfter } from '../kube/micro-time.ts';
import type { LeaseObject } from '../kube/objects.ts';
import { compareResourceVersions } from '../kube/resource-version.ts';
import { isAlreadyExists, isConflict, isInvalidUid, isNotFound, unlessGone } from '../kube/transport/api-error.ts';
import type { Informer } from '../kube/watch/informer-types.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import type { WorkQueue } from '../queue/work-queue.ts';
import {
  type CachedLease,
  firstRenewalInMs,
  handOverPatchOf,
  isOlderThan,
  type LeaseFacts,
  leaseKeyOf,
  leasePatchOf,
  newLeaseOf,
  nextRenewalInMs,
  otherEnvOf,
  projectLease,
  type TakeReason,
} from './lease.ts';
import { type Hold, type LossReason, observe } from './lease-hold.ts';
import type { Membership } from './membership.ts';

export interface LeaseWriterOptions {
  readonly api: Pick<KubeClient, 'getLease' | 'createLease' | 'patchLease' | 'deleteLease'>;
  readonly informer: Pick<Informer<CachedLease>, 'get' | 'upsert'>;
  readonly membership: Membership;
  readonly env: string;
  readonly holder: string;
  readonly isCluster: boolean;
  /** From one renewal of a lease to the next. */
  readonly renewIntervalMs: number;
  readonly nodeUidOf: (nodeName: string) => string | undefined;
  readonly queue: Pick<WorkQueue, 'add' | 'addAfter'>;
  /** What the server says of a lease. */
  readonly onLease: (lease: CachedLease) => void;
  readonly onWritten: (nodeName: string, hold: Hold, written: Written) => void;
  readonly onRefused: (nodeName: string, hold: Hold, reason: LossReason) => void;
  /**
   * A write has an older version than the answers before it, or a Lease than it had: the cluster went back to an older
   * state.
   */
  readonly onRolledBack: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface Written {
  readonly sentAt: number;
  /** The membership term in which it was sent. */
  readonly term: number;
  readonly reason: TakeReason;
  /** When it is to be renewed. */
  readonly renewAt: number;
}

/**
 * A renewal that failed is tried again soon and at least every 7 s, as a kubelet does. One may begin 100 ms late,
 * together with those that are due soon after it.
 */
export const LEASE_QUEUE = { name: 'leases', workers: 32, backoff: { baseMs: 200, maxMs: 7_000 }, slackMs: 100 };

/** A name that another ENV has is asked for again this often. */
const FOREIGN_AFTER_MS = 60_000;

/** The calls about node leases, and what their answers mean. */
export class LeaseWriter {
  readonly #options: LeaseWriterOptions;
  /**
   * Newest version in the answers to writes: each later write has a greater one (one etcd has all Leases); '' = none
   * yet.
   */
  #newestVersion = '';

  constructor(options: LeaseWriterOptions) {
    this.#options = options;
  }

  /** Creates, takes or renews it: one write, without a read before. */
  async write(nodeName: string, hold: Hold, reason: TakeReason): Promise<void> {
    const { api, informer, metrics, clock, membership, holder, onWritten, queue, env } = this.#options;
    const { lease } = hold;
    const sent = { sentAt: clock.now(), term: membership.term, reason };
    const isTake = lease?.holder !== holder;
    const wasHeld = hold.term === membership.term;
    const newestBefore = this.#newestVersion;
    try {
      const facts = this.#factsOf(nodeName, hold);
      const answer =
        lease === undefined
          ? await api.createLease(newLeaseOf(facts))
          : await api.patchLease(nodeName, leasePatchOf(lease, facts));
      metrics.leaseRenewals.inc({ result: 'ok' });
      if (isTake) metrics.leaseClaims.inc({ result: 'ok' });
      this.#noteVersion(answer, newestBefore);
      informer.upsert(answer);
      // The watch was faster, and has shown what another one wrote since, or that it was deleted.
      if (!observe(hold, projectLease(answer, env), { holder, now: clock.now() })) {
        queue.add(nodeName);
        return;
      }
    } catch (error) {
      metrics.leaseRenewals.inc({ result: 'error' });
      if (isTake) metrics.leaseClaims.inc({ result: isAlreadyExists(error) || isConflict(error) ? 'lost' : 'error' });
      await this.#afterError(nodeName, hold, error);
      return;
    }
    const now = clock.now();
    const time = { now, intervalMs: this.#options.renewIntervalMs };
    const delayMs = wasHeld ? nextRenewalInMs(nodeName, time) : firstRenewalInMs(nodeName, time);
    onWritten(nodeName, hold, { ...sent, renewAt: now + delayMs });
    queue.addAfter(nodeName, delayMs);
  }

  #noteVersion({ metadata: { resourceVersion = '' } }: LeaseObject, before: string): void {
    const isOlder = before !== '' && compareResourceVersions(resourceVersion, before) <= 0;
    if (isOlder || this.#newestVersion === '' || compareResourceVersions(resourceVersion, this.#newestVersion) > 0) {
      this.#newestVersion = resourceVersion;
    }
    if (isOlder) this.#options.onRolledBack();
  }

  /** Gives it away. Returns false when there is nothing left to hand over, and the lease has to be looked at again. */
  async writeHandOver(nodeName: string, hold: Hold, isMember: boolean): Promise<boolean> {
    const { api, informer, clock, holder, metrics, logger, env } = this.#options;
    const { handOver, lease } = hold;
    if (handOver === undefined) return false;
    const end = (): void => {
      hold.handOver = undefined;
      handOver.done();
    };
    if (!isMember || lease?.holder !== holder) {
      end();
      return false;
    }
    try {
      const nowText = renewTimeAfter(hold.renewTime, clock.wallTime());
      const answer = await api.patchLease(nodeName, handOverPatchOf(lease, handOver.to, nowText));
      informer.upsert(answer);
      observe(hold, projectLease(answer, env), { holder, now: clock.now() });
      metrics.leaseHandOvers.inc({ reason: handOver.reason });
      logger.info({ node: nodeName, to: handOver.to, reason: handOver.reason }, 'node handed over');
      end();
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error) && !isInvalidUid(error)) throw error;
      end();
      await this.#afterError(nodeName, hold, error);
    }
    return true;
  }

  /** Deletes it, unless another one has the name by now. */
  async remove(lease: CachedLease | undefined): Promise<void> {
    if (lease === undefined) return;
    const { api, isCluster } = this.#options;
    await unlessGone(api.deleteLease(lease.name, lease.uid, isCluster ? lease.resourceVersion : undefined));
  }

  /** Left by a controller that was killed between the Lease and the Node of a base that never came back. */
  async removeOrphan(nodeName: string): Promise<void> {
    const { informer, logger, nodeUidOf } = this.#options;
    const lease = informer.get(leaseKeyOf(nodeName));
    if (lease === undefined || lease.ownerUid !== undefined || nodeUidOf(nodeName) !== undefined) return;
    await this.remove(lease);
    logger.info({ node: nodeName }, 'lease without a node deleted');
  }

  /** The known version of the lease was old: read it once, then decide again. Anything else is tried again as it is. */
  async #afterError(nodeName: string, hold: Hold, error: unknown): Promise<void> {
    const { queue, informer, onLease, onRefused, onRolledBack } = this.#options;
    const isStale = hold.lease !== undefined && (isNotFound(error) || isInvalidUid(error));
    if (isStale) {
      hold.lease = undefined;
      queue.add(nodeName);
      return;
    }
    if (!isAlreadyExists(error) && !isConflict(error)) throw error;
    const known = hold.lease;
    const answer = await this.#look(nodeName, hold);
    const lease = projectLease(answer, this.#options.env);
    if (isOlderThan(lease, known)) onRolledBack();
    if (this.#isForeign(answer)) {
      hold.foreignUntil = this.#options.clock.now() + FOREIGN_AFTER_MS;
      onRefused(nodeName, hold, 'Foreign');
      queue.addAfter(nodeName, FOREIGN_AFTER_MS);
      return;
    }
    informer.upsert(answer);
    // The server's answer counts, whatever was believed before. One that stands was not deleted: somebody has taken off
    // the labels by which the watch sees it.
    hold.lease = undefined;
    if (hold.deleted?.uid === answer.metadata.uid) hold.deleted = undefined;
    onLease(lease);
    queue.add(nodeName);
  }

  /**
   * Somebody has written it: nothing is led until the writer is known. Often it was this replica, and the answer was
   * lost.
   */
  async #look(nodeName: string, hold: Hold): Promise<LeaseObject> {
    const { api, holder, isCluster, onRefused } = this.#options;
    if (!isCluster) return api.getLease(nodeName);
    const known = hold.lease ?? hold.deleted;
    hold.isDoubted = true;
    let answer: LeaseObject | undefined;
    try {
      answer = await api.getLease(nodeName);
      return answer;
    } finally {
      hold.isDoubted = false;
      const { holderIdentity, leaseTransitions } = answer?.spec ?? {};
      const isSame = holderIdentity === holder && leaseTransitions === known?.transitions;
      if (!isSame) onRefused(nodeName, hold, 'Conflict');
    }
  }

  #isForeign(lease: LeaseObject): boolean {
    const env = otherEnvOf(lease, this.#options.env);
    if (env === undefined) return false;
    this.#options.metrics.nodeNameConflicts.inc();
    const message = `lease ${lease.metadata.name} is of ENV ${env}: two ENVs of one cluster need different identities`;
    this.#options.logger.warn({ err: new ControllerError('VNode.NameTaken', message) }, 'base cannot become a node');
    return true;
  }

  #factsOf(nodeName: string, { renewTime }: Hold): LeaseFacts {
    const { env, holder, clock, nodeUidOf } = this.#options;
    const nowText = renewTimeAfter(renewTime, clock.wallTime());
    return { nodeName, env, holder, nowText, nodeUid: nodeUidOf(nodeName) };
  }
}
