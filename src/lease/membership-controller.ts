import { type Clock, sleep, type Timer } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { LeaseClient } from '../kube/lease-client.ts';
import { LeaseTerm, type Moment } from '../kube/lease-term.ts';
import type { Informer } from '../kube/watch/informer-types.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { GoneMembers } from './gone-members.ts';
import type { CachedLease } from './lease.ts';
import {
  FENCE_AFTER_MS,
  isSameFacts,
  MEMBER_GAP_MS,
  MEMBER_RENEW_MS,
  type Member,
  type MemberFacts,
  memberOf,
  OUTAGE_GRACE_MS,
} from './member.ts';
import { MemberLease } from './member-lease.ts';
import { MemberList, RenewalStreak } from './members.ts';
import type { HolderState, Membership, MembershipListener } from './membership.ts';

export interface MembershipControllerOptions {
  /** Client for the Leases in `kube-node-lease`; each call is one try. */
  readonly api: LeaseClient;
  readonly informer: Informer<CachedLease>;
  readonly env: string;
  readonly clientId: string;
  /** Unique to this process. */
  readonly nonce: string;
  /** Address at which other members reach this replica, `host:port`. Default: none. */
  readonly address: string | undefined;
  /** The cluster went back to an older state. */
  readonly onRolledBack: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** The next try begins this long after the one that failed, at once if that took longer. */
const RETRY_MS = 500;
/** Timers of Node come too early, by up to 2 ms as was measured. */
const TIMER_EARLY_MS = 5;

/**
 * Keeps this replica's membership lease and knows the other members. All that others may conclude from its silence, it
 * has concluded a second before: see `member.ts` for the times, and docs/operate.md "Several replicas" for why they
 * suffice.
 */
export class MembershipController implements Membership {
  readonly #options: MembershipControllerOptions;
  readonly #term: LeaseTerm;
  readonly #streak = new RenewalStreak();
  readonly #list: MemberList;
  readonly #lease: MemberLease;
  readonly #gone: GoneMembers;
  readonly #listeners: MembershipListener[] = [];
  readonly #joined = Promise.withResolvers<void>();
  #isLeaving = false;
  #tunnels: readonly string[] = [];
  #isFailing = false;
  #isFenceReported = true;
  #fence: Timer | undefined;
  /** Those who wait for what they announced. Another one after each renewal. */
  #announced = Promise.withResolvers<void>();
  /** Ends the wait for the next renewal. */
  #wake: AbortController | undefined;

  constructor(options: MembershipControllerOptions) {
    this.#options = options;
    this.#term = new LeaseTerm(options.clock, FENCE_AFTER_MS);
    this.#list = new MemberList(this.#streak);
    this.#lease = new MemberLease({ ...options, facts: () => this.#facts() });
    this.#gone = new GoneMembers(options);
    options.informer.addHandler({
      onAdd: (lease) => this.#onLease(lease),
      onUpdate: (_old, lease) => this.#onLease(lease),
      onDelete: (lease) => this.#onLeaseDeleted(lease),
      // Everything up to this version has been handed to this handler and to that of node leases.
      onProgress: (resourceVersion) => this.#streak.seen(resourceVersion) && this.#onProven(),
    });
    options.metrics.fenced.set(1);
  }

  get term(): number {
    return this.#term.number;
  }

  addListener(listener: MembershipListener): void {
    this.#listeners.push(listener);
  }

  isValid(): boolean {
    return this.#lease.isOurs && this.#term.isValid();
  }

  isCurrent(): boolean {
    return this.isValid() && this.#streak.isSeen;
  }

  members(): readonly Member[] {
    const all = [memberOf(this.#options.clientId, this.#facts()), ...this.#list.alive()];
    return all.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  stateOf(holder: string, resourceVersion: string): HolderState {
    return holder === this.#options.clientId ? 'Alive' : this.#list.stateOf(holder, resourceVersion);
  }

  silentMs(changedAt: number): number {
    return this.#streak.silentMs(changedAt);
  }

  /**
   * Writes at once that this replica ends, or which tunnels are up (by name; none before the first call). Resolves when
   * that is written, or was tried.
   */
  announce(change: { readonly isLeaving?: boolean; readonly tunnels?: readonly string[] }): Promise<void> {
    this.#isLeaving = change.isLeaving ?? this.#isLeaving;
    this.#tunnels = change.tunnels ?? this.#tunnels;
    this.#wake?.abort();
    return this.#announced.promise;
  }

  /** Resolves when this replica joined for the first time. */
  async whenJoined(signal: AbortSignal): Promise<void> {
    const stopped = Promise.withResolvers<void>();
    if (signal.aborted) return;
    signal.addEventListener('abort', () => stopped.resolve(), { once: true });
    await Promise.race([this.#joined.promise, stopped.promise]);
  }

  /**
   * Joins, and renews until `signal` is aborted; then publishes that it has left, and deletes the lease. Rejects with
   * `Cluster.ClientIdTaken` when another process takes this CLIENT_ID.
   */
  async run(signal: AbortSignal): Promise<void> {
    await this.#lease.join(signal, (sent) => this.#renewed(sent));
    signal.addEventListener('abort', () => this.#wake?.abort(), { once: true });
    while (!signal.aborted) {
      await this.#untilDue();
      if (!signal.aborted) await this.#renew(signal);
    }
    this.#fence?.cancel();
    await this.#lease.leave(() => this.#reportFence());
  }

  async #untilDue(): Promise<void> {
    const { clock } = this.#options;
    this.#wake = new AbortController();
    const proofAt = this.#list.nextProofAt();
    const renewAt = this.#term.renewedAt + MEMBER_RENEW_MS;
    // A renewal that was sent since then has only to be seen.
    const dueAt = this.#term.renewedAt < proofAt ? Math.min(renewAt, proofAt + TIMER_EARLY_MS) : renewAt;
    if (this.#lease.isPublished(this.#facts())) await sleep(clock, dueAt - clock.now(), this.#wake.signal);
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    const startedAt = clock.now();
    const facts = this.#facts();
    try {
      await this.#lease.renew((sent) => this.#renewed(sent));
      const isPublished = this.#lease.isPublished(this.#facts());
      // Somebody alters what is written, such as a webhook. That is no reason to write all the time.
      const isAltered = !isPublished && isSameFacts(facts, this.#facts());
      if (isPublished || isAltered) this.#endAnnouncement();
      if (isAltered) await sleep(clock, RETRY_MS, signal);
    } catch (error) {
      this.#endAnnouncement();
      if (this.#lease.isTaken) throw error;
      this.#options.metrics.memberRenewals.inc({ result: 'error' });
      const sinceMs = Math.round(clock.now() - this.#term.renewedAt);
      // Once for each outage.
      logger[this.#isFailing ? 'debug' : 'warn']({ reason: messageOf(error), sinceMs }, 'membership not renewed');
      this.#isFailing = true;
      const retryInMs = startedAt + RETRY_MS - clock.now();
      if (retryInMs > 0) await sleep(clock, retryInMs, signal);
    }
  }

  #endAnnouncement(): void {
    this.#announced.resolve();
    this.#announced = Promise.withResolvers<void>();
  }

  #renewed(sent: Moment): void {
    const { clock, logger, metrics } = this.#options;
    metrics.memberRenewals.inc({ result: 'ok' });
    this.#isFailing = false;
    const { renewedAt } = this.#term;
    this.#reportFence();
    if (this.#term.renewed(sent)) {
      const term = this.#term.number;
      this.#streak.restart(sent.monotonicMs + (term === 1 ? 0 : OUTAGE_GRACE_MS));
      logger.info({ term }, 'this replica joined');
    } else if (sent.monotonicMs - renewedAt > MEMBER_GAP_MS) {
      // It seems that no replica could renew: one that comes a moment later is not gone.
      this.#streak.interrupted(renewedAt, sent.monotonicMs);
    }
    const isProven = this.#streak.renewed(sent.monotonicMs, this.#lease.resourceVersion);
    this.#isFenceReported = !this.isValid();
    metrics.fenced.set(this.isValid() ? 0 : 1);
    this.#fence?.cancel();
    this.#fence = clock.setTimer(() => this.#reportFence(), this.#term.endsAt - clock.now() + TIMER_EARLY_MS);
    this.#joined.resolve();
    if (isProven) this.#onProven();
  }

  #reportFence(): void {
    if (this.#isFenceReported || this.isValid()) return;
    this.#isFenceReported = true;
    const { logger, metrics, clock } = this.#options;
    metrics.fenced.set(1);
    const about = { term: this.#term.number, sinceMs: Math.round(clock.now() - this.#term.renewedAt) };
    metrics.fences.inc(this.#lease.hasLeft ? 0 : 1);
    if (this.#lease.hasLeft) logger.info(about, 'this replica left');
    else logger.warn(about, 'fenced: the membership could not be renewed, this replica leads no base');
    for (const listener of this.#listeners) listener.onFenced();
  }

  #onLease(lease: CachedLease): void {
    if (lease.member === undefined) return;
    const { member, holder } = lease;
    if (lease.name === this.#lease.name) this.#lease.observe(lease);
    else if (this.#list.changed(lease, member, this.#options.clock.now())) this.#onMember(holder, member.hasLeft);
  }

  #onLeaseDeleted(lease: CachedLease): void {
    if (lease.member === undefined) return;
    if (lease.name === this.#lease.name) {
      this.#lease.observeDeleted(lease);
      this.#wake?.abort();
    } else {
      this.#list.removed(lease, this.#options.clock.now());
      this.#count();
    }
  }

  #onProven(): void {
    if (!this.isValid()) return;
    const members = this.#list.takeGone();
    if (members.length > 0) {
      this.#options.logger.warn({ members }, 'members are gone: their bases are taken over');
      this.#count();
    }
    this.#reconsider();
    // Their leases are deleted by the first of those who live.
    this.#gone.sweep(this.#list, this.members()[0]?.id === this.#options.clientId);
  }

  #reconsider(): void {
    if (this.isValid()) for (const listener of this.#listeners) listener.onProven();
  }

  #onMember(id: string, hasLeft: boolean): void {
    this.#options.logger.info({ member: id, members: this.members().map((member) => member.id) }, 'member changed');
    this.#count();
    if (hasLeft) this.#reconsider();
  }

  #count(): void {
    this.#options.metrics.members.set(this.members().length);
  }

  #facts(): MemberFacts {
    const { nonce, address } = this.#options;
    return { nonce, address, tunnels: this.#tunnels, isLeaving: this.#isLeaving, hasLeft: false };
  }
}
