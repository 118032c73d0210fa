import { Fifo } from './fifo.ts';

/** Keys that wait and keys in work of one group. */
interface Group {
  readonly name: string;
  readonly waiting: Fifo<string>;
  inWork: number;
}

export interface TurnsOptions {
  readonly groupOf: (key: string) => string;
  /** How many keys may be in work. */
  readonly workers: number;
}

/**
 * Order of waiting keys that is fair to groups. The next key is one of the group with the fewest keys in work. Groups
 * with equally many take turns, and the keys of one group keep their order: a group alone has all workers, and several
 * groups share them. A group without a key in work does not wait until another group gives up a worker: for such groups
 * there are as many workers again.
 */
export class Turns {
  readonly #options: TurnsOptions;
  /** Emptied as groups have no key left. */
  readonly #groups = new Map<string, Group>();
  /** Groups with waiting keys, by the number of their keys in work. */
  readonly #byInWork: Fifo<Group>[] = [];
  #inWork = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** How many groups it keeps. */
  get size(): number {
    return this.#groups.size;
  }

  /** The key waits from now on. */
  add(key: string): void {
    const name = this.#options.groupOf(key);
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { name, waiting: new Fifo(), inWork: 0 };
      this.#groups.set(name, group);
    }
    group.waiting.add(key);
    this.#place(group);
  }

  /** The key no longer waits. */
  delete(key: string): void {
    const group = this.#groups.get(this.#options.groupOf(key));
    if (group === undefined) return;
    group.waiting.delete(key);
    this.#place(group);
  }

  /** Moves the next key into work and returns it; undefined when none may begin now. */
  take(): string | undefined {
    const { workers } = this.#options;
    if (this.#inWork >= 2 * workers) return undefined;
    const most = this.#inWork < workers ? this.#byInWork.length : 1;
    for (let inWork = 0; inWork < most; inWork++) {
      const group = this.#byInWork[inWork]?.shift();
      const key = group?.waiting.shift();
      if (group === undefined || key === undefined) continue;
      this.#inWork++;
      group.inWork++;
      this.#place(group);
      return key;
    }
    return undefined;
  }

  /** The work on a key that was taken has ended. */
  end(key: string): void {
    const group = this.#groups.get(this.#options.groupOf(key));
    if (group === undefined) return;
    this.#byInWork[group.inWork]?.delete(group);
    this.#inWork--;
    group.inWork--;
    this.#place(group);
  }

  /** Lets a group with waiting keys wait for its turn. A group that does so already keeps its place. */
  #place(group: Group): void {
    const { name, waiting, inWork } = group;
    if (waiting.size > 0) {
      let peers = this.#byInWork[inWork];
      if (peers === undefined) {
        peers = new Fifo();
        this.#byInWork[inWork] = peers;
      }
      peers.add(group);
      return;
    }
    this.#byInWork[inWork]?.delete(group);
    if (inWork === 0) this.#groups.delete(name);
  }
}
