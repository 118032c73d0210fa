import { describe, expect, it } from 'vitest';
import { type Workers, workersFor, workersOfThisMachine } from '../../support/workers.ts';

const GROUPS = ['calm', 'integration', 'e2e', 'replicas'] as const satisfies readonly (keyof Workers)[];

describe('the number of test files at a time', () => {
  it('is lower where two cores are slow or busy with something else, and still lower where they are very slow', () => {
    const [fast, slow, verySlow] = [workersFor(2, 8), workersFor(2, 13), workersFor(2, 30)];
    expect(workersFor(2, 11)).toEqual(fast);
    expect(workersFor(2, 14)).toEqual(slow);
    for (const group of GROUPS) expect(slow[group], group).toBeLessThan(fast[group]);
    for (const group of GROUPS) expect(verySlow[group], group).toBeLessThan(slow[group]);
  });

  it('is not lower for slow cores if they are many', () => {
    expect(workersFor(4, 22)).toEqual(workersFor(2, 11));
  });

  it('is one of the three for this machine', async () => {
    expect([8, 13, 30].map((sampleMs) => workersFor(2, sampleMs))).toContainEqual(await workersOfThisMachine());
  });
});
