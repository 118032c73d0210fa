import os from 'node:os';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
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

describe('boot time', () => {
  afterEach(() => void vi.restoreAllMocks());

  it('is that of the machine, in ms', () => {
    const uptime = vi.spyOn(os, 'uptime').mockReturnValue(12.34);
    expect(systemClock.bootTime()).toBeCloseTo(12_340, 6);
    uptime.mockRestore();
    expect(systemClock.bootTime()).toBeGreaterThan(0);
  });

  it('is NaN where it cannot be read', () => {
    vi.spyOn(os, 'uptime').mockImplementation(() => {
      throw new Error('uv_uptime');
    });
    expect(systemClock.bootTime()).toBeNaN();
  });
});

describe('a timer of the system clock', () => {
  const DAY_MS = 86_400_000;
  /** The longest that one timeout of Node takes. */
  const LINK_MS = 2 ** 31 - 1;
  let calls: number[];

  beforeEach(() => {
    vi.useFakeTimers();
    calls = [];
  });

  afterEach(() => void vi.useRealTimers());

  const called = (): void => void calls.push(systemClock.now());

  it.each([
    ['1 ms', 1],
    ['as many ms as Node takes', LINK_MS],
    ['1 ms more than that', LINK_MS + 1],
    ['30 days', 30 * DAY_MS],
    ['10 years', 3_650 * DAY_MS],
  ])('of %s calls back once, when that is over and not before', (_, delayMs) => {
    const start = systemClock.now();
    systemClock.setTimer(called, delayMs);
    vi.advanceTimersByTime(delayMs - 1);
    expect(calls).toEqual([]);
    vi.advanceTimersByTime(1 + 100 * DAY_MS);
    expect(calls).toEqual([start + delayMs]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('does not add up by how much each timeout of its chain comes late', () => {
    const now = performance.now.bind(performance);
    systemClock.setTimer(called, 3 * LINK_MS);
    const late = vi.spyOn(performance, 'now').mockImplementation(() => now() + 60_000);
    vi.advanceTimersByTime(3 * LINK_MS - 60_001);
    expect(calls).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(calls).toHaveLength(1);
    late.mockRestore();
  });

  it.each([Number.POSITIVE_INFINITY, Number.NaN])('of %d ms never calls back, and does not spin', (delayMs) => {
    const start = systemClock.now();
    systemClock.setTimer(called, delayMs);
    for (let link = 1; link <= 10; link++) {
      vi.advanceTimersToNextTimer();
      expect(systemClock.now() - start).toBe(link * LINK_MS);
    }
    expect(calls).toEqual([]);
  });

  it('of a time that is past calls back soon', () => {
    systemClock.setTimer(called, Number.NEGATIVE_INFINITY);
    systemClock.setTimer(called, -1);
    vi.advanceTimersByTime(1);
    expect(calls).toHaveLength(2);
  });

  it.each([0, 1, 2])('is cancelled in link %i of its chain', (link) => {
    const timer = systemClock.setTimer(called, 3 * LINK_MS - 10);
    vi.advanceTimersByTime(link * LINK_MS + 5);
    timer.cancel();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(10 * LINK_MS);
    timer.cancel();
    expect(calls).toEqual([]);
  });

  it('wakes a sleep of 30 days after 30 days', async () => {
    void sleep(systemClock, 30 * DAY_MS).then(called);
    await vi.advanceTimersByTimeAsync(30 * DAY_MS - 1);
    expect(calls).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(calls).toHaveLength(1);
  });
});
