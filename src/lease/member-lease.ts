import { type Clock, sleep } from '../clock.ts';
import { ControllerError, messageOf } from '../errors.ts';
import type { LeaseClient } from '../kube/lease-client.ts';
import { type Moment, momentOf } from '../kube/lease-term.ts';
import { renewTimeAfter } from '../kube/micro-time.ts';
import type { LeaseObject } from '../kube/objects.ts';
import { compareResourceVersions } from '../kube/resource-version.ts';
import { ifFound, isAlreadyExists, isConflict, isInvalidUid, isNotFound } from '../kube/transport/api-error.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { type CachedLease, isOlderThan, projectLease } from './lease.ts';
import {
  goneAfterMsOf,
  isSameFacts,
  type MemberFacts,
  memberLeaseNameOf,
  memberPatchOf,
  newMemberLeaseOf,
} from './member.ts';

export interface MemberLeaseOptions {
  readonly api: LeaseClient;
  readonly env: string;
  readonly clientId: string;
  readonly nonce: string;
  readonly facts: () => MemberFacts;
  /** The lease has an older version than it had: the cluster went back to an older state. */
  readonly onRolledBack: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Called with the moment at which a write that succeeded was sent. */
export type OnWritten = (sent: Moment) => void;

/** Interval at which the lease of an earlier process of this CLIENT_ID is read until that process is gone. */
const LOOK_EVERY_MS = 1_000;

/** The lease of another process, as it was read. */
interface Look {
  /** '' while there is none. */
  readonly version: string;
  /** When that was first seen; monotonic clock, ms. */
  readonly since: number;
  /** Duration of the lease, or of the one before where it has gone. */
  readonly leaseDurationSeconds: number;
}

function lookOf(lease: CachedLease | undefined, now: number, before: Look | undefined): Look {
  const version = lease?.resourceVersion ?? '';
  if (before?.version === version) return before;
  return { version, since: now, leaseDurationSeconds: (lease ?? before)?.leaseDurationSeconds ?? 0 };
}

/**
 * This replica's membership lease and the calls about it. A lease of an earlier process is taken over only after it was
 * seen unchanged for long enough.
 */
export class MemberLease {
  readonly #options: MemberLeaseOptions;
  readonly name: string;
  /** The known version; undefined when it has to be created. */
  #lease: CachedLease | undefined;
  #isJoined = false;
  #isTaken = false;
  #hasLeft = false;

  constructor(options: MemberLeaseOptions) {
    this.#options = options;
    this.name = memberLeaseNameOf(options.env, options.clientId);
  }

  /** Another process has this CLIENT_ID. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  /** It was released. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** It exists and is this process's. */
  get isOurs(): boolean {
    return this.#lease !== undefined && !this.#isTaken;
  }

  get resourceVersion(): string {
    return this.#lease?.resourceVersion ?? '';
  }

  /** Whether the lease shows these facts. */
  isPublished(facts: MemberFacts): boolean {
    const { member } = this.#lease ?? {};
    return member !== undefined && isSameFacts(member, facts);
  }

  /** What the watch shows of it. */
  observe(lease: CachedLease): void {
    if (!this.#isJoined) return;
    const known = this.#lease;
    const isNewer = compareResourceVersions(lease.resourceVersion, known?.resourceVersion ?? '') > 0;
    if (isNewer) this.#adopt(lease);
  }

  observeDeleted({ uid }: CachedLease): void {
    if (this.#lease?.uid === uid) this.#lease = undefined;
  }

  /** Resolves when the lease is acquired, or with `signal`. */
  async join(signal: AbortSignal, onWritten: OnWritten): Promise<void> {
    const { clock, nonce, logger } = this.#options;
    let seen: Look | undefined;
    for (let isLogged = false; !signal.aborted; ) {
      try {
        const askedAt = clock.now();
        const lease = await this.#get();
        const look = lookOf(lease, clock.now(), seen);
        const isFree = (lease === undefined && seen === undefined) || lease?.member?.hasLeft === true;
        const isSilent = askedAt - look.since >= goneAfterMsOf(look);
        if (isFree || isSilent || lease?.member?.nonce === nonce) {
          await this.#write(lease, onWritten);
          this.#isJoined = true;
          return;
        }
        if (seen && look !== seen && !isLogged) {
          isLogged = true;
          this.#logTaken('another process with this CLIENT_ID is running: waiting until it stops');
        }
        // Also one that has gone since: its process may live.
        seen = look;
      } catch (error) {
        // Created or taken by another one at the same moment, or no API server: what stands there is looked at again.
        logger.warn({ reason: messageOf(error) }, 'cannot become a member yet');
      }
      await sleep(clock, LOOK_EVERY_MS, signal);
    }
  }

  /** One try. Rejects; when `isTaken` is set then, for good. */
  async renew(onWritten: OnWritten): Promise<void> {
    this.#refuseIfTaken();
    try {
      await this.#write(this.#lease, onWritten);
    } catch (error) {
      if (isNotFound(error) || isInvalidUid(error)) this.#lease = undefined;
      if (!isConflict(error) && !isAlreadyExists(error)) throw error;
      // Perhaps this process's own write, whose answer was lost; or the watch does not show it, since it has lost its
      // labels.
      const known = this.#lease;
      const lease = await this.#get();
      if (lease && isOlderThan(lease, known)) {
        // Also one of another process, which ended before this one joined.
        this.#lease = lease;
        this.#options.onRolledBack();
      } else if (lease) {
        this.#adopt(lease);
      }
      this.#refuseIfTaken();
      await this.#write(this.#lease, onWritten);
    }
  }

  /**
   * Ends the membership, and publishes it before the lease is deleted: leases still held may be taken at once,
   * where a lease that is only gone may be one that somebody else has deleted. What fails here, others make up for.
   * `onLeft`: at once, before it is written.
   */
  async leave(onLeft: () => void): Promise<void> {
    const { api, logger, clock, facts, nonce: _nonce, ...names } = this.#options;
    const lease = this.#lease;
    // Nothing that the watch still shows acquires it again.
    this.#isJoined = false;
    this.#lease = undefined;
    this.#hasLeft = true;
    onLeft();
    if (lease === undefined || this.#isTaken) return;
    try {
      const nowText = renewTimeAfter(lease.renewTime, clock.wallTime());
      const all = { ...names, facts: { ...facts(), isLeaving: true, hasLeft: true }, nowText };
      const { metadata } = await api.patch(this.name, memberPatchOf(lease, all, false));
      await api.delete(this.name, lease.uid, metadata.resourceVersion);
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error))
        logger.warn({ reason: messageOf(error) }, 'membership lease could not be deleted');
    }
  }

  async #get(): Promise<CachedLease | undefined> {
    const { api, env } = this.#options;
    const found = await ifFound(api.get(this.name));
    return found && projectLease(found, env);
  }

  async #write(lease: CachedLease | undefined, onWritten: OnWritten): Promise<void> {
    const { api, clock, nonce, facts, ...names } = this.#options;
    const sent = momentOf(clock);
    const nowText = renewTimeAfter(lease?.renewTime ?? '', new Date(sent.wallMs));
    const all = { ...names, facts: facts(), nowText };
    const isTakeOver = lease !== undefined && lease.member?.nonce !== nonce;
    const answer: LeaseObject =
      lease === undefined
        ? await api.create(newMemberLeaseOf(all))
        : await api.patch(this.name, memberPatchOf(lease, all, isTakeOver));
    this.#lease = projectLease(answer, this.#options.env);
    onWritten(sent);
  }

  #adopt(lease: CachedLease): void {
    if (lease.member?.nonce === this.#options.nonce) {
      this.#lease = lease;
      return;
    }
    this.#isTaken = true;
  }

  #refuseIfTaken(): void {
    if (!this.#isTaken) return;
    this.#logTaken('another process took this CLIENT_ID: this process exits');
    throw new ControllerError('Cluster.ClientIdTaken', `another process runs with CLIENT_ID=${this.#options.clientId}`);
  }

  #logTaken(message: string): void {
    const { logger, clientId, metrics } = this.#options;
    metrics.clientIdConflicts.inc();
    logger.error({ clientId, code: 'Cluster.ClientIdTaken' }, message);
  }
}
