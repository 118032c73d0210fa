import { setTimeout as delay } from 'node:timers/promises';
import type { ControlPlane } from '../../../samples/control-plane/control-plane.ts';
import { NODE_LEASE_NAMESPACE } from '../../../src/labels.ts';
import type { LeaseFact } from '../../support/cluster/facts.ts';
import { leaseFactOf } from '../../support/cluster/facts-of.ts';
import { ObjectRecorder, type Seen } from '../../support/cluster/object-recorder.ts';
import type { LeaseHistory } from './lease-history.ts';

/** Every version of every node lease, as a watch of our own has told. */
export class LeaseBook {
  readonly #history: LeaseFact[] = [];
  /** By base; emptied as leases go. */
  readonly #newest = new Map<string, LeaseFact>();
  /** Called with each version. Emptied as waits end. */
  readonly #waiters = new Set<() => void>();
  #movedAt = 0;
  #recorder: ObjectRecorder | undefined;

  static async open(admin: ControlPlane['admin']): Promise<LeaseBook> {
    const book = new LeaseBook();
    const path = `/apis/coordination.k8s.io/v1/namespaces/${NODE_LEASE_NAMESPACE}/leases`;
    book.#recorder = await ObjectRecorder.start(admin, path, (seen) => book.#take(seen));
    return book;
  }

  get history(): LeaseHistory {
    return this.#history;
  }

  /** The newest version of each lease, and all that come from now on. */
  view(): () => LeaseHistory {
    const newest = [...this.#newest.values()];
    const mark = this.#history.length;
    return () => [...newest, ...this.#history.slice(mark)];
  }

  /** `base holder`, for the message of a failure. */
  wordsOf(base: string): string {
    const lease = this.#newest.get(base);
    return lease === undefined ? `${base} no lease` : `${base} ${lease.holder || 'nobody'} (${lease.transitions})`;
  }

  /** Bases whose lease names that holder now, sorted. */
  heldBy(holder: string): string[] {
    const held = [...this.#newest.values()].filter((lease) => lease.holder === holder);
    return held.map(({ base }) => base).sort();
  }

  /** Looks again at each version that arrives, until `look` gives something. `what` is asked when it did not. */
  until<T>(what: () => string, timeoutMs: number, look: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(check);
      };
      const check = (): void => {
        const found = look();
        if (found === undefined) return;
        end();
        resolve(found);
      };
      const timer = setTimeout(() => {
        end();
        reject(new Error(`after ${timeoutMs / 1000} s not so: ${what()}`));
      }, timeoutMs);
      this.#waiters.add(check);
      check();
    });
  }

  /** Resolves when no lease has changed hands for that long. */
  async untilUnmoved(forMs: number): Promise<void> {
    for (;;) {
      const leftMs = this.#movedAt + forMs - Date.now();
      if (leftMs <= 0) return;
      await delay(leftMs);
    }
  }

  async close(): Promise<void> {
    await this.#recorder?.stop();
  }

  #take(seen: Seen): void {
    const version = leaseFactOf(seen);
    if (version === undefined) return;
    const { base, at, isGone } = version;
    if (isGone || this.#newest.get(base)?.holder !== version.holder) this.#movedAt = at;
    if (isGone) this.#newest.delete(base);
    else this.#newest.set(base, version);
    this.#history.push(version);
    for (const check of this.#waiters) check();
  }
}
