import { describe, expect, it } from 'vitest';
import { BASES, ControllerWorld, type Fault } from './controller-world.ts';

async function settled(): Promise<ControllerWorld> {
  const world = new ControllerWorld();
  world.apply('1.0.0');
  await world.run();
  world.mostLive = 0;
  world.leastServed = 3;
  return world;
}

const FAULTS = [{ isDone: false }, { isDone: true }, { isDone: false, isLost: true }, { isDone: true, isLost: true }];

/** Every write of an undisturbed run, with every fault. */
function faultsOf(writes: number): Fault[] {
  return Array.from({ length: writes }, (_, index) => FAULTS.map((fault) => ({ atWrite: index + 1, ...fault }))).flat();
}

describe('a controller that is killed, or gets no answer, at any write', () => {
  it('ends a rollout where an undisturbed one ends, and no Pod is missing on the way', async () => {
    const undisturbed = await settled();
    undisturbed.apply('2.0.0');
    await undisturbed.run();
    expect(undisturbed.end).toEqual({
      pods: BASES.map((name) => `2.0.0 ${name}`),
      status: { updatedReplicas: 3, availableReplicas: 3, revision: 2 },
      revisions: [1, 2],
    });
    expect(undisturbed.writes).toBeGreaterThan(10);
    for (const fault of faultsOf(undisturbed.writes)) {
      const world = await settled();
      world.apply('2.0.0');
      await world.run(fault);
      expect(world.end, JSON.stringify(fault)).toEqual(undisturbed.end);
      expect([world.leastServed, world.mostLive], JSON.stringify(fault)).toEqual([3, 4]);
    }
  });

  it('ends a rollback where an undisturbed one ends', async () => {
    const rolledBack = async (fault?: Fault): Promise<ControllerWorld> => {
      const world = await settled();
      world.apply('2.0.0');
      await world.run();
      world.edit(({ spec }) => {
        spec.rollbackTo = {};
      });
      await world.run(fault);
      return world;
    };
    const undisturbed = await rolledBack();
    expect(undisturbed.end).toEqual({
      pods: BASES.map((name) => `1.0.0 ${name}`),
      status: { updatedReplicas: 3, availableReplicas: 3, revision: 3 },
      revisions: [2, 3],
    });
    for (const fault of faultsOf(undisturbed.writes))
      expect((await rolledBack(fault)).end, JSON.stringify(fault)).toEqual(undisturbed.end);
  });

  it('creates none of the first Pods twice', async () => {
    const undisturbed = new ControllerWorld();
    undisturbed.apply('1.0.0');
    await undisturbed.run();
    for (const fault of faultsOf(undisturbed.writes)) {
      const world = new ControllerWorld();
      world.apply('1.0.0');
      await world.run(fault);
      expect(world.mostLive, JSON.stringify(fault)).toBe(3);
      expect(world.end).toEqual(undisturbed.end);
    }
  });
});
