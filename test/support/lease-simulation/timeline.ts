import TinyQueue from 'tinyqueue';

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Chance, the same in every run of a seed. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let hash = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    hash = (hash + Math.imul(hash ^ (hash >>> 7), 61 | hash)) ^ hash;
    return ((hash ^ (hash >>> 14)) >>> 0) / 2 ** 32;
  }

  below(limit: number): number {
    return this.next() * limit;
  }

  chance(probability: number): boolean {
    return probability > 0 && this.next() < probability;
  }

  shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, key: this.next() }))
      .sort((a, b) => a.key - b.key)
      .map(({ item }) => item);
  }
}

/** True time, in ms. What happens at one moment happens in the order in which it was planned. */
export class Timeline {
  #now = 0;
  #order = 0;
  readonly #entries = new TinyQueue<Entry>([], (a, b) => a.at - b.at || a.order - b.order);
  /** Called when everything that an event has set off has settled. Throws to end the run. */
  onStep: () => void = () => {};
  /** Called between microtasks while it answers true. */
  isSampling: () => boolean = () => false;

  get now(): number {
    return this.#now;
  }

  after(delayMs: number, run: () => void): void {
    this.#entries.push({ at: this.#now + Math.max(0, delayMs), order: this.#order++, run });
  }

  async pass(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (let next = this.#entries.peek(); next && next.at <= end; next = this.#entries.peek()) {
      this.#entries.pop();
      this.#now = next.at;
      next.run();
      if (this.isSampling()) await this.#sample();
      await settle();
      this.onStep();
    }
    this.#now = end;
    this.onStep();
  }

  async #sample(): Promise<void> {
    for (let turn = 0; turn < 40; turn++) {
      this.onStep();
      await undefined;
    }
  }
}

/** Lets every promise that can go on without input or time do so. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
