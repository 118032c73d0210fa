import { gainsReady, losesReady, namesOf, type StatusChange } from './write-order.ts';

/** The writes of Pods that lose a module: a Pod that becomes Ready with a module of that name waits for all of them. */
export class LossWrites {
  /** By name of the module, whether all so far were written. */
  readonly #byName = new Map<string, Promise<boolean>>();

  /** False where a Pod that goes before could not be written: then this one must not be written either. */
  async before(change: StatusChange): Promise<boolean> {
    if (!gainsReady(change)) return true;
    const written = await Promise.all(namesOf(change).map((name) => this.#byName.get(name)));
    return !written.includes(false);
  }

  /** `isWritten` must not reject. */
  begin(change: StatusChange, isWritten: Promise<boolean>): void {
    if (!losesReady(change)) return;
    for (const name of namesOf(change)) {
      const before = this.#byName.get(name);
      const all =
        before !== undefined ? Promise.all([before, isWritten]).then((results) => !results.includes(false)) : isWritten;
      this.#byName.set(name, all);
    }
  }
}
