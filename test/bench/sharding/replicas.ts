import type { OwnWorld } from '../../support/world.ts';
import { BenchReplica } from './bench-replica.ts';
import { LeaseBook } from './lease-book.ts';
import { isBalanced } from './shares.ts';

const BALANCED_WITHIN_MS = 120_000;
/** Rebalancing goes in rounds of a second. */
const UNMOVED_MS = 4_000;

/** Several controllers that share all bases, and the book of their leases. */
export class Replicas {
  readonly leases: LeaseBook;
  readonly #world: OwnWorld;
  readonly #launched: BenchReplica[] = [];
  #names = 0;

  private constructor(world: OwnWorld, leases: LeaseBook) {
    this.#world = world;
    this.leases = leases;
  }

  /** None yet. */
  static async open(world: OwnWorld): Promise<Replicas> {
    return new Replicas(world, await LeaseBook.open(world.admin));
  }

  get living(): BenchReplica[] {
    return this.#launched.filter(({ isAlive }) => isAlive);
  }

  get livingNames(): string[] {
    return this.living.map(({ name }) => name);
  }

  /** How many leases each living replica holds. */
  counts(): number[] {
    return this.livingNames.map((name) => this.leases.heldBy(name).length);
  }

  /**
   * One more, under a name that nobody had; does not wait for it to be a member. `env`: variables beside the usual ones.
   */
  async launch(env: Readonly<Record<string, string>> = {}): Promise<BenchReplica> {
    const replica = await BenchReplica.launch(this.#world, `controller-${this.#names++}`, env);
    this.#launched.push(replica);
    return replica;
  }

  end(replica: BenchReplica, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    return replica.end(signal);
  }

  /** One after the other is replaced, as in a rolling update. */
  async replaceAll(env: Readonly<Record<string, string>>): Promise<void> {
    for (const replica of this.living) {
      await (await this.launch(env)).untilUp();
      await this.end(replica, 'SIGTERM');
    }
  }

  /** Resolves when they share the leases of all bases evenly. */
  async untilBalanced(bases: number): Promise<void> {
    const notYet = (): string => `${bases} leases are shared: ${this.livingNames} ${this.counts()}`;
    await this.leases.until(notYet, BALANCED_WITHIN_MS, () => {
      const counts = this.counts();
      const held = counts.reduce((sum, count) => sum + count, 0);
      return held === bases && isBalanced(counts) ? true : undefined;
    });
  }

  /** Resolves when no lease moves any more. */
  untilUnmoved(): Promise<void> {
    return this.leases.untilUnmoved(UNMOVED_MS);
  }
}
