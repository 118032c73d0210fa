import type { Clock } from '../clock.ts';
import { compareResourceVersions } from '../kube/resource-version.ts';
import type { CachedLease } from './lease.ts';
import { isSameFacts, MEMBER_GONE_MS, type Member, type MemberFacts, memberOf } from './member.ts';
import type { HolderState } from './membership.ts';
import type { RenewalStreak } from './renewal-streak.ts';

interface Entry {
  readonly facts: MemberFacts;
  readonly lease: CachedLease;
  /** When it was last seen to change, on our clock. */
  readonly changedAt: number;
  /** Its lease stands; one that was deleted has its time too, for its process may live. */
  readonly isPresent: boolean;
  readonly isGone: boolean;
}

/** The other replicas, as their membership leases tell. */
export class MemberList {
  readonly #clock: Clock;
  readonly #streak: RenewalStreak;
  /** By CLIENT_ID. Emptied by `forget`. */
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock, streak: RenewalStreak) {
    this.#clock = clock;
    this.#streak = streak;
  }

  /** A membership lease of another replica was added or changed. Returns whether more than its time did. */
  changed(lease: CachedLease, facts: MemberFacts): boolean {
    const before = this.#entries.get(lease.holder);
    if (before?.isPresent && before.lease.resourceVersion === lease.resourceVersion) return false;
    const isGone = facts.hasLeft;
    this.#entries.set(lease.holder, { facts, lease, changedAt: this.#clock.now(), isPresent: true, isGone });
    return before === undefined || before.isGone || !isSameFacts(before.facts, facts);
  }

  removed(lease: CachedLease): void {
    const before = this.#entries.get(lease.holder);
    if (before) this.#entries.set(lease.holder, { ...before, changedAt: this.#clock.now(), isPresent: false });
  }

  forget(id: string): void {
    this.#entries.delete(id);
  }

  /** Those who are gone by what was proven since the last call. */
  takeGone(): string[] {
    const gone: string[] = [];
    for (const [id, entry] of this.#entries) {
      if (entry.isGone || this.#streak.silentMs(entry.changedAt) < MEMBER_GONE_MS) continue;
      this.#entries.set(id, { ...entry, isGone: true });
      gone.push(id);
    }
    return gone;
  }

  /** When a renewal of ours may prove the next one gone. */
  nextProofAt(): number {
    const times = [...this.#entries.values()]
      .filter(({ isGone }) => !isGone)
      .map(({ changedAt }) => this.#streak.provableAt(changedAt, MEMBER_GONE_MS));
    return Math.min(...times, Number.POSITIVE_INFINITY);
  }

  /** Of the holder of a lease in this version. */
  stateOf(id: string, resourceVersion: string): HolderState {
    const entry = this.#entries.get(id);
    if (entry === undefined) return 'Unknown';
    if (!entry.isGone) return 'Alive';
    // It may have come back and written a lease that our view has not reached yet.
    const isCovered = this.#streak.covers(resourceVersion) || isWrittenBeforeItLeft(entry, resourceVersion);
    return isCovered ? 'Gone' : 'Alive';
  }

  alive(): Member[] {
    return [...this.#entries]
      .filter(([, { isGone, isPresent }]) => isPresent && !isGone)
      .map(([id, { facts }]) => memberOf(id, facts));
  }

  /** Members that have been silent for so long; and whether their lease still stands. */
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
