import { beforeEach, describe, expect, it } from 'vitest';
import { Contest } from '../../../../src/platform/catalog/compose/contest.ts';

const MINUTE = 60_000;

let contest: Contest;
let now: number;

beforeEach(() => {
  contest = new Contest();
  now = 1_000_000;
});

/** Somebody changes the object as soon as it was changed back, until it stays so. Returns for how long. */
function restoreUntilPaused(): number {
  for (let times = 0; times < 10; times++) {
    const pauseMs = contest.found(now);
    if (pauseMs > 0) return pauseMs;
    contest.restored(now);
    now += 1_000;
  }
  throw new Error('no pause');
}

describe('changes of somebody else', () => {
  it('are undone, each that comes seldom', () => {
    for (let times = 0; times < 10; times++) {
      expect(contest.found(now)).toBe(0);
      contest.restored(now);
      now += 30_000;
    }
    expect(contest.quiet(now)).toBe(0);
  });

  it('that go on are undone less and less often, and are one contest', () => {
    const pauses: number[] = [];
    for (let times = 0; times < 7; times++) {
      const pauseMs = restoreUntilPaused();
      pauses.push(pauseMs / MINUTE);
      now += pauseMs;
      expect(contest.pauseMs).toBe(pauseMs);
    }
    expect(pauses).toEqual([1, 2, 4, 8, 15, 15, 15]);
  });

  it('are left alone for the whole of a pause', () => {
    const pauseMs = restoreUntilPaused();
    now += 20_000;
    expect(contest.found(now)).toBe(pauseMs - 20_000);
    expect(contest.quiet(now)).toBe(MINUTE);
    now += 1_000;
    expect(contest.found(now)).toBe(pauseMs - 21_000);
  });

  it('are a contest until a minute was quiet, and then begin from the start', () => {
    const pauseMs = restoreUntilPaused();
    now += pauseMs;
    expect(contest.found(now)).toBe(0);
    contest.restored(now);
    now += MINUTE - 1;
    expect(contest.quiet(now)).toBe(1);
    now += 1;
    expect([contest.quiet(now), contest.pauseMs]).toEqual([0, 0]);
    expect(restoreUntilPaused()).toBe(MINUTE);
  });

  it('after a quiet minute are a new contest, though nobody has looked in that minute', () => {
    const pauseMs = restoreUntilPaused();
    now += pauseMs;
    expect(contest.found(now)).toBe(0);
    contest.restored(now);
    now += MINUTE;
    expect([contest.found(now), contest.pauseMs]).toEqual([0, 0]);
  });

  it('end in a pause when whoever makes them puts the object right', () => {
    restoreUntilPaused();
    expect(contest.quiet(now)).toBe(MINUTE);
    now += MINUTE;
    expect([contest.quiet(now), contest.pauseMs]).toEqual([0, 0]);
  });
});
