import fc from 'fast-check';
import { renewalPeriodMsOf } from '../../../src/lease/lease.ts';
import { type Happening, happenings, heal, inflict } from './faults.ts';
import { checkAtRest, checkBalance, Violation, watchOver } from './invariants.ts';
import { World } from './world.ts';

const START_MS = 20_000;
/** The longest of all: a lease of a holder that nobody knows is taken after 40 s. */
const REPAIRED_MS = 90_000;
const QUIET_MS = 60_000;

export interface Scene {
  readonly seed: number;
  readonly replicas: number;
  readonly bases: number;
  readonly maxLatencyMs: number;
  readonly isRebalancing: boolean;
  readonly renewIntervalMs: number;
  readonly happenings: readonly Happening[];
}

/** LEASE_RENEW_INTERVAL_SECONDS=20, the longest. */
export const EVERY_20_S = renewalPeriodMsOf(20_000);
/** The shortest and the longest. */
export const renewIntervals = fc.constantFrom(renewalPeriodMsOf(10_000), EVERY_20_S);

export const scenes: fc.Arbitrary<Scene> = fc.record({
  seed: fc.nat(),
  replicas: fc.integer({ min: 2, max: 4 }),
  bases: fc.integer({ min: 1, max: 10 }),
  maxLatencyMs: fc.constantFrom(2, 20, 300),
  isRebalancing: fc.boolean(),
  renewIntervalMs: renewIntervals,
  happenings,
});

/** Rejects with the first `Violation`. */
export async function play({ happenings: all, bases, ...options }: Scene): Promise<void> {
  const world = new World(options);
  try {
    watchOver(world);
    world.appear(bases);
    await world.pass(START_MS);
    for (const { afterMs, fault } of all) {
      await world.pass(afterMs);
      inflict(world, fault);
    }
    heal(world);
    await world.pass(REPAIRED_MS);
    checkAtRest(world);
    if (options.isRebalancing) checkBalance(world);
    const count = world.transitions.length;
    await world.pass(QUIET_MS);
    checkAtRest(world);
    if (world.transitions.length > count) throw new Violation('leases still move', world);
  } finally {
    world.close();
  }
}
