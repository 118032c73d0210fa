import type { OwnWorld } from '../../support/world.ts';
import type { Subject } from '../scale/subject.ts';
import { BenchReplica } from '../sharding/bench-replica.ts';
import { LeaseBook } from '../sharding/lease-book.ts';
import { isBalanced } from '../sharding/shares.ts';
import type { Sharers } from '../sharding/succession.ts';

const BALANCED_WITHIN_MS = 180_000;
/** Rebalancing goes in rounds of a second. */
const UNMOVED_MS = 4_000;

/** Several controllers that share all bases, as one subject. */
export class Replicas implements Subject, Sharers {
  readonly name = 'controller';
  readonly leases: LeaseBook;
  readonly #world: OwnWorld;
  readonly #launched: BenchReplica[] = [];

  private constructor(world: OwnWorld, leases: LeaseBook) {
    this.#world = world;
    this.leases = leases;
  }

  static async start(world: OwnWorld, count: number): Promise<Replicas> {
    const replicas = new Replicas(world, await LeaseBook.open(world.admin));
    await replicas.launch(count);
    return replicas;
  }

  get living(): BenchReplica[] {
    return this.#launched.filter(({ isAlive }) => isAlive);
  }

  get livingNames(): string[] {
    return this.living.map(({ name }) => name);
  }

  get pid(): number {
    return this.living[0]?.pid ?? Number.NaN;
  }

  get helperPids(): readonly number[] {
    return this.living.slice(1).map(({ pid }) => pid);
  }

  /** So many more; resolves when they hear bases. `env`: variables beside the usual ones. */
  async launch(count: number, env: Readonly<Record<string, string>> = {}): Promise<void> {
    const started = await Promise.all(
      Array.from({ length: count }, async (_, index) => {
        const replica = await BenchReplica.launch(this.#world, `controller-${this.#launched.length + index}`, env);
        this.#launched.push(replica);
        return replica;
      }),
    );
    await Promise.all(started.map((replica) => replica.untilUp()));
  }

  end(replica: BenchReplica, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    return replica.end(signal);
  }

  /** One after the other is replaced, as in a rolling update. */
  async replaceAll(env: Readonly<Record<string, string>>): Promise<void> {
    for (const replica of this.living) {
      await this.launch(1, env);
      await this.end(replica, 'SIGTERM');
    }
  }

  /** Resolves when they share the leases of so many bases evenly, and none moves. */
  async untilShared(bases: number): Promise<void> {
    const counts = (): number[] => this.livingNames.map((name) => this.leases.heldBy(name).length);
    await this.leases.until(
      () => `${bases} leases are shared: ${this.livingNames} ${counts()}`,
      BALANCED_WITHIN_MS,
      () => {
        const held = counts();
        return held.reduce((sum, count) => sum + count, 0) === bases && isBalanced(held) ? true : undefined;
      },
    );
    await this.leases.untilUnmoved(UNMOVED_MS);
  }

  async kill(): Promise<void> {
    await this.leases.close();
    await Promise.all(this.living.map((replica) => this.end(replica, 'SIGKILL')));
  }
}
