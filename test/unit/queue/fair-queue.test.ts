import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { Turns } from '../../../src/queue/turns.ts';
import { WorkQueue } from '../../../src/queue/work-queue.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

function groupOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')));
}

/** A queue that is fair to groups, and what has to be true of it. Syncs last until the test ends them. */
class FairRig {
  readonly clock = new FakeClock();
  readonly workers: number;
  readonly queue: WorkQueue;
  /** All keys that have begun, in order. */
  readonly begun: string[] = [];
  /** Keys that wait, in the order in which they were added. */
  readonly waiting: string[] = [];
  /** Keys in work; true = added again meanwhile. */
  readonly running = new Map<string, boolean>();
  readonly #dueAt = new Map<string, number>();
  /** What was wrong with a key that began: the queue takes what a sync throws for a failure of the sync. */
  readonly #faults: unknown[] = [];
  readonly #ends = new Map<string, () => void>();
  /** For each group that waits: the groups that have begun a key before it, with as many keys in work as it has. */
  readonly #passedBy = new Map<string, Set<string>>();

  constructor(workers: number) {
    this.workers = workers;
    this.queue = new WorkQueue({
      name: 'test',
      workers,
      groupOf,
      sync: (key) => {
        try {
          this.#checkTurnOf(key);
        } catch (error) {
          this.#faults.push(error);
        }
        return this.#begin(key);
      },
      clock: this.clock,
      metrics: createMetrics(),
      logger: silentLogger,
    });
    void this.queue.run(new AbortController().signal);
  }

  add(...keys: string[]): void {
    for (const key of keys) {
      this.queue.add(key);
      this.#wait(key);
    }
  }

  addAfter(key: string, delayMs: number): void {
    this.queue.addAfter(key, delayMs);
    this.#dueAt.set(key, Math.min(this.#dueAt.get(key) ?? Number.POSITIVE_INFINITY, this.clock.now() + delayMs));
  }

  forget(key: string): void {
    this.queue.forget(key);
    this.#dueAt.delete(key);
    if (this.waiting.includes(key)) this.waiting.splice(this.waiting.indexOf(key), 1);
    const group = groupOf(key);
    if (!this.waiting.some((one) => groupOf(one) === group)) this.#passedBy.delete(group);
  }

  async advance(ms: number): Promise<void> {
    const until = this.clock.now() + ms;
    for (const [key, at] of [...this.#dueAt].sort(([, a], [, b]) => a - b)) {
      if (at > until) continue;
      this.#dueAt.delete(key);
      this.#wait(key);
    }
    this.clock.advance(ms);
    await settle();
  }

  async end(key: string): Promise<void> {
    const isAgain = this.running.get(key);
    this.running.delete(key);
    this.#passedBy.delete(groupOf(key));
    if (isAgain) this.#wait(key);
    this.#ends.get(key)?.();
    await settle();
  }

  async endAll(): Promise<void> {
    for (const key of [...this.running.keys()]) await this.end(key);
  }

  inWorkOf(group: string): number {
    return [...this.running.keys()].filter((key) => groupOf(key) === group).length;
  }

  /** Groups have what they may have, and no worker is idle that may begin a key. */
  check(): void {
    for (const fault of this.#faults) throw fault;
    const groups = new Set([...this.waiting, ...this.running.keys()].map(groupOf));
    for (const group of groups) expect(this.inWorkOf(group)).toBeLessThanOrEqual(this.workers);
    expect(this.running.size).toBeLessThanOrEqual(2 * this.workers);
    expect(this.queue.depth).toBe(this.waiting.length);
    if (this.waiting.length > 0) expect(this.running.size).toBeGreaterThanOrEqual(this.workers);
    const hasIdleGroup = this.waiting.some((key) => this.inWorkOf(groupOf(key)) === 0);
    if (hasIdleGroup) expect(this.running.size).toBe(2 * this.workers);
  }

  #wait(key: string): void {
    if (this.running.has(key)) this.running.set(key, true);
    else if (!this.waiting.includes(key)) this.waiting.push(key);
  }

  #checkTurnOf(key: string): void {
    const group = groupOf(key);
    expect(this.running.has(key)).toBe(false);
    expect(this.waiting.find((one) => groupOf(one) === group)).toBe(key);
    const inWork = this.inWorkOf(group);
    for (const other of new Set(this.waiting.map(groupOf))) {
      if (other === group) continue;
      expect(this.inWorkOf(other)).toBeGreaterThanOrEqual(inWork);
      if (this.inWorkOf(other) > inWork) continue;
      const passedBy = this.#passedBy.get(other) ?? new Set();
      expect(passedBy.has(group)).toBe(false);
      this.#passedBy.set(other, passedBy.add(group));
    }
  }

  #begin(key: string): Promise<void> {
    this.#passedBy.delete(groupOf(key));
    this.waiting.splice(this.waiting.indexOf(key), 1);
    this.running.set(key, false);
    this.begun.push(key);
    return new Promise((resolve) => this.#ends.set(key, resolve));
  }
}

/** `group/0` to `group/{count - 1}`. */
function keysOf(group: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${group}/${index}`);
}

async function started(workers: number): Promise<FairRig> {
  const rig = new FairRig(workers);
  await settle();
  return rig;
}

it('keeps nothing of a group that has no key left', () => {
  const turns = new Turns({ groupOf, workers: 2 });
  for (const key of ['a/0', 'b/0', 'c/0']) turns.add(key);
  turns.delete('c/0');
  expect([turns.size, turns.take(), turns.take(), turns.size]).toEqual([2, 'a/0', 'b/0', 2]);
  turns.end('a/0');
  expect(turns.size).toBe(1);
  turns.end('b/0');
  expect(turns.size).toBe(0);
});

describe('a queue that is fair to groups', () => {
  it('begins the only key of a group after one key of each other group, however many these have waiting', async () => {
    const rig = await started(1);
    for (const group of ['a', 'b', 'c']) rig.add(...keysOf(group, 5_000));
    await settle();
    rig.add('small/0');
    for (let turn = 0; turn < 3; turn++) await rig.endAll();
    expect(rig.begun.slice(0, 4)).toEqual(['a/0', 'b/0', 'c/0', 'small/0']);
  });

  it('gives groups their turns one after the other, and keeps the order within each', async () => {
    const rig = await started(1);
    rig.add('a/0', 'a/1', 'a/2', 'b/0', 'c/0', 'c/1', 'node-1', 'node-2');
    for (let turn = 0; turn < 8; turn++) {
      await settle();
      await rig.endAll();
    }
    expect(rig.begun).toEqual(['a/0', 'b/0', 'c/0', 'node-1', 'a/1', 'c/1', 'node-2', 'a/2']);
  });

  it('gives a group alone all workers', async () => {
    const rig = await started(8);
    rig.add(...keysOf('large', 20));
    await settle();
    expect(rig.inWorkOf('large')).toBe(8);
  });

  it('begins a key of a group that has none in work while another group holds all workers', async () => {
    const rig = await started(8);
    rig.add(...keysOf('slow', 20));
    await settle();
    rig.add(...keysOf('other', 3));
    await settle();
    expect([rig.inWorkOf('slow'), rig.inWorkOf('other')]).toEqual([8, 1]);
    await rig.end('other/0');
    expect([rig.inWorkOf('slow'), rig.inWorkOf('other')]).toEqual([8, 1]);
  });

  it('shares the workers among the groups that wait as their syncs end', async () => {
    const rig = await started(8);
    rig.add(...keysOf('slow', 40));
    await settle();
    rig.add(...keysOf('other', 40));
    await settle();
    for (let index = 0; index < 8; index++) await rig.end(`slow/${index}`);
    expect([rig.inWorkOf('slow'), rig.inWorkOf('other')]).toEqual([4, 4]);
    for (let index = 0; index < 4; index++) await rig.end(`other/${index}`);
    expect([rig.inWorkOf('slow'), rig.inWorkOf('other')]).toEqual([4, 4]);
  });

  it('lets the group that has begun a key last wait for the others with as many in work', async () => {
    const rig = await started(5);
    rig.add(...keysOf('a', 9), ...keysOf('b', 9), 'c/0');
    await settle();
    await rig.end('a/0');
    await rig.end('c/0');
    expect(rig.begun).toEqual(['a/0', 'b/0', 'c/0', 'a/1', 'b/1', 'a/2', 'b/2']);
  });

  it('works on twice as many keys as it has workers at most, however many groups wait', async () => {
    const rig = await started(2);
    for (const group of ['a', 'b', 'c', 'd', 'e']) rig.add(...keysOf(group, 3));
    await settle();
    expect([...rig.running.keys()]).toEqual(['a/0', 'b/0', 'c/0', 'd/0']);
    await rig.end('a/0');
    expect([...rig.running.keys()]).toEqual(['b/0', 'c/0', 'd/0', 'e/0']);
  });

  it('puts a key that is added during its sync behind all that wait', async () => {
    const rig = await started(1);
    rig.add('a/0', 'a/1', 'b/0');
    await settle();
    rig.queue.addAfter('a/0', 0);
    rig.running.set('a/0', true);
    for (let turn = 0; turn < 4; turn++) await rig.endAll();
    expect(rig.begun).toEqual(['a/0', 'b/0', 'a/1', 'a/0']);
  });

  it('forgets a key that waits, and its group with it', async () => {
    const rig = await started(1);
    rig.add('a/0', 'b/0', 'c/0');
    rig.forget('b/0');
    await settle();
    rig.check();
    expect(rig.begun).toEqual(['a/0', 'c/0']);
  });

  const key = fc.constantFrom('a/0', 'a/1', 'a/2', 'a/3', 'a/4', 'a/5', 'b/0', 'b/1', 'b/2', 'c/0', 'c/1', 'n0', 'n1');
  const happening = fc.oneof(
    { weight: 4, arbitrary: fc.record({ add: fc.array(key, { minLength: 1, maxLength: 8 }) }) },
    { weight: 6, arbitrary: fc.record({ end: fc.nat(20) }) },
    fc.record({ forget: key }),
    fc.record({ later: key, delayMs: fc.integer({ min: 1, max: 50 }) }),
    fc.record({ advance: fc.integer({ min: 1, max: 50 }) }),
  );

  async function happen(rig: FairRig, what: typeof happening extends fc.Arbitrary<infer T> ? T : never, at: number) {
    if ('add' in what) rig.add(...what.add);
    else if ('end' in what) {
      const ended = [...rig.running.keys()][what.end % Math.max(1, rig.running.size)];
      if (ended !== undefined) await rig.end(ended);
    } else if ('forget' in what) rig.forget(what.forget);
    // No two delays end at the same time: their order would be any.
    else if ('later' in what) rig.addAfter(what.later, what.delayMs + at / 1_000);
    else await rig.advance(what.advance);
    await settle();
    rig.check();
  }

  it('loses no key, runs none twice at a time, and lets every group have its turn and its share', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(happening, { maxLength: 60 }), async (workers, all) => {
        const rig = await started(workers);
        for (const [index, what] of all.entries()) await happen(rig, what, index);
        await rig.advance(1_000);
        while (rig.running.size > 0) {
          await rig.endAll();
          rig.check();
        }
        expect([rig.waiting, rig.queue.depth]).toEqual([[], 0]);
      }),
      { numRuns: 200 },
    );
  });
});
