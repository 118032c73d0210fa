import { describe, expect, it } from 'vitest';
import { workersFor, workersOfThisMachine } from '../../support/workers.ts';

describe('the number of test files at a time', () => {
  it('is lower where two cores are slow, or are busy with something else', () => {
    const fast = workersFor(2, 7);
    const slow = workersFor(2, 18);

    expect(workersFor(2, 11)).toEqual(fast);
    for (const group of ['integration', 'e2e'] as const) expect(slow[group], group).toBeLessThan(fast[group]);
  });

  it('is not lower for slow cores if they are many', () => {
    expect(workersFor(4, 18)).toEqual(workersFor(2, 9));
  });

  it('is one of the two for this machine', () => {
    expect([workersFor(2, 7), workersFor(2, 18)]).toContainEqual(workersOfThisMachine());
  });
});
