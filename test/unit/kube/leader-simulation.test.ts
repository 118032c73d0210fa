import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Breakage } from '../../support/lease-simulation/link.ts';
import { runsOf } from '../../support/property-runs.ts';
import { KEY, LeaderWorld } from './support/leader-world.ts';

type Fault =
  | { readonly kind: 'stop'; readonly who: number; readonly ms: number; readonly isSuspended: boolean }
  | { readonly kind: 'cut'; readonly who: number; readonly ms: number; readonly breakage: Breakage }
  | { readonly kind: 'outage'; readonly ms: number; readonly breakage: Breakage }
  | { readonly kind: 'delete'; readonly ms: number }
  | { readonly kind: 'end'; readonly who: number; readonly ms: number };

/** Begins a fault. Returns what ends it. */
function begin(world: LeaderWorld, fault: Fault): () => void {
  const candidate = world.candidates['who' in fault ? fault.who : 0];
  switch (fault.kind) {
    case 'stop':
      candidate?.host.stop(fault.isSuspended);
      return () => candidate?.host.resume();
    case 'cut':
      return broken(candidate?.link, fault.breakage);
    case 'outage':
      return broken(world.machine, fault.breakage);
    case 'delete':
      world.server.drop(KEY);
      return () => {};
    case 'end':
      candidate?.stopping.abort();
      return () => {};
  }
}

function broken(what: { breakage: Breakage | undefined } | undefined, breakage: Breakage): () => void {
  if (what) what.breakage = breakage;
  return () => {
    if (what) what.breakage = undefined;
  };
}

describe('whatever happens', () => {
  const ms = fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 9_000, max: 20_000 }));
  const who = fc.nat({ max: 2 });
  const breakage = fc.constantFrom<Breakage>('Refuses', 'Drops');
  const fault: fc.Arbitrary<Fault> = fc.oneof(
    fc.record({ kind: fc.constant('stop' as const), who, ms, isSuspended: fc.boolean() }),
    fc.record({ kind: fc.constant('cut' as const), who, ms, breakage }),
    fc.record({ kind: fc.constant('outage' as const), ms, breakage }),
    fc.record({ kind: fc.constant('delete' as const), ms }),
    fc.record({ kind: fc.constant('end' as const), who, ms }),
  );

  it('no two lead at a time, and in the end one does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 1e6 }), fc.array(fault, { maxLength: 8 }), async (seed, happening) => {
        const world = new LeaderWorld(seed);
        for (const identity of ['a', 'b', 'c']) world.start(identity);
        await world.pass(7_000);
        for (const one of happening) {
          const end = begin(world, one);
          await world.pass(one.ms);
          end();
        }
        const isLeft = world.candidates.some(({ stopping }) => !stopping.signal.aborted);
        await world.pass(60_000);
        expect(world.leading).toHaveLength(isLeft ? 1 : 0);
      }),
      { numRuns: runsOf(500) },
    );
  });
});
