import { compareResourceVersions } from '../kube/resource-version.ts';
import type { CachedLease } from './lease.ts';
import { goneAfterMsOf, isSameFacts, type Member, type MemberFacts, memberOf } from './member.ts';
import type { HolderState } from './membership.ts';

interface Renewal {
  readonly sentAt: number;
  readonly resourceVersion: string;
}

/** Times of the local monotonic clock, ms. */
interface Interruption {
  readonly from: number;
  readonly to: number;
}

/** Older interruptions are forgotten, and what was before them counts for nothing. */
const INTERRUPTIONS_KEPT = 16;

/**
 * What this replica's own renewals prove of the silence of others. A watch may lag or hang, so that nothing is heard of
 * a replica that lives. But events come in order: when the watch shows this replica's own renewal, every change that
 * was made before it has been seen too. All times are of the local monotonic clock.
 */
export class RenewalStreak {
  /** Oldest first. Emptied as the watch shows them. */
  #unseen: Renewal[] = [];
  /** Oldest first, at most `INTERRUPTIONS_KEPT`. */
  #interruptions: Interruption[] = [];
  #countsFrom = Number.POSITIVE_INFINITY;
  #provenAt = Number.NEGATIVE_INFINITY;
  #provenVersion = '';
  /** What the watch has come to. */
  #seenVersion = '';

  /** Silence counts from `from` on at the earliest; what was proven before is void. */
  restart(from: number): void {
    this.#unseen = [];
    this.#interruptions = [];
    this.#countsFrom = from;
    this.#provenAt = Number.NEGATIVE_INFINITY;
    this.#provenVersion = '';
  }

  /** Silence between these times does not count: perhaps nobody could write. What was before and comes later does. */
  interrupted(from: number, to: number): void {
    this.#interruptions.push({ from, to });
    if (this.#interruptions.length <= INTERRUPTIONS_KEPT) return;
    this.#countsFrom = Math.max(this.#countsFrom, this.#interruptions.shift()?.to ?? 0);
  }

  /** A renewal that was sent at `sentAt` made this version, which the watch may have shown already. As `seen`. */
  renewed(sentAt: number, resourceVersion: string): boolean {
    this.#unseen.push({ sentAt, resourceVersion });
    return this.seen(this.#seenVersion);
  }

  /** The watch has shown everything up to this version. Returns whether that proves more than before. */
  seen(resourceVersion: string): boolean {
    this.#seenVersion = resourceVersion;
    let isNews = false;
    for (let next = this.#unseen[0]; next; next = this.#unseen[0]) {
      if (compareResourceVersions(next.resourceVersion, resourceVersion) > 0) break;
      this.#unseen.shift();
      this.#provenAt = next.sentAt;
      this.#provenVersion = next.resourceVersion;
      isNews = true;
    }
    return isNews;
  }

  /** Whether a renewal was seen since the last restart: the view is as fresh as that. */
  get isSeen(): boolean {
    return this.#provenAt > Number.NEGATIVE_INFINITY;
  }

  /** Whether what is proven holds for a version too: of what was written later nothing is known. */
  covers(resourceVersion: string): boolean {
    return compareResourceVersions(resourceVersion, this.#provenVersion) <= 0;
  }

  /**
   * Lower bound of the time, in ms, in which nothing was written to a lease that was seen to change at `changedAt`.
   * Interruptions are not part of it.
   */
  silentMs(changedAt: number): number {
    const from = Math.max(changedAt, this.#countsFrom);
    return this.#provenAt - from - this.#interruptedMs(from, this.#provenAt);
  }

  /** When a renewal has to be sent at the earliest to prove that much silence. */
  provableAt(changedAt: number, silentMs: number): number {
    const from = Math.max(changedAt, this.#countsFrom);
    return from + silentMs + this.#interruptedMs(from, Number.POSITIVE_INFINITY);
  }

  #interruptedMs(from: number, to: number): number {
    const parts = this.#interruptions.map((one) => Math.min(one.to, to) - Math.max(one.from, from));
    return parts.reduce((total, ms) => total + Math.max(0, ms), 0);
  }
}

interface Entry {
  readonly facts: MemberFacts;
  readonly lease: CachedLease;
  /** When it was last seen to change, on the local clock. */
  readonly changedAt: number;
  /** Its lease stands; one that was deleted has its time too, for its process may live. */
  readonly isPresent: boolean;
  readonly isGone: boolean;
}

/** The other replicas, as their membership leases show them. */
export class MemberList {
  readonly #streak: RenewalStreak;
  /** Entries by CLIENT_ID. Emptied by `forget`. */
  readonly #entries = new Map<string, Entry>();

  constructor(streak: RenewalStreak) {
    this.#streak = streak;
  }

  /**
   * A membership lease of another replica was added or changed. Returns whether more than its time did. `now`: of the
   * local monotonic clock, ms.
   */
  changed(lease: CachedLease, facts: MemberFacts, now: number): boolean {
    const before = this.#entries.get(lease.holder);
    if (before?.isPresent && before.lease.resourceVersion === lease.resourceVersion) return false;
    const isGone = facts.hasLeft;
    this.#entries.set(lease.holder, { facts, lease, changedAt: now, isPresent: true, isGone });
    return before === undefined || before.isGone || !isSameFacts(before.facts, facts);
  }

  removed(lease: CachedLease, now: number): void {
    const before = this.#entries.get(lease.holder);
    if (before) this.#entries.set(lease.holder, { ...before, changedAt: now, isPresent: false });
  }

  forget(id: string): void {
    this.#entries.delete(id);
  }

  /** The members that are proven gone since the last call. */
  takeGone(): string[] {
    const gone: string[] = [];
    for (const [id, entry] of this.#entries) {
      if (entry.isGone || this.#streak.silentMs(entry.changedAt) < goneAfterMsOf(entry.lease)) continue;
      this.#entries.set(id, { ...entry, isGone: true });
      gone.push(id);
    }
    return gone;
  }

  /** When a renewal of this replica may prove the next one gone. */
  nextProofAt(): number {
    const times = [...this.#entries.values()]
      .filter(({ isGone }) => !isGone)
      .map(({ changedAt, lease }) => this.#streak.provableAt(changedAt, goneAfterMsOf(lease)));
    return Math.min(...times, Number.POSITIVE_INFINITY);
  }

  /** State of the holder of a lease in this version. */
  stateOf(id: string, resourceVersion: string): HolderState {
    const entry = this.#entries.get(id);
    if (entry === undefined) return 'Unknown';
    if (!entry.isGone) return 'Alive';
    // It may have come back and written a lease that the watch has not shown yet.
    const isCovered = this.#streak.covers(resourceVersion) || isWrittenBeforeItLeft(entry, resourceVersion);
    return isCovered ? 'Gone' : 'Alive';
  }

  alive(): Member[] {
    return [...this.#entries]
      .filter(([, { isGone, isPresent }]) => isPresent && !isGone)
      .map(([id, { facts }]) => memberOf(id, facts));
  }

  /** Members that have been silent for at least this long, and whether their lease still exists. */
  silentFor(ms: number): { readonly id: string; readonly lease: CachedLease; readonly isPresent: boolean }[] {
    return [...this.#entries]
      .filter(([, { isGone, changedAt }]) => isGone && this.#streak.silentMs(changedAt) >= ms)
      .map(([id, { lease, isPresent }]) => ({ id, lease, isPresent }));
  }
}

/** Nothing that the process wrote is newer than its last word, and all up to that has been seen. */
function isWrittenBeforeItLeft({ facts, lease }: Entry, resourceVersion: string): boolean {
  return facts.hasLeft && compareResourceVersions(resourceVersion, lease.resourceVersion) <= 0;
}
