import { compareResourceVersions } from '../kube/resource-version.ts';

interface Renewal {
  readonly sentAt: number;
  readonly resourceVersion: string;
}

/**
 * What our own renewals prove of the silence of others. A watch may lag or hang, so that nothing is heard of a
 * replica that lives. But events come in order: when we see our own renewal in the watch, every change that was
 * made before it has been seen too. All times are of our monotonic clock.
 */
export class RenewalStreak {
  /** Oldest first. Emptied as the watch shows them. */
  #unseen: Renewal[] = [];
  #countsFrom = Number.POSITIVE_INFINITY;
  #provenAt = Number.NEGATIVE_INFINITY;
  #provenVersion = '';
  /** What the watch has come to. */
  #seenVersion = '';

  /** Silence counts from `from` on at the earliest; what was proven before is void. */
  restart(from: number): void {
    this.#unseen = [];
    this.#countsFrom = from;
    this.#provenAt = Number.NEGATIVE_INFINITY;
    this.#provenVersion = '';
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

  /** So long, for sure, nothing was written to a lease that was seen to change at `changedAt`. */
  silentMs(changedAt: number): number {
    return this.#provenAt - Math.max(changedAt, this.#countsFrom);
  }

  /** When a renewal has to be sent at the earliest to prove that much silence. */
  provableAt(changedAt: number, silentMs: number): number {
    return Math.max(changedAt, this.#countsFrom) + silentMs;
  }
}
