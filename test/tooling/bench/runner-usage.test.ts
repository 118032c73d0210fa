import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { UsageMeter } from '../../bench/usage.ts';
import { resetPeak } from '../../support/cost.ts';

const SELF = [{ name: 'self', pid: process.pid }];
const MIB = 1024 ** 2;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Filled, or the kernel gives no memory for it. */
function useForAMoment(mib: number): void {
  Buffer.alloc(mib * MIB, 1);
}

describe('what a process used', () => {
  it('is the peak of memory since the beginning, also when it is free again', () => {
    useForAMoment(256);
    collectGarbage();
    const meter = new UsageMeter(SELF);
    const [before] = meter.read(SELF);
    expect(before?.peakMib).toBeLessThan((before?.residentMib ?? Number.NaN) + 50);
    useForAMoment(128);
    collectGarbage();
    const [after] = meter.read(SELF);
    expect(after?.peakMib).toBeGreaterThan((before?.peakMib ?? Number.NaN) + 100);
    expect(after?.residentMib).toBeLessThan((after?.peakMib ?? Number.NaN) - 100);
  });

  it('is CPU time since the beginning, all of it of one that was started meanwhile', () => {
    const meter = new UsageMeter(SELF);
    const until = process.cpuUsage().user + 100_000;
    while (process.cpuUsage().user < until);
    const [since] = meter.read(SELF);
    const [all] = new UsageMeter([]).read(SELF);
    expect(since?.cpuSeconds).toBeGreaterThanOrEqual(0.08);
    expect(all?.cpuSeconds).toBeGreaterThan((since?.cpuSeconds ?? Number.NaN) + 0.05);
  });

  it('has no beginning of a process that is nobody', () => {
    // More than any kernel gives.
    expect(resetPeak(2 ** 30)).toBe(false);
  });
});
