/** An object with the number of its newest change, as a watch shows it. */
export interface ObjectSeen {
  /** `namespace/name`, the same of a Module and of its workload. */
  readonly key: string;
  readonly number: number;
}

/** Times at which a change was seen, ms. */
export interface ChangeSeen {
  readonly number: number;
  /** Time of the first event of the Module with this change; null: there was none. */
  readonly moduleAt: number | null;
  /** Time of the first event of the workload with this change or a later one; null: there was none. */
  readonly workloadAt: number | null;
  /** Whether the workload was seen with a later change first. */
  readonly isOvertaken: boolean;
}

interface Change {
  moduleAt: number | null;
  workloadAt: number | null;
  isOvertaken: boolean;
}

/**
 * Matches the changes of Modules with what becomes of their workloads. Changes have numbers that rise, and those of one
 * object are made in their order. An event may come twice, and that of the workload may come first.
 */
export class ChangeBook {
  readonly #from: number;
  readonly #changes: Change[];
  /** Numbers of changes by key, in their order, that the workload has not been seen with. */
  readonly #waiting = new Map<string, number[]>();
  /** The first events of each workload with a number of this book, by key, in their order. */
  readonly #workloads = new Map<string, { readonly number: number; readonly at: number }[]>();
  #unseen: number;

  /** A book of `count` changes, whose numbers begin with `from`. */
  constructor(from: number, count: number) {
    this.#from = from;
    this.#changes = Array.from({ length: count }, () => ({ moduleAt: null, workloadAt: null, isOvertaken: false }));
    this.#unseen = count;
  }

  takeModule({ key, number }: ObjectSeen, at: number): void {
    const change = this.#changes[number - this.#from];
    if (change === undefined || change.moduleAt !== null) return;
    change.moduleAt = at;
    const early = this.#workloads.get(key)?.find((seen) => seen.number >= number);
    if (early) this.#settle(change, number, early);
    else this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), number]);
  }

  takeWorkload({ key, number }: ObjectSeen, at: number): void {
    if (this.#changes[number - this.#from] === undefined) return;
    const seen = this.#workloads.get(key) ?? [];
    if (seen.some((one) => one.number === number)) return;
    this.#workloads.set(key, [...seen, { number, at }]);
    const waiting = this.#waiting.get(key) ?? [];
    for (const one of waiting) {
      const change = this.#changes[one - this.#from];
      if (change && one <= number) this.#settle(change, one, { number, at });
    }
    const left = waiting.filter((one) => one > number);
    if (left.length === 0) this.#waiting.delete(key);
    else this.#waiting.set(key, left);
  }

  /** Whether both events of all changes were seen. */
  get isComplete(): boolean {
    return this.#unseen === 0;
  }

  /** All changes in the order of their numbers. */
  seen(): ChangeSeen[] {
    return this.#changes.map((change, index) => ({ number: this.#from + index, ...change }));
  }

  #settle(change: Change, number: number, seen: { readonly number: number; readonly at: number }): void {
    change.workloadAt = seen.at;
    change.isOvertaken = seen.number > number;
    this.#unseen -= 1;
  }
}
