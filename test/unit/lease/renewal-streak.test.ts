import { describe, expect, it } from 'vitest';
import { RenewalStreak } from '../../../src/lease/members.ts';

function joinedAt(from: number): RenewalStreak {
  const streak = new RenewalStreak();
  streak.restart(from);
  return streak;
}

describe('the silence of others', () => {
  it('is not proven by a renewal that the watch has not shown', () => {
    const streak = joinedAt(0);
    streak.renewed(10_000, '7');
    expect(streak.isSeen).toBe(false);
    expect(streak.silentMs(0)).toBe(Number.NEGATIVE_INFINITY);
  });

  it('is proven up to when the renewal that was seen had been sent', () => {
    const streak = joinedAt(0);
    streak.renewed(10_000, '7');
    streak.renewed(12_000, '9');
    expect(streak.seen('8')).toBe(true);
    expect(streak.isSeen).toBe(true);
    expect(streak.silentMs(4_000)).toBe(6_000);
    expect(streak.seen('9')).toBe(true);
    expect(streak.silentMs(4_000)).toBe(8_000);
  });

  it('is proven by the last of several renewals that are seen at once', () => {
    const streak = joinedAt(0);
    for (const [sentAt, version] of [
      [10_000, '7'],
      [12_000, '8'],
      [14_000, '9'],
    ] as const)
      streak.renewed(sentAt, version);
    expect(streak.seen('8')).toBe(true);
    expect([streak.silentMs(0), streak.covers('8'), streak.covers('9')]).toEqual([12_000, true, false]);
    expect([streak.seen('9'), streak.seen('9')]).toEqual([true, false]);
  });

  it('is proven no further by a version that shows nothing new of ours', () => {
    const streak = joinedAt(0);
    expect(streak.seen('5')).toBe(false);
    streak.renewed(10_000, '7');
    expect(streak.seen('6')).toBe(false);
    expect(streak.seen('7')).toBe(true);
    expect(streak.seen('8')).toBe(false);
  });

  it('compares versions as numbers', () => {
    const streak = joinedAt(0);
    streak.renewed(10_000, '100');
    expect(streak.seen('99')).toBe(false);
    expect(streak.seen('101')).toBe(true);
  });

  it('counts from the restart at the earliest, and what was proven before is void', () => {
    const streak = joinedAt(0);
    streak.renewed(10_000, '7');
    streak.seen('7');
    streak.renewed(11_000, '8');
    streak.restart(20_000);
    expect(streak.isSeen).toBe(false);
    expect(streak.seen('8')).toBe(false);
    expect(streak.silentMs(0)).toBe(Number.NEGATIVE_INFINITY);
    streak.renewed(25_000, '9');
    streak.seen('9');
    expect(streak.silentMs(0)).toBe(5_000);
    expect(streak.silentMs(21_000)).toBe(4_000);
  });

  it('does not count in an interruption, and does before and after it', () => {
    const streak = joinedAt(0);
    streak.interrupted(3_000, 7_000);
    streak.renewed(9_000, '7');
    streak.seen('7');
    expect([0, 2_000, 3_000, 5_000, 7_000, 8_000].map((at) => streak.silentMs(at))).toEqual([
      5_000, 3_000, 2_000, 2_000, 2_000, 1_000,
    ]);
    expect([0, 5_000, 8_000].map((at) => streak.provableAt(at, 4_800))).toEqual([8_800, 11_800, 12_800]);
  });

  it('is proven before an interruption by a renewal that is seen only after it', () => {
    const streak = joinedAt(0);
    streak.renewed(3_000, '7');
    streak.interrupted(3_000, 7_000);
    streak.renewed(7_000, '9');
    streak.seen('7');
    expect(streak.silentMs(1_000)).toBe(2_000);
    streak.seen('9');
    expect(streak.silentMs(1_000)).toBe(2_000);
  });

  it('is free of interruptions that were before a restart', () => {
    const streak = joinedAt(0);
    streak.interrupted(3_000, 7_000);
    streak.restart(1_000);
    streak.renewed(9_000, '7');
    streak.seen('7');
    expect(streak.silentMs(0)).toBe(8_000);
  });

  it('counts from the end of the first of 17 interruptions, of which 16 are kept', () => {
    const streak = joinedAt(0);
    for (let index = 0; index < 17; index++) streak.interrupted(10_000 * index + 6_000, 10_000 * index + 10_000);
    streak.renewed(170_000, '7');
    streak.seen('7');
    expect(streak.silentMs(0)).toBe(160_000 - 16 * 4_000);
    expect(streak.silentMs(165_000)).toBe(1_000);
  });

  it('can be proven by a renewal that is sent late enough', () => {
    const streak = joinedAt(10_000);
    expect(streak.provableAt(4_000, 6_000)).toBe(16_000);
    expect(streak.provableAt(12_000, 6_000)).toBe(18_000);
    expect(new RenewalStreak().provableAt(0, 6_000)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('what a renewal proves', () => {
  it('holds for what was written up to it, and for nothing later', () => {
    const streak = joinedAt(0);
    streak.renewed(10_000, '7');
    streak.seen('9');
    expect(['6', '7', '8'].map((version) => streak.covers(version))).toEqual([true, true, false]);
  });

  it('comes when it is sent as much later as the silence is long, since the last change or our start', () => {
    const streak = joinedAt(5_000);
    expect([streak.provableAt(8_000, 3_000), streak.provableAt(2_000, 3_000)]).toEqual([11_000, 8_000]);
  });

  it('is known at once when the watch was ahead of the answer', () => {
    const streak = joinedAt(0);
    expect(streak.seen('7')).toBe(false);
    expect(streak.renewed(10_000, '7')).toBe(true);
    expect(streak.renewed(11_000, '8')).toBe(false);
  });
});
