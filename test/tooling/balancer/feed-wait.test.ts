import { expect, test } from 'vitest';
import { waitOf } from '../../../samples/balancer/feed-watch.ts';

test('another replica is asked soon, and all of them ever more rarely', () => {
  expect([1, 2, 3, 4, 20].map((failures) => waitOf(failures, 2))).toEqual([200, 1_000, 2_000, 4_000, 30_000]);
});
