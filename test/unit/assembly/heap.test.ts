import { afterEach, describe, expect, it } from 'vitest';
import { heapKeeper } from '../../../src/assembly/heap.ts';
import { silentLogger } from '../../../src/logger.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

const LOOK_EACH_MS = 5_000;

class HeapRig {
  readonly clock = new FakeClock();
  readonly abort = new AbortController();
  readonly running: Promise<void>;
  collections = 0;
  sizeBytes = 100;
  leftBytes = 40;
  isCalm = true;
  #becomesCalm: () => void = () => {};

  constructor() {
    const rig = this;
    const traffic = {
      get isCalm() {
        return rig.isCalm;
      },
      onCalm: (listener: () => void) => {
        rig.#becomesCalm = listener;
      },
    };
    const heap = {
      sizeBytes: () => this.sizeBytes,
      collect: () => {
        this.collections += 1;
        this.sizeBytes = this.leftBytes;
      },
    };
    this.running = heapKeeper({ heap, traffic, clock: this.clock, logger: silentLogger }).run(this.abort.signal);
  }

  async burstEnds(): Promise<void> {
    this.#becomesCalm();
    await settle();
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advanceAsync(ms);
  }
}

describe('the heap', () => {
  let rig: HeapRig;

  afterEach(async () => {
    rig.abort.abort();
    await rig.running;
  });

  it('is collected once, at the first look that finds 5 s of calm', async () => {
    rig = new HeapRig();
    await rig.pass(1);
    await rig.burstEnds();
    await rig.pass(LOOK_EACH_MS);
    expect(rig.collections).toBe(0);
    await rig.pass(LOOK_EACH_MS);
    expect(rig.collections).toBe(1);
    await rig.pass(10 * LOOK_EACH_MS);
    expect(rig.collections).toBe(1);
  });

  it('is left alone between the waves of a burst', async () => {
    rig = new HeapRig();
    for (let wave = 0; wave < 5; wave++) {
      await rig.pass(1_000);
      await rig.burstEnds();
      await rig.pass(LOOK_EACH_MS - 1_000);
    }
    expect(rig.collections).toBe(0);
    await rig.pass(LOOK_EACH_MS);
    expect(rig.collections).toBe(1);
  });

  it('is left alone while a burst goes on', async () => {
    rig = new HeapRig();
    rig.isCalm = false;
    await rig.pass(10 * LOOK_EACH_MS);
    expect(rig.collections).toBe(0);
    rig.isCalm = true;
    await rig.pass(LOOK_EACH_MS);
    expect(rig.collections).toBe(1);
  });

  it.each([
    { grownTo: 53, collections: 1 },
    { grownTo: 54, collections: 2 },
  ])('is collected again when it is a third larger: $grownTo of 40', async ({ grownTo, collections }) => {
    rig = new HeapRig();
    await rig.pass(LOOK_EACH_MS);
    rig.sizeBytes = grownTo;
    await rig.pass(LOOK_EACH_MS);
    expect(rig.collections).toBe(collections);
  });

  it('is not collected while the process ends', async () => {
    rig = new HeapRig();
    await rig.pass(LOOK_EACH_MS - 1);
    rig.abort.abort();
    await rig.running;
    expect(rig.collections).toBe(0);
  });
});
