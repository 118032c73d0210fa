import fc from 'fast-check';
import { it } from 'vitest';
import { play, scenes } from '../../support/lease-simulation/scene.ts';
import { runsOf } from '../../support/property-runs.ts';

/** For long runs, e.g. LEASE_RUNS=5000; LEASE_SEED repeats one. */
const RUNS = Number(process.env.LEASE_RUNS ?? runsOf(80));
const SEED = process.env.LEASE_SEED === undefined ? {} : { seed: Number(process.env.LEASE_SEED) };

it('no VNode ever has two leaders, and soon after the last fault each has one', { timeout: 3_600_000 }, async () => {
  await fc.assert(fc.asyncProperty(scenes, play), { numRuns: RUNS, ...SEED });
});
