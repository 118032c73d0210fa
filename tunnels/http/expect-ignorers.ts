import type { BaseAddress } from '../../src/tunnel/tunnel.ts';
import { baseKeyOf } from './base-key.ts';

/** Far more than there should ever be; a question finds out again about the rest. */
const MAX_SIZE = 1_000;

/** Bases whose agent was seen to ignore `Expect: 100-continue`, as the public one does not. */
export class ExpectIgnorers {
  /** In the order in which they were found out, the oldest goes when there are too many. */
  readonly #keys = new Set<string>();

  has(base: BaseAddress): boolean {
    return this.#keys.has(baseKeyOf(base));
  }

  add(base: BaseAddress): void {
    this.#keys.add(baseKeyOf(base));
    const [oldest] = this.#keys;
    if (oldest !== undefined && this.#keys.size > MAX_SIZE) this.#keys.delete(oldest);
  }

  /** Another agent may be there now. */
  delete(base: BaseAddress): void {
    this.#keys.delete(baseKeyOf(base));
  }
}
