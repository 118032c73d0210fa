import { describe, expect, it } from 'vitest';
import { type BatchInput, batchSizes, batchState } from '../../../../src/platform/rollout/batches.ts';

const NOW = new Date('2026-01-01T00:00:00Z');

function state(change: Partial<BatchInput> = {}) {
  return batchState({
    options: { count: 3, needConfirm: true },
    replicas: 6,
    updatedAvailable: 0,
    old: 6,
    confirmBatch: undefined,
    before: undefined,
    completedForMs: 0,
    now: NOW,
    ...change,
  });
}

describe('the sizes of batches', () => {
  it('are equal, with the rest in the first ones', () => {
    expect(batchSizes({ count: 3 }, 6)).toEqual([2, 4, 6]);
    expect(batchSizes({ count: 3 }, 7)).toEqual([3, 5, 7]);
    expect(batchSizes({}, 7)).toEqual([7]);
  });

  it('begin with one Pod where a beta is asked for', () => {
    expect(batchSizes({ count: 3, useBeta: true }, 7)).toEqual([1, 4, 7]);
    expect(batchSizes({ count: 1, useBeta: true }, 3)).toEqual([1, 3]);
    expect(batchSizes({ count: 2, useBeta: true }, 2)).toEqual([1, 2]);
    expect(batchSizes({ count: 3, useBeta: true }, 1)).toEqual([1]);
  });

  it('are never more than there are Pods', () => {
    expect(batchSizes({ count: 100 }, 2)).toEqual([1, 2]);
    expect(batchSizes({ count: 5 }, 0)).toEqual([0]);
  });
});

describe('a rollout in batches', () => {
  it('begins with the first batch, and waits when its Pods serve and the old ones have gone', () => {
    expect(state()).toMatchObject({ updatedLimit: 2, status: { current: 1, total: 3, waitingConfirm: false } });
    expect(state({ updatedAvailable: 2, old: 5 }).status.waitingConfirm).toBe(false);
    expect(state({ updatedAvailable: 2, old: 4 })).toMatchObject({
      updatedLimit: 2,
      status: { current: 1, completed: 1, waitingConfirm: true },
    });
  });

  it('goes on with the batch after the one that was confirmed', () => {
    expect(state({ updatedAvailable: 2, old: 4, confirmBatch: '1' })).toMatchObject({
      updatedLimit: 4,
      status: { current: 2, waitingConfirm: false },
    });
    expect(state({ updatedAvailable: 4, old: 2, confirmBatch: '1' }).status.waitingConfirm).toBe(true);
    expect(state({ updatedAvailable: 6, old: 0, confirmBatch: '2' })).toMatchObject({
      updatedLimit: 6,
      status: { current: 3, completed: 3, waitingConfirm: false },
    });
  });

  it('rests for its interval, from when the batch was first seen to be complete', () => {
    const options = { count: 3, intervalSeconds: 60 };
    const first = state({ options, updatedAvailable: 2, old: 4 });
    expect(first).toMatchObject({ updatedLimit: 2, waitMs: 60_000, status: { completedTime: NOW.toISOString() } });
    const before = first.status;
    expect(state({ options, updatedAvailable: 2, old: 4, before, completedForMs: 20_000 })).toMatchObject({
      updatedLimit: 2,
      waitMs: 40_000,
    });
    const last = state({ options, updatedAvailable: 2, old: 4, before, completedForMs: 60_000 });
    expect([last.updatedLimit, last.waitMs]).toEqual([4, undefined]);
  });
});

describe('the annotation that confirms', () => {
  it('is the number of a batch: anything else confirms none', () => {
    const told = (confirmBatch: string | undefined) => {
      const { status, isConfirmIgnored } = state({ updatedAvailable: 2, old: 4, confirmBatch });
      return [status.waitingConfirm, isConfirmIgnored];
    };
    const [waits, goesOn, isIgnored] = [
      [true, false],
      [false, false],
      [true, true],
    ];
    expect([undefined, '0'].map(told)).toEqual([waits, waits]);
    expect(['1', '3', '003'].map(told)).toEqual([goesOn, goesOn, goesOn]);
    const wrong = ['4', '99', '1000000', 'yes', '-1', '1.5', ''];
    expect(wrong.map(told)).toEqual(wrong.map(() => isIgnored));
  });
});
