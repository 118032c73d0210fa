import { type Clock, sleep, type Timer } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import type { LeaseClient } from './lease-client.ts';
import { LeaseTerm, type Moment, momentOf } from './lease-term.ts';
import { microTime } from './micro-time.ts';
import type { LeaseObject } from './objects.ts';
import { compareResourceVersions } from './resource-version.ts';
import { isAlreadyExists, isConflict, isNotFound } from './transport/api-error.ts';

export interface LeaderOptions {
  /** Each call is one try: a renewal that is late is none. */
  readonly api: LeaseClient;
  /** Name of the Lease. */
  readonly name: string;
  readonly namespace: string;
  /** The holderIdentity; unique to this process, since another process of the same name must not pass for it. */
  readonly identity: string;
  readonly timing?: LeaderTiming;
  /** The Lease has an older version than before: the cluster went back to an older state. */
  readonly onRolledBack: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface LeaderTiming {
  /** Others take the Lease when they have seen it unchanged for this long. */
  readonly leaseMs: number;
  /** Counted from when its last successful renewal was sent, a leader leads no longer. Well below `leaseMs`. */
  readonly fenceMs: number;
  /** From one renewal to the next. */
  readonly periodMs: number;
  /** Others look this often: what they see late, they take over late. */
  readonly lookMs: number;
}

const DEFAULT_TIMING: LeaderTiming = { leaseMs: 15_000, fenceMs: 12_000, periodMs: 5_000, lookMs: 3_000 };
/** A leader whose renewal has failed tries again this soon. */
const RETRY_MS = 1_000;
/** What a process that gives the Lease up writes into it, as client-go does: nobody leads. */
const RELEASED_SECONDS = 1;
/** Timers of Node come too early, by up to 2 ms as was measured. */
const TIMER_EARLY_MS = 5;

/** Called within the change, so a listener only queues. */
export interface LeaderListener {
  /** This process leads from now on. */
  onStarted(): void;
  /** It leads no longer. */
  onStopped(): void;
}

/** The Lease as this process last saw it. */
interface Observed {
  readonly lease: LeaseObject;
  /** When this version was first seen, on the monotonic clock. */
  readonly at: number;
}

/**
 * One of several processes leads, by a Lease, as client-go's leader election. No clock of another machine is believed:
 * who waits counts from when it saw the Lease change, and who leads stops by its own clock before that time can be
 * over.
 */
export class Leader {
  readonly #options: LeaderOptions;
  readonly #timing: LeaderTiming;
  readonly #term: LeaseTerm;
  readonly #listeners: LeaderListener[] = [];
  #observed: Observed | undefined;
  /**
   * Version in the last answer: each is as new as the one before, since they come one after the other; '' = none yet.
   */
  #newestVersion = '';
  /** The Lease names this process, as far as it knows. */
  #isHolder = false;
  /** What listeners were called with last. */
  #isStarted = false;
  #isFailing = false;
  #fence: Timer | undefined;

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#timing = options.timing ?? DEFAULT_TIMING;
    this.#term = new LeaseTerm(options.clock, this.#timing.fenceMs);
    options.metrics.leading.set({ name: options.name }, 0);
  }

  /** To be asked at the last moment before each write. */
  isLeading(): boolean {
    return this.#isHolder && this.#term.isValid();
  }

  addListener(listener: LeaderListener): void {
    this.#listeners.push(listener);
  }

  /** Takes the Lease when it is free, and renews it, until `signal` is aborted; then gives it up. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const startedAt = clock.now();
      await this.#try();
      await sleep(clock, Math.max(0, this.#nextAt(startedAt) - clock.now()), signal);
    }
    await this.#release();
  }

  #nextAt(startedAt: number): number {
    const { periodMs, lookMs } = this.#timing;
    if (this.#isHolder) return startedAt + (this.#isFailing ? RETRY_MS : periodMs);
    // One that is free already is not waited for: the last try has failed.
    const freeAt = this.#freeAt();
    return freeAt > this.#options.clock.now() ? Math.min(startedAt + lookMs, freeAt) : startedAt + lookMs;
  }

  async #try(): Promise<void> {
    const { logger, name } = this.#options;
    try {
      await this.#acquireOrRenew();
      this.#isFailing = false;
    } catch (error) {
      // A write has possibly happened: the next try looks first.
      this.#observed = this.#observed && { ...this.#observed, lease: withoutVersion(this.#observed.lease) };
      // Once for each outage.
      logger[this.#isFailing ? 'debug' : 'warn']({ lease: name, reason: messageOf(error) }, 'leader Lease not renewed');
      this.#isFailing = true;
    }
    this.#notify();
  }

  async #acquireOrRenew(): Promise<void> {
    const { api, name } = this.#options;
    // Who holds it knows its newest version from the last answer.
    if (!this.#isHolder || this.#observed?.lease.metadata.resourceVersion === undefined) {
      try {
        this.#observe(await api.get(name));
      } catch (error) {
        if (!isNotFound(error)) throw error;
        await this.#create();
        return;
      }
    }
    if (!this.#isHolder && !this.#isFree()) return;
    await this.#write();
  }

  /**
   * Who leads makes a deleted Lease again, and so does whoever never saw one. Others make one without a holder: it
   * becomes free when nobody has claimed it for as long as a leader's term may last.
   */
  async #create(): Promise<void> {
    const { api, clock, name, namespace } = this.#options;
    const mayClaim = this.#observed === undefined || this.isLeading();
    const sent = momentOf(clock);
    const unclaimed = { holderIdentity: '', leaseDurationSeconds: this.#leaseSeconds };
    const spec = mayClaim ? this.#specOf(undefined) : unclaimed;
    const metadata = { name, namespace };
    try {
      const lease = await api.create({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
      this.#held(lease, sent);
    } catch (error) {
      // Another process was first; the next try sees its Lease.
      if (!isAlreadyExists(error)) throw error;
      this.#isHolder = false;
    }
  }

  async #write(): Promise<void> {
    const { api, clock, name } = this.#options;
    const before = this.#observed?.lease;
    const sent = momentOf(clock);
    const resourceVersion = before?.metadata.resourceVersion;
    try {
      this.#held(await api.patch(name, { metadata: { resourceVersion }, spec: this.#specOf(before) }), sent);
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      // Somebody else has written or deleted it: who leads looks at once, its term may be over soon.
      if (isNotFound(error)) return this.#create();
      const wasHolder = this.#isHolder;
      const lease = await api.get(name);
      this.#observe(lease);
      // While this term lasts nobody else may claim what somebody has erased.
      const isErased = !lease.spec?.holderIdentity && this.#term.isValid();
      if (wasHolder && (this.#isHolder || isErased)) await this.#write();
    }
  }

  /** A new version starts the countdown again. */
  #observe(lease: LeaseObject): void {
    const { clock, identity } = this.#options;
    const { resourceVersion = '' } = lease.metadata;
    const before = this.#newestVersion;
    this.#newestVersion = resourceVersion;
    if (before !== '' && compareResourceVersions(resourceVersion, before) < 0) this.#options.onRolledBack();
    const isKnown = this.#observed !== undefined && isSame(this.#observed.lease, lease);
    this.#observed = { lease, at: isKnown ? (this.#observed?.at ?? clock.now()) : clock.now() };
    this.#isHolder = lease.spec?.holderIdentity === identity;
  }

  #held(lease: LeaseObject, sent: Moment): void {
    this.#observe(lease);
    if (!this.#isHolder) return;
    this.#term.renewed(sent);
    this.#fence?.cancel();
    const { clock } = this.#options;
    this.#fence = clock.setTimer(() => this.#notify(), this.#term.endsAt - clock.now() + TIMER_EARLY_MS);
  }

  /**
   * Its holder has given it up, or has not renewed it for as long as this process has watched. A holder that somebody
   * else has erased may still lead.
   */
  #isFree(): boolean {
    return this.#options.clock.now() >= this.#freeAt();
  }

  /** On the monotonic clock; Infinity where it was never seen. */
  #freeAt(): number {
    if (this.#observed === undefined) return Number.POSITIVE_INFINITY;
    const { lease, at } = this.#observed;
    const { holderIdentity, leaseDurationSeconds = 0 } = lease.spec ?? {};
    if (!holderIdentity && leaseDurationSeconds === RELEASED_SECONDS) return Number.NEGATIVE_INFINITY;
    return at + Math.max(this.#timing.leaseMs, 1000 * leaseDurationSeconds);
  }

  get #leaseSeconds(): number {
    return Math.ceil(this.#timing.leaseMs / 1000);
  }

  #specOf(before: LeaseObject | undefined): NonNullable<LeaseObject['spec']> {
    const { identity, clock } = this.#options;
    const now = microTime(clock.wallTime());
    const { holderIdentity, acquireTime = now, leaseTransitions = 0 } = before?.spec ?? {};
    const isGain = holderIdentity !== identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: this.#leaseSeconds,
      acquireTime: isGain ? now : acquireTime,
      renewTime: now,
      leaseTransitions: leaseTransitions + (isGain && before !== undefined ? 1 : 0),
    };
  }

  /** Written after the last work has ended: the next leader finds none of it running. */
  async #release(): Promise<void> {
    const { api, name, logger } = this.#options;
    const wasHolder = this.#isHolder;
    const { resourceVersion } = this.#observed?.lease.metadata ?? {};
    this.#isHolder = false;
    this.#fence?.cancel();
    this.#notify();
    if (!wasHolder || resourceVersion === undefined) return;
    try {
      await api.patch(name, {
        metadata: { resourceVersion },
        spec: { holderIdentity: '', leaseDurationSeconds: RELEASED_SECONDS },
      });
    } catch (error) {
      logger.info({ lease: name, reason: messageOf(error) }, 'leader Lease could not be released: it will expire');
    }
  }

  #notify(): void {
    const isLeading = this.isLeading();
    if (isLeading === this.#isStarted) return;
    this.#isStarted = isLeading;
    const { logger, metrics, name, identity } = this.#options;
    metrics.leading.set({ name }, isLeading ? 1 : 0);
    logger.info({ lease: name, identity }, isLeading ? 'started leading' : 'stopped leading');
    for (const listener of this.#listeners) {
      if (isLeading) listener.onStarted();
      else listener.onStopped();
    }
  }
}

function isSame(before: LeaseObject, after: LeaseObject): boolean {
  const { holderIdentity, renewTime, leaseTransitions } = before.spec ?? {};
  const now = after.spec ?? {};
  return (
    before.metadata.uid === after.metadata.uid &&
    holderIdentity === now.holderIdentity &&
    renewTime === now.renewTime &&
    leaseTransitions === now.leaseTransitions
  );
}

function withoutVersion(lease: LeaseObject): LeaseObject {
  const { resourceVersion: _version, ...metadata } = lease.metadata;
  return { ...lease, metadata };
}
