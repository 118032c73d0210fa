import { beforeEach, describe, expect, it } from 'vitest';
import type { Clock, Timer } from '../../../src/clock.ts';
import { LeaseTerm, momentOf } from '../../../src/kube/lease-term.ts';
import { FENCE_AFTER_MS } from '../../../src/lease/member.ts';

const HOUR_MS = 3_600_000;

/** The three clocks of a machine. */
class Machine implements Clock {
  monotonicMs = 1_000;
  wallMs = Date.parse('2026-01-01T00:00:00.000Z');
  bootMs = 50_000;
  isBootTimeReadable = true;
  bootTimeReads = 0;

  now(): number {
    return this.monotonicMs;
  }

  wallTime(): Date {
    return new Date(this.wallMs);
  }

  bootTime(): number {
    this.bootTimeReads += 1;
    return this.isBootTimeReadable ? Math.floor(this.bootMs / 10) * 10 : Number.NaN;
  }

  setTimer(): Timer {
    throw new Error('a term has no timers');
  }

  run(ms: number): void {
    this.monotonicMs += ms;
    this.suspend(ms);
  }

  suspend(ms: number): void {
    this.wallMs += ms;
    this.bootMs += ms;
  }
}

let machine: Machine;
let term: LeaseTerm;

beforeEach(() => {
  machine = new Machine();
  term = new LeaseTerm(machine, FENCE_AFTER_MS);
  term.renewed(momentOf(machine));
  machine.bootTimeReads = 0;
});

describe('a term', () => {
  it('lasts 3.5 s from when the renewal was sent, and reads no boot time for that', () => {
    machine.run(FENCE_AFTER_MS - 1);
    expect(term.isValid()).toBe(true);
    machine.run(1);
    expect(term.isValid()).toBe(false);
    expect(machine.bootTimeReads).toBe(0);
  });

  it.each([HOUR_MS, -HOUR_MS, 5_000, -1_000])('outlives a step of the wall clock by %i ms, and no longer', (stepMs) => {
    machine.run(1_000);
    machine.wallMs += stepMs;
    expect(term.isValid()).toBe(true);
    machine.run(2_400);
    expect(term.isValid()).toBe(true);
    machine.run(100);
    expect(term.isValid()).toBe(false);
  });

  it('outlives a renewal that was on its way when the wall clock was set', () => {
    const sent = momentOf(machine);
    machine.run(50);
    machine.wallMs += HOUR_MS;
    expect(term.renewed(sent)).toBe(false);
    expect(term.isValid()).toBe(true);
    expect(term.number).toBe(1);
  });

  it('reads boot time once for each step, however often it is asked', () => {
    for (const stepMs of [HOUR_MS, -HOUR_MS]) {
      machine.wallMs += stepMs;
      for (let times = 0; times < 100; times++) expect(term.isValid()).toBe(true);
    }
    expect(machine.bootTimeReads).toBe(2);
  });

  it('is over at once after a suspend of 6 s in which the monotonic clock stood still', () => {
    machine.suspend(6_000);
    expect(term.isValid()).toBe(false);
    for (let times = 0; times < 100; times++) term.isValid();
    expect(machine.bootTimeReads).toBe(1);
  });

  it.each([HOUR_MS, -HOUR_MS, -3_000, -5_500, -6_500])(
    'is over after a suspend of 6 s, whatever the wall clock was set by (%i ms)',
    (stepMs) => {
      machine.suspend(6_000);
      machine.wallMs += stepMs;
      expect(term.isValid()).toBe(false);
    },
  );

  it('counts suspends that are shorter than it, also around a step of the wall clock', () => {
    machine.suspend(1_500);
    expect(term.isValid()).toBe(true);
    machine.wallMs -= HOUR_MS;
    expect(term.isValid()).toBe(true);
    machine.suspend(1_500);
    machine.run(400);
    expect(term.isValid()).toBe(true);
    machine.run(100);
    expect(term.isValid()).toBe(false);
  });

  it('is not made longer by the resolution of boot time', () => {
    machine.bootMs += 9;
    term.renewed({ ...momentOf(machine), monotonicMs: machine.monotonicMs + 1 });
    machine.monotonicMs += 1;
    machine.suspend(FENCE_AFTER_MS);
    expect(term.isValid()).toBe(false);
  });

  it('is not renewed by an answer to what was sent before a suspend', () => {
    machine.run(1_000);
    const sent = momentOf(machine);
    machine.suspend(6_000);
    expect(term.renewed(sent)).toBe(true);
    expect(term.isValid()).toBe(false);
    expect(term.renewed(momentOf(machine))).toBe(true);
    expect(term.isValid()).toBe(true);
  });

  it.each([HOUR_MS, -HOUR_MS])(
    'ends at a step of the wall clock (%i ms) where boot time cannot be read, until the next renewal',
    (stepMs) => {
      machine.isBootTimeReadable = false;
      term.renewed(momentOf(machine));
      machine.run(1_000);
      expect(term.isValid()).toBe(true);
      machine.wallMs += stepMs;
      expect(term.isValid()).toBe(false);
      expect(term.renewed(momentOf(machine))).toBe(true);
      expect(term.isValid()).toBe(true);
    },
  );

  it('ends where boot time turns out to follow the wall clock that is set back', () => {
    machine.run(1_000);
    machine.wallMs -= HOUR_MS;
    machine.bootMs -= HOUR_MS;
    expect(term.isValid()).toBe(false);
  });
});
