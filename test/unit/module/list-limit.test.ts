import { expect, it } from 'vitest';
import { ListLimit } from '../../../src/module/list-limit.ts';

/** Which of the lists that come at these times are read. */
function readOf(limit: ListLimit, times: readonly number[]): number[] {
  return times.filter((now) => limit.admit(now));
}

const EACH_50_MS = Array.from({ length: 100 }, (_, index) => 50 * index);

it('reads one list a second that nobody asked for', () => {
  expect(readOf(new ListLimit(), EACH_50_MS)).toEqual([0, 1_000, 2_000, 3_000, 4_000]);
});

it('reads the answer to a question at once', () => {
  const limit = new ListLimit();
  expect(limit.admit(0)).toBe(true);
  expect(limit.admit(10)).toBe(false);
  limit.asked();
  expect(limit.admit(20)).toBe(true);
  expect(limit.admit(30)).toBe(false);
});

it('does not add up questions that were never answered', () => {
  const limit = new ListLimit();
  for (let count = 0; count < 100; count++) limit.asked();
  expect(
    readOf(
      limit,
      EACH_50_MS.filter((now) => now < 1_000),
    ),
  ).toEqual([0, 50, 100]);
});

it('wants the list that was skipped last, once, when the second is over', () => {
  const limit = new ListLimit();
  limit.admit(0);
  expect(limit.takeSkipped(5_000)).toBe(false);
  limit.admit(5_000);
  limit.admit(5_500);
  expect(limit.takeSkipped(5_900)).toBe(false);
  expect(limit.takeSkipped(6_000)).toBe(true);
  expect(limit.takeSkipped(6_001)).toBe(false);
});

it('wants nothing when a later list was read, and a list again that was refused', () => {
  const limit = new ListLimit();
  limit.admit(0);
  limit.admit(500);
  limit.admit(1_000);
  expect(limit.takeSkipped(2_000)).toBe(false);
  limit.refused();
  expect(limit.takeSkipped(2_000)).toBe(true);
});
