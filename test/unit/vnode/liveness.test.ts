import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Brake,
  type BrakeInput,
  graceAfterOutageMs,
  isMassSilence,
  livenessOf,
  nextBrake,
} from '../../../src/vnode/liveness.ts';

/** What the reference promises: a base that is asked has 5 s to answer, and a link without proof is trusted after 5 min. */
const ANSWER_MS = 5_000;
const UNPROVEN_MS = 300_000;

const silence = (silentMs: number, isConfirmed = false) => ({ silentMs, isConfirmed });
const calm: BrakeInput = { now: 0, isLinkUp: true, isLinkProven: false, isMassSilence: false, wasPaused: false };

interface Walk {
  readonly brake: Brake;
  readonly now: number;
  /** When the brake came into its kind. */
  readonly changedAt: number;
}

function expectFairStep({ brake: before, changedAt }: Walk, after: Brake, input: BrakeInput): void {
  const step = `${before.kind} → ${after.kind}`;
  const heldMs = input.now - changedAt;
  expect(step).not.toBe('Proving → Released');
  expect(step).not.toBe('Released → Asking');
  if (step === 'Proving → Asking') {
    expect(input.isLinkUp).toBe(true);
    expect(input.isLinkProven || heldMs >= UNPROVEN_MS).toBe(true);
  }
  if (step === 'Asking → Released') expect(heldMs).toBeGreaterThanOrEqual(ANSWER_MS);
  if (!input.isLinkUp || (input.wasPaused && before.kind !== 'Proving')) expect(after.kind).toBe('Proving');
}

describe('the silence of one base', () => {
  it.each([
    [0, 'Reachable'],
    [24_999, 'Reachable'],
    [25_000, 'Unreachable'],
    [59_999, 'Unreachable'],
    [60_000, 'Dead'],
  ])('of %i ms means %s', (silentMs, verdict) => {
    expect(livenessOf(silence(silentMs), false)).toBe(verdict);
  });

  it('means nothing while nobody is judged, unless it is confirmed', () => {
    fc.assert(
      fc.property(fc.integer({ min: 25_000, max: 1e9 }), (silentMs) => {
        expect(livenessOf(silence(silentMs), true)).toBe('Suspended');
        expect(livenessOf(silence(silentMs, true), true)).toBe(livenessOf(silence(silentMs), false));
      }),
    );
  });
});

describe('mass silence', () => {
  const bases = (silent: number, loud: number, silentMs = 26_000) => [
    ...Array.from({ length: silent }, () => silence(silentMs)),
    ...Array.from({ length: loud }, () => silence(3_000)),
  ];

  it.each([
    ['6 of 10 bases', bases(6, 4), true],
    ['5 of 10 bases', bases(5, 5), false],
    ['3 of 5 bases', bases(3, 2), true],
    ['all of 4 bases: fewer than 5', bases(4, 0), false],
    ['6 of 10 that nobody misses yet', bases(6, 4, 24_000), false],
    ['6 of 10 that passed 25 s within 25 s', bases(6, 4, 50_000), true],
    ['6 of 10 that fell silent long ago, each at its own time', bases(6, 4, 50_001), false],
  ])('is it when %s are silent: %#', (_, silences, isMass) => {
    expect(isMassSilence(silences)).toBe(isMass);
  });

  it('counts those that miss a heartbeat together with the first that passes 25 s', () => {
    const together = [25_000, 23_000, 21_000, 19_000, 17_000].map((ms) => silence(ms));
    expect(isMassSilence([...together, silence(15_000), ...bases(0, 4)])).toBe(true);
    expect(isMassSilence([...together, silence(14_999), ...bases(0, 4)])).toBe(false);
  });

  it('is not made of bases that were asked and did not answer', () => {
    const confirmed = Array.from({ length: 6 }, () => silence(30_000, true));
    expect(isMassSilence([...confirmed, ...bases(0, 4)])).toBe(false);
  });
});

describe('the brake', () => {
  const released: Brake = { kind: 'Released' };

  it.each([
    ['our link is down', { isLinkUp: false }, 'LinkDown'],
    ['most bases fall silent together', { isMassSilence: true }, 'MassSilence'],
    ['we did not run', { wasPaused: true }, 'Paused'],
  ])('goes on when %s', (_, change, reason) => {
    expect(nextBrake(released, { ...calm, ...change })).toMatchObject({ kind: 'Proving', reason });
  });

  it('stays off, as the very same object, while all is well', () => {
    expect(nextBrake(released, calm)).toBe(released);
  });

  it('goes on again when the link is lost while silent bases are asked', () => {
    const asking: Brake = { kind: 'Asking', since: 0, reason: 'MassSilence' };
    expect(nextBrake(asking, { ...calm, now: 1000, isMassSilence: true })).toBe(asking);
    expect(nextBrake(asking, { ...calm, now: 1000, isLinkUp: false }).kind).toBe('Proving');
  });

  it('judges silent bases as soon as their time to answer is over', () => {
    const asking: Brake = { kind: 'Asking', since: 1000, reason: 'MassSilence' };
    expect(nextBrake(asking, { ...calm, now: 1000 + ANSWER_MS - 1 })).toBe(asking);
    expect(nextBrake(asking, { ...calm, now: 1000 + ANSWER_MS })).toEqual(released);
  });

  it('asks after five minutes of an unbroken link without proof, which a link that was lost begins anew', () => {
    const lost = nextBrake(released, { ...calm, isLinkUp: false });
    expect(nextBrake(lost, { ...calm, now: 1000, isLinkUp: false })).toBe(lost);
    const up = nextBrake(lost, { ...calm, now: 2000 });
    expect(nextBrake(up, { ...calm, now: 2000 + UNPROVEN_MS - 1 })).toBe(up);
    expect(nextBrake(up, { ...calm, now: 2000 + UNPROVEN_MS }).kind).toBe('Asking');
    const again = nextBrake(nextBrake(up, { ...calm, now: 3000, isLinkUp: false }), { ...calm, now: 4000 });
    expect(nextBrake(again, { ...calm, now: 4000 + UNPROVEN_MS - 1 })).toBe(again);
    expect(nextBrake(again, { ...calm, now: 4000 + UNPROVEN_MS }).kind).toBe('Asking');
  });

  it('that is on for mass silence is on for the link once that is lost', () => {
    const proving = nextBrake(released, { ...calm, isMassSilence: true });
    expect(nextBrake(proving, { ...calm, now: 1000, isLinkUp: false })).toMatchObject({ reason: 'LinkDown' });
  });

  it('is off at the earliest after proof, or five minutes, and then the time to answer', () => {
    const step = fc.record({
      isLinkUp: fc.boolean(),
      isLinkProven: fc.boolean(),
      isMassSilence: fc.boolean(),
      wasPaused: fc.boolean(),
      passedMs: fc.constantFrom(1000, 1000, 1000, 6000, 100_000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let from: Walk = { brake: released, now: 0, changedAt: 0 };
        for (const { passedMs, ...change } of steps) {
          const input = { now: from.now + passedMs, ...change };
          const brake = nextBrake(from.brake, input);
          expectFairStep(from, brake, input);
          from = { brake, now: input.now, changedAt: brake.kind === from.brake.kind ? from.changedAt : input.now };
        }
      }),
    );
  });

  it('comes off in time when all stays well: no state is a trap', () => {
    const starts: BrakeInput[] = [
      { ...calm, isLinkUp: false },
      { ...calm, isMassSilence: true },
      { ...calm, wasPaused: true },
    ];
    for (const start of starts) {
      for (const isLinkProven of [true, false]) {
        let brake = nextBrake(released, start);
        for (let now = 1000; now <= UNPROVEN_MS + 10_000; now += 1000) {
          brake = nextBrake(brake, { ...calm, now, isLinkProven });
        }
        expect(brake.kind).toBe('Released');
      }
    }
  });
});

describe('after an outage of ours', () => {
  it('a base has as long again to come back, at most two minutes', () => {
    expect([0, 10_000, 120_000, 3_600_000].map(graceAfterOutageMs)).toEqual([0, 10_000, 120_000, 120_000]);
  });
});
