import { beforeEach, describe, expect, it } from 'vitest';
import { ConcurrencyLimit } from '../../../src/kube/transport/concurrency-limit.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

/** Work that lasts until the test ends it. */
class LimitRig {
  readonly clock = new FakeClock();
  readonly limits: number[] = [];
  readonly begun: number[] = [];
  latenessMs = 0;
  /** How often it has become calm. */
  calms = 0;
  readonly #limit: ConcurrencyLimit;
  readonly #ends: (() => void)[] = [];

  constructor(max: number) {
    this.#limit = new ConcurrencyLimit({
      max,
      clock: this.clock,
      onChange: (limit) => this.limits.push(limit),
    });
    this.#limit.giveWayTo(() => this.latenessMs);
    this.#limit.onCalm(() => {
      this.calms += 1;
    });
  }

  add(count: number): void {
    for (let index = 0; index < count; index++) {
      void this.#limit.run(() => {
        this.begun.push(this.begun.length);
        return new Promise<void>((resolve) => this.#ends.push(resolve));
      });
    }
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    return this.#limit.run(work);
  }

  get isCalm(): boolean {
    return this.#limit.isCalm;
  }

  get running(): number {
    return this.#ends.length;
  }

  /** One of them ends `afterMs` later. */
  async end(afterMs = 0): Promise<void> {
    this.clock.advance(afterMs);
    this.#ends.shift()?.();
    await settle();
  }
}

let rig: LimitRig;
beforeEach(() => {
  rig = new LimitRig(8);
});

describe('a limit of what runs at a time', () => {
  it('lets the next one begin when one ends, in order of arrival', async () => {
    rig.add(10);
    await settle();
    expect(rig.begun).toHaveLength(8);
    await rig.end();
    expect([rig.begun.length, rig.running]).toEqual([9, 8]);
  });

  it('passes on what the work resolves with, and what it rejects with, and is free again after both', async () => {
    for (let times = 0; times < 20; times++) {
      expect(await rig.run(async () => times)).toBe(times);
      await expect(rig.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    }
  });

  it('halves with each look while others are late, and leaves two', async () => {
    rig.add(100);
    rig.latenessMs = 2_001;
    for (let times = 0; times < 16; times++) await rig.end(1_000);
    expect(rig.limits).toEqual([8, 4, 2]);
    expect(rig.running).toBe(2);
  });

  it('leaves the smaller half of an odd number', async () => {
    rig = new LimitRig(7);
    rig.add(100);
    rig.latenessMs = 2_001;
    for (let times = 0; times < 8; times++) await rig.end(1_000);
    expect(rig.limits).toEqual([7, 3, 2]);
  });

  it('looks at the first end, and a second later when the effect of the cut can be seen', async () => {
    rig.add(100);
    rig.latenessMs = 60_000;
    for (let times = 0; times < 10; times++) await rig.end(100);
    expect(rig.limits).toEqual([8, 4]);
    await rig.end(100);
    expect(rig.limits).toEqual([8, 4, 2]);
  });

  it('grows every 250 ms and not at each end', async () => {
    rig.add(100);
    rig.latenessMs = 60_000;
    await rig.end();
    rig.latenessMs = 0;
    await rig.end(1_000);
    for (let times = 0; times < 5; times++) await rig.end(50);
    expect(rig.limits).toEqual([8, 4, 5, 6]);
  });

  it('grows by one with each look when they are in time, up to what it was', async () => {
    rig.add(100);
    rig.latenessMs = 9_000;
    for (let times = 0; times < 10; times++) await rig.end(1_000);
    rig.latenessMs = 999;
    for (let times = 0; times < 10; times++) await rig.end(250);
    expect(rig.limits).toEqual([8, 4, 2, 3, 4, 5, 6, 7, 8]);
    expect(rig.running).toBe(8);
  });

  it.each([1_000, 2_000])('stays as it is while they are %i ms late: neither late nor in time', async (latenessMs) => {
    rig.add(100);
    rig.latenessMs = 9_000;
    await rig.end();
    rig.latenessMs = latenessMs;
    for (let times = 0; times < 10; times++) await rig.end(1_000);
    expect(rig.limits).toEqual([8, 4]);
  });

  it('is calm while less than an eighth of it is in use, and says so each time', async () => {
    rig = new LimitRig(16);
    rig.add(1);
    expect(rig.isCalm).toBe(true);
    rig.add(2);
    expect(rig.isCalm).toBe(false);
    await rig.end();
    expect([rig.isCalm, rig.calms]).toEqual([false, 0]);
    await rig.end();
    expect([rig.isCalm, rig.calms]).toEqual([true, 1]);
    await rig.end();
    expect([rig.isCalm, rig.calms]).toEqual([true, 1]);
    rig.add(2);
    await rig.end();
    expect(rig.calms).toBe(2);
  });

  it.each([
    [72, 8, true],
    [72, 9, false],
    [8, 0, true],
    [8, 1, false],
  ])('of %i is calm with %i of them in use: %s', (max, count, isCalm) => {
    rig = new LimitRig(max);
    rig.add(count);
    expect(rig.isCalm).toBe(isCalm);
  });

  it('is calm with nothing to do while others are late, and not with one', async () => {
    rig.add(10);
    rig.latenessMs = 9_000;
    for (let times = 0; times < 10; times++) await rig.end(1_000);
    expect([rig.limits.at(-1), rig.isCalm, rig.calms]).toEqual([2, true, 1]);
    rig.add(1);
    expect(rig.isCalm).toBe(false);
  });
});
