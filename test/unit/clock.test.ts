import { describe, expect, it } from 'vitest';
import { sleep, systemClock } from '../../src/clock.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';

describe('a sleep', () => {
  it('ends when its time is over', async () => {
    const clock = new FakeClock();
    let isOver = false;
    void sleep(clock, 1000).then(() => (isOver = true));
    await clock.advanceAsync(999);
    expect(isOver).toBe(false);
    await clock.advanceAsync(1);
    expect(isOver).toBe(true);
  });

  it('ends at once on abort, and leaves no timer behind', async () => {
    const clock = new FakeClock();
    const abort = new AbortController();
    const slept = sleep(clock, 1000, abort.signal);
    abort.abort();
    await slept;
    expect(clock.pending).toBe(0);
    await sleep(clock, 1000, abort.signal);
    expect(clock.pending).toBe(0);
  });
});

describe('the system clock', () => {
  it('calls back after a delay unless the timer was cancelled', async () => {
    const calls: string[] = [];
    const before = systemClock.now();
    const cancelled = systemClock.setTimer(() => calls.push('cancelled'), 0);
    cancelled.cancel();
    await new Promise<void>((resolve) => systemClock.setTimer(resolve, 2));
    cancelled.cancel();
    await settle();
    expect(calls).toEqual([]);
    expect(systemClock.now()).toBeGreaterThan(before);
  });
});
