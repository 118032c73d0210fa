/**
 * How many cases a property draws: `count` in each run of the tests, from a fresh seed, and ten times as many in
 * `npm run test:long`. For properties whose cases take long.
 */
export function runsOf(count: number): number {
  return count * Number(process.env.PROPERTY_RUNS_FACTOR ?? 1);
}
