import { describe, expect, it } from 'vitest';
import {
  type CommandInFlight,
  fingerprintOf,
  isGone,
  isInWork,
  type ModuleRecord,
  withCrash,
  withFailure,
  withoutFailure,
} from '../../../src/module/module-record.ts';
import {
  afterResult,
  type Evidence,
  isBefore,
  lostByRestart,
  seenAbsent,
  seenDeactivated,
  seenPresent,
  timedOut,
} from '../../../src/module/record-transitions.ts';
import type { ModuleState } from '../../../src/tunnel/module.ts';
import { BACKOFF, idOf, makeRecord, makeResult, makeSpec } from '../../support/builders.ts';

const KEY = 'biz1:1';
const SENT_AT = 1_000_000;
const FAILURE = { reason: 'ErrImagePull', message: 'no jar' } as const;

function inFlight(command: CommandInFlight['command'], more: Partial<CommandInFlight> = {}): CommandInFlight {
  const rest = { uncertain: false, isBusy: false, fingerprint: 'f1', isReplacing: false };
  return { command, sentAt: SENT_AT, deadlineAt: SENT_AT + 60_000, ...rest, ...more };
}

/** What a list says that comes, and was asked for, so long after the command. */
function evidence(afterMs: number, more: Partial<Evidence> = {}): Evidence {
  const now = SENT_AT + afterMs;
  return { now, publishedAt: undefined, askedAt: now, isTied: false, mayBeAdopted: true, backoff: BACKOFF, ...more };
}

function listed(record: ModuleRecord, state: ModuleState, when: Evidence): ModuleRecord {
  return seenPresent(record, { ...idOf(KEY), state }, when);
}

describe('a message is older than one that was heard', () => {
  it.each([
    [100_000, 100_000, false],
    [99_999, 100_000, true],
    [70_001, 100_000, true],
    [70_000, 100_000, false],
    [100_001, 100_000, false],
  ])('sent at %d, heard one of %d: %s', (publishedAt, heardAt, isOld) => {
    expect(isBefore(publishedAt, heardAt)).toBe(isOld);
  });
});

describe('a list', () => {
  const active = makeRecord(KEY, { state: 'ACTIVATED', publishedAt: 500, answeredAt: SENT_AT });

  it('that was published before the newest word about the module changes nothing', () => {
    expect(listed(active, 'BROKEN', evidence(0, { publishedAt: 499 }))).toBe(active);
    expect(seenAbsent(active, evidence(0, { publishedAt: 499 }))).toBe(active);
    expect(listed(active, 'BROKEN', evidence(0, { publishedAt: 500 })).state).toBe('BROKEN');
  });

  it('that was asked for before the last answer changes nothing, where the transport tells', () => {
    const older = { askedAt: SENT_AT - 1 };
    expect(listed(active, 'BROKEN', evidence(0, { ...older, isTied: true }))).toBe(active);
    expect(listed(active, 'BROKEN', evidence(0, { ...older, isTied: false })).state).toBe('BROKEN');
    expect(listed(active, 'BROKEN', evidence(0, { isTied: true })).state).toBe('BROKEN');
  });

  it('ends an install that it shows on the base, and not one in work', () => {
    const installing = makeRecord(KEY, { inFlight: inFlight('install'), failure: FAILURE, retryAt: 5 });
    for (const state of ['ACTIVATED', 'DEACTIVATED'] as const) {
      expect(listed(installing, state, evidence(1))).toMatchObject({
        state,
        inFlight: undefined,
        fingerprint: 'f1',
        failure: undefined,
        retryAt: 0,
      });
    }
    expect(listed(installing, 'RESOLVED', evidence(1)).inFlight).toEqual(installing.inFlight);
  });

  it('ends a switch that it shows done, and not one that it does not', () => {
    const switching = makeRecord(KEY, { state: 'DEACTIVATED', inFlight: inFlight('switch'), hasSwitchFailed: true });
    expect(listed(switching, 'ACTIVATED', evidence(1))).toMatchObject({ inFlight: undefined, hasSwitchFailed: false });
    expect(listed(switching, 'DEACTIVATED', evidence(1))).toMatchObject({
      inFlight: switching.inFlight,
      hasSwitchFailed: true,
    });
  });

  it.each([
    ['10 s later, asked for after the command', 10_000, {}, true],
    ['sooner', 9_999, {}, false],
    ['asked for before the command', 20_000, { askedAt: SENT_AT }, false],
  ])('with a module active shows that its uninstall never came, %s', (_, afterMs, more, isLost) => {
    const uninstalling = makeRecord(KEY, { state: 'ACTIVATED', inFlight: inFlight('uninstall'), doubtedUntil: 3 });
    const next = listed(uninstalling, 'ACTIVATED', evidence(afterMs, more));
    expect([next.inFlight === undefined, next.doubtedUntil]).toEqual([isLost, 3]);
  });

  it.each([
    ['10 s later', 10_000, {}, {}, true],
    ['sooner, when the agent may be at it', 9_999, {}, {}, false],
    ['asked for before the command', 20_000, { askedAt: SENT_AT }, {}, false],
    ['of a base that is at work on it', 20_000, {}, { isBusy: true }, false],
    ['after a command that surely arrived', 20_000, {}, { uncertain: false }, false],
  ])('with a module deactivated gives up an uninstall that may be lost: %s', (_, afterMs, more, command, isOver) => {
    const uninstalling = makeRecord(KEY, {
      state: 'ACTIVATED',
      inFlight: inFlight('uninstall', { uncertain: true, ...command }),
    });
    const next = listed(uninstalling, 'DEACTIVATED', evidence(afterMs, more));
    expect(next.inFlight === undefined).toBe(isOver);
    expect(next.doubtedUntil).toBe(isOver ? SENT_AT + 60_000 : 0);
  });

  it('decides about an install that may be lost by what it has left', () => {
    const installing = makeRecord(KEY, { inFlight: inFlight('install', { uncertain: true }), doubtedUntil: 3 });
    expect(listed(installing, 'BROKEN', evidence(1))).toMatchObject({ inFlight: undefined, doubtedUntil: 3 });
    expect(listed(installing, 'RESOLVED', evidence(1)).inFlight).toBeDefined();
    const certain = makeRecord(KEY, { inFlight: inFlight('install') });
    expect(listed(certain, 'BROKEN', evidence(1)).inFlight).toBeDefined();
  });

  it('shows that a switch answered as done had no effect', () => {
    const switched = makeRecord(KEY, { state: 'ACTIVATED', unconfirmed: 'switch' });
    expect(listed(switched, 'DEACTIVATED', evidence(0))).toMatchObject({
      failure: { reason: 'SwitchError' },
      hasSwitchFailed: true,
      unconfirmed: undefined,
      retryAt: SENT_AT + 10_000,
    });
    const installed = { ...switched, unconfirmed: 'install' as const };
    expect(listed(installed, 'DEACTIVATED', evidence(0)).failure).toBeUndefined();
    expect(listed(switched, 'ACTIVATED', evidence(0)).failure).toBeUndefined();
  });

  it('with a module active ends the failure of an install, and not that of an uninstall', () => {
    const failed = (reason: 'ErrImagePull' | 'KillContainerError') =>
      makeRecord(KEY, { state: 'RESOLVED', failure: { reason, message: '' }, retryAt: 7 });
    expect(listed(failed('ErrImagePull'), 'ACTIVATED', evidence(0))).toMatchObject({ failure: undefined, retryAt: 0 });
    expect(listed(failed('KillContainerError'), 'ACTIVATED', evidence(0))).toMatchObject({ retryAt: 7 });
    expect(listed(failed('ErrImagePull'), 'DEACTIVATED', evidence(0))).toMatchObject({ retryAt: 7 });
  });

  it.each([
    ['BROKEN', 'ModuleBroken'],
    ['STOPPED', 'ModuleStopped'],
  ] as const)('with a module %s that ran shows that it ended by itself', (state, reason) => {
    const ran = makeRecord(KEY, { state: 'ACTIVATED', since: SENT_AT - 600_000, failures: 4 });
    const ended = listed(ran, state, evidence(0));
    expect(ended).toMatchObject({ failure: { reason }, failures: 1, retryAt: SENT_AT, since: SENT_AT });
    expect(listed(ended, state, evidence(5_000))).toMatchObject({ failures: 1, since: SENT_AT });
  });

  it('with a module broken that a failed install left is no second failure', () => {
    const left = makeRecord(KEY, { state: 'RESOLVED', failure: FAILURE, failures: 1 });
    expect(listed(left, 'BROKEN', evidence(0))).toMatchObject({ failure: FAILURE, failures: 1 });
    for (const state of ['ACTIVATED', 'DEACTIVATED'] as const) {
      expect(listed({ ...left, state, since: SENT_AT }, 'BROKEN', evidence(0)).failures).toBe(2);
    }
  });
});

describe('a list without a module', () => {
  it('ends its uninstall when it was asked for since', () => {
    const uninstalling = makeRecord(KEY, { state: 'ACTIVATED', fingerprint: 'f', inFlight: inFlight('uninstall') });
    expect(seenAbsent(uninstalling, evidence(5, { askedAt: SENT_AT - 1 }))).toBe(uninstalling);
    expect(seenAbsent(uninstalling, evidence(5, { askedAt: SENT_AT }))).toMatchObject({
      state: undefined,
      inFlight: undefined,
      fingerprint: undefined,
      since: SENT_AT + 5,
    });
  });

  it.each([
    ['surely arrived', false, 60_000],
    ['may be lost', true, 5_000],
  ])('gives up an install that %s at the second such list', (_, uncertain, lostAfterMs) => {
    const installing = makeRecord(KEY, { inFlight: inFlight('install', { uncertain }) });
    expect(seenAbsent(installing, evidence(lostAfterMs - 1))).toBe(installing);
    expect(seenAbsent(installing, evidence(lostAfterMs, { askedAt: SENT_AT - 1 }))).toBe(installing);
    const missing = seenAbsent(installing, evidence(lostAfterMs, { askedAt: SENT_AT }));
    const missingSince = SENT_AT + lostAfterMs;
    expect(missing).toEqual({ ...installing, missingSince });
    expect(seenAbsent(missing, evidence(lostAfterMs + 10, { askedAt: missingSince - 1 }))).toBe(missing);
    expect(seenAbsent(missing, evidence(lostAfterMs + 10, { askedAt: missingSince })).inFlight).toBeUndefined();
  });

  it('is believed when one that was asked for afterwards lacks it too', () => {
    const active = makeRecord(KEY, { state: 'ACTIVATED', since: SENT_AT - 5, fingerprint: 'f' });
    const missing = seenAbsent(active, evidence(0));
    expect(missing).toEqual({ ...active, missingSince: SENT_AT });
    expect(seenAbsent(missing, evidence(9, { askedAt: SENT_AT - 1 }))).toEqual(missing);
    expect(seenAbsent(missing, evidence(9, { askedAt: SENT_AT }))).toMatchObject({
      state: undefined,
      failure: { reason: 'ModuleVanished' },
      failures: 1,
      fingerprint: undefined,
    });
  });

  it('is nothing new of one that is not there, and no failure of one that a failed install left', () => {
    const gone = makeRecord(KEY);
    expect(seenAbsent(gone, evidence(0))).toBe(gone);
    const left = makeRecord(KEY, { state: 'BROKEN', failure: FAILURE, failures: 1, missingSince: SENT_AT });
    expect(seenAbsent(left, evidence(0))).toMatchObject({ state: undefined, failure: FAILURE, failures: 1 });
  });
});

describe('a deactivated module', () => {
  const deactivated = makeRecord(KEY, { state: 'DEACTIVATED' });

  it('has ended where no other version is active, once', () => {
    const ended = seenDeactivated(deactivated, false, evidence(0));
    expect(ended).toMatchObject({ failure: { reason: 'BizDeactivated' }, failures: 1 });
    expect(seenDeactivated(ended, false, evidence(0))).toBe(ended);
    const unswitched = { ...deactivated, failure: { reason: 'SwitchError', message: '' } as const };
    expect(seenDeactivated(unswitched, false, evidence(0)).failure?.reason).toBe('BizDeactivated');
  });

  it('is as it should be beside another version', () => {
    expect(seenDeactivated(deactivated, true, evidence(0))).toBe(deactivated);
    const ended = seenDeactivated(deactivated, false, evidence(0));
    expect(seenDeactivated(ended, true, evidence(0)).failure).toBeUndefined();
    const failed = { ...deactivated, failure: FAILURE };
    expect(seenDeactivated(failed, true, evidence(0))).toBe(failed);
  });

  it('in work, or not deactivated at all, is not judged', () => {
    const working = { ...deactivated, inFlight: inFlight('switch') };
    const active = makeRecord(KEY, { state: 'ACTIVATED' });
    expect(seenDeactivated(working, false, evidence(0))).toBe(working);
    expect(seenDeactivated(active, false, evidence(0))).toBe(active);
  });
});

describe('a restart of the base', () => {
  it('ends what ran, which may be installed again at once', () => {
    const ran = makeRecord(KEY, { state: 'ACTIVATED', failures: 3, retryAt: 9, inFlight: inFlight('uninstall') });
    expect(lostByRestart(ran, SENT_AT)).toMatchObject({
      state: undefined,
      since: SENT_AT,
      inFlight: undefined,
      failure: { reason: 'BaseRestarted' },
      failures: 0,
      retryAt: 0,
    });
  });

  it('is no failure of what was not there yet', () => {
    const coming = makeRecord(KEY, { failure: FAILURE, failures: 3, retryAt: 9, inFlight: inFlight('install') });
    expect(lostByRestart(coming, SENT_AT)).toMatchObject({
      failure: undefined,
      failures: 0,
      retryAt: 0,
      inFlight: undefined,
    });
  });
});

describe('an answer', () => {
  const installing = makeRecord(KEY, { inFlight: inFlight('install') });

  it('busy makes the command uncertain, and leaves the base alone for 5 s', () => {
    const busy = makeResult('install', KEY, { outcome: 'busy' });
    expect(afterResult(installing, busy, false, evidence(0))).toMatchObject({
      inFlight: { uncertain: true, isBusy: true },
      retryAt: SENT_AT + 5_000,
    });
    const other = makeRecord(KEY, { inFlight: inFlight('uninstall') });
    expect(afterResult(other, busy, false, evidence(0))).toBe(other);
  });

  it('failed ends the command that it answers, and no other', () => {
    const failed = makeResult('install', KEY, { outcome: 'failed', message: 'no' });
    const resolved = { ...installing, state: 'RESOLVED' as const };
    expect(afterResult(resolved, failed, false, evidence(0))).toMatchObject({
      state: undefined,
      inFlight: undefined,
      failures: 1,
      retryAt: SENT_AT + 10_000,
      failedFingerprint: 'f1',
    });
    const active = { ...installing, state: 'ACTIVATED' as const };
    expect(afterResult(active, failed, false, evidence(0)).state).toBe('ACTIVATED');
    const other = makeRecord(KEY, { inFlight: inFlight('uninstall') });
    expect(afterResult(other, failed, false, evidence(0))).toBe(other);
  });

  it('done is certain, unless another version is on the base', () => {
    const done = makeResult('install', KEY);
    const tried = { ...installing, hasSwitchFailed: true };
    const next = afterResult(tried, done, false, evidence(0));
    expect(next).toMatchObject({ state: 'ACTIVATED', fingerprint: 'f1', unconfirmed: undefined });
    expect(next.hasSwitchFailed).toBe(false);
    expect(afterResult(installing, done, true, evidence(0)).unconfirmed).toBe('install');
  });

  it('that it was there already leaves the state to the list', () => {
    const already = makeResult('install', KEY, { outcome: 'already', state: undefined });
    expect(afterResult(installing, already, false, evidence(0))).toMatchObject({
      state: 'RESOLVED',
      unconfirmed: 'install',
    });
    const active = { ...installing, state: 'ACTIVATED' as const };
    expect(afterResult(active, already, false, evidence(0)).state).toBe('ACTIVATED');
  });

  it('that never came is a failure after the deadline', () => {
    const command = inFlight('uninstall', { deadlineAt: SENT_AT + 60_400 });
    expect(timedOut(installing, command, SENT_AT, BACKOFF).failure).toEqual({
      reason: 'KillContainerError',
      message: 'the base did not answer uninstall within 60 s',
    });
  });
});

describe('the record of a module', () => {
  it('waits twice as long after each failed command', () => {
    const once = withFailure(makeRecord(KEY), FAILURE, 0, BACKOFF);
    const twice = withFailure(once, { reason: 'SwitchError', message: '' }, 0, BACKOFF);
    expect([once.failures, once.retryAt, once.hasSwitchFailed]).toEqual([1, 10_000, false]);
    expect([twice.failures, twice.retryAt, twice.hasSwitchFailed]).toEqual([2, 20_000, true]);
    expect(withFailure(twice, FAILURE, 0, BACKOFF).hasSwitchFailed).toBe(true);
  });

  it.each([
    ['ACTIVATED', 600_000, 1, 0],
    ['ACTIVATED', 599_999, 3, 20_000],
    ['DEACTIVATED', 600_000, 3, 20_000],
  ] as const)('of one that ended after it was %s for %d ms counts %d failures', (state, ranMs, failures, waitMs) => {
    const now = SENT_AT + ranMs;
    const crashed = withCrash(makeRecord(KEY, { state, since: SENT_AT, failures: 2 }), FAILURE, now, BACKOFF);
    expect([crashed.failures, crashed.retryAt - now]).toEqual([failures, waitMs]);
  });

  it('that is well keeps how often it failed, and nothing else', () => {
    const failed = makeRecord(KEY, { failure: FAILURE, failedFingerprint: 'f', failures: 2, retryAt: 5 });
    expect(withoutFailure(failed)).toEqual({ ...makeRecord(KEY), failures: 2 });
    const busy = makeRecord(KEY, { retryAt: 5 });
    expect(withoutFailure(busy).retryAt).toBe(0);
    const well = makeRecord(KEY);
    expect(withoutFailure(well)).toBe(well);
  });

  it('is in work by a command of ours or of another, and gone when nothing is left and none is sent', () => {
    const states = [undefined, 'RESOLVED', 'UNRESOLVED', 'ACTIVATED', 'BROKEN'] as const;
    expect(states.map((state) => isInWork(makeRecord(KEY, { state })))).toEqual([false, true, true, false, false]);
    expect(isInWork(makeRecord(KEY, { inFlight: inFlight('install') }))).toBe(true);
    expect([undefined, makeRecord(KEY)].map(isGone)).toEqual([true, true]);
    expect(isGone(makeRecord(KEY, { state: 'ACTIVATED' }))).toBe(false);
    expect(isGone(makeRecord(KEY, { inFlight: inFlight('install') }))).toBe(false);
  });

  it('names what is installed by URL, arguments and env in whatever order', () => {
    const spec = makeSpec(KEY, { envs: { b: '2', a: '1' } });
    expect(fingerprintOf(spec)).toBe(fingerprintOf({ ...spec, envs: { a: '1', b: '2' } }));
  });
});
