import { describe, expect, it } from 'vitest';
import type { ModuleRecord } from '../../../src/module/module-record.ts';
import type { Claim } from '../../../src/pod/claims.ts';
import { decideModule } from '../../../src/pod/module-decision.ts';
import type { ModuleState } from '../../../src/tunnel/module.ts';
import { makePod, makeRecord, makeSpec } from '../../support/builders.ts';

const KEY = 'biz1:1.0.0';
const NOW = 1_000_000;
const owner = makePod();
const claim: Claim = { owner, youngest: owner, spec: makeSpec(KEY), fingerprint: 'mine', isReplacement: false };
const ALONE = {
  succession: { successor: undefined, replacer: undefined, isNewest: true, hasYounger: false },
  isAwaited: false,
  canSwitch: false,
};
const failure = { reason: 'RunContainerError', message: 'no' } as const;

function decide(record: Partial<ModuleRecord>, of: Claim | undefined = claim) {
  const input = { record: makeRecord(KEY, record), claim: of, askedAt: NOW - 1_000, now: NOW, ...ALONE };
  const { view, command = 'nothing', keeps } = decideModule(input);
  const shown = view.kind === 'Waiting' ? view.reason : view.kind;
  return `${command}, ${shown}${keeps ? ', keeps' : ''}`;
}

const unwanted = (record: Partial<ModuleRecord>): string => {
  const input = { record: makeRecord(KEY, record), claim: undefined, askedAt: NOW, now: NOW, ...ALONE };
  return decideModule(input).command ?? 'nothing';
};

describe('a module that a Pod asks for', () => {
  it.each<[ModuleState | undefined, string]>([
    [undefined, 'install, Installing'],
    ['UNRESOLVED', 'nothing, Installing, keeps'],
    ['RESOLVED', 'nothing, Installing, keeps'],
    ['ACTIVATED', 'nothing, Running, keeps'],
    ['DEACTIVATED', 'nothing, BizDeactivated, keeps'],
    ['BROKEN', 'uninstall, ModuleBroken, keeps'],
    ['STOPPED', 'uninstall, ModuleBroken, keeps'],
  ])('and that is %s: %s', (state, decision) => {
    expect(decide({ state })).toBe(decision);
  });

  it('and that failed waits for its time, then is tried again', () => {
    expect(decide({ failure, failures: 1, retryAt: NOW + 1 })).toBe('nothing, RunContainerError');
    expect(decide({ failure, failures: 2, retryAt: NOW + 1 })).toBe('nothing, CrashLoopBackOff');
    expect(decide({ failure, failures: 2, retryAt: NOW })).toBe('install, CrashLoopBackOff');
  });

  it('and that failed in another form does not wait for that', () => {
    const record = { failure, failures: 3, retryAt: NOW + 1, failedFingerprint: 'other' };
    expect(decide(record)).toBe('install, Installing');
    expect(decide({ ...record, failedFingerprint: 'mine' })).toBe('nothing, CrashLoopBackOff');
  });

  it('and that is there in another form is uninstalled first', () => {
    expect(decide({ state: 'ACTIVATED' }, { ...claim, isReplacement: true })).toBe('uninstall, ContainerCreating');
  });

  it('and that a list lacked once, or whose state is not sure, is left as it was', () => {
    expect(decide({ state: 'ACTIVATED', missingSince: NOW })).toBe('nothing, Unknown, keeps');
    expect(decide({ state: 'ACTIVATED', unconfirmed: 'install' })).toBe('nothing, Unknown, keeps');
  });
});

describe('a module that nobody asks for any more', () => {
  it.each<ModuleState>(['UNRESOLVED', 'RESOLVED', 'ACTIVATED', 'DEACTIVATED', 'BROKEN', 'STOPPED'])(
    'and that is %s is uninstalled',
    (state) => {
      expect(unwanted({ state })).toBe('uninstall');
    },
  );

  it('and that is gone needs nothing', () => {
    expect(unwanted({ failure, retryAt: NOW + 1 })).toBe('nothing');
  });

  it('and whose uninstall failed waits for its time', () => {
    const failed = { state: 'ACTIVATED', failure: { reason: 'KillContainerError', message: 'in use' } } as const;
    expect(unwanted({ ...failed, retryAt: NOW + 1 })).toBe('nothing');
    expect(unwanted({ ...failed, retryAt: NOW })).toBe('uninstall');
  });

  it('does not wait for the back-off of its install', () => {
    expect(unwanted({ state: 'BROKEN', failure, retryAt: NOW + 60_000 })).toBe('uninstall');
  });
});

describe('a DEACTIVATED version on a base that can be switched', () => {
  const decideSwitch = (record: Partial<ModuleRecord>, isNewest = true): string => {
    const input = { record: makeRecord(KEY, { state: 'DEACTIVATED', ...record }), claim, askedAt: NOW, now: NOW };
    const succession = { ...ALONE.succession, isNewest };
    const { view, command = 'nothing', wakeAt } = decideModule({ ...input, ...ALONE, succession, canSwitch: true });
    const shown = view.kind === 'Waiting' ? view.reason : view.kind;
    return `${command}, ${shown}${wakeAt === undefined ? '' : `, again in ${wakeAt - NOW}`}`;
  };
  const failed = { failure: { reason: 'SwitchError', message: 'no' }, failures: 1 } as const;
  const ended = { failure: { reason: 'BizDeactivated', message: 'alone' }, failures: 1 } as const;

  it.each<[string, Partial<ModuleRecord>, boolean, string]>([
    ['that is the newest is switched to', {}, true, 'switch, Installing'],
    ['that a younger one follows is left alone', {}, false, 'nothing, BizDeactivated'],
    ['that a younger one follows is left alone, also with none active', ended, false, 'nothing, BizDeactivated'],
    ['with none active is switched to', ended, true, 'switch, Installing'],
    [
      'with none active is switched to however often others failed',
      { ...ended, failures: 5 },
      true,
      'switch, Installing',
    ],
    ['whose switch failed waits', { ...failed, retryAt: NOW + 5 }, true, 'nothing, SwitchError, again in 5'],
    ['whose switch failed is switched to again in its time', { ...failed, retryAt: NOW }, true, 'switch, SwitchError'],
    ['that is doubted is left alone', { missingSince: NOW }, true, 'nothing, Unknown'],
  ])('%s', (_, record, isNewest, decision) => {
    expect(decideSwitch(record, isNewest)).toBe(decision);
  });

  it('keeps what it replaces on the base until it is the active one', () => {
    const input = { record: makeRecord(KEY, { state: 'ACTIVATED' }), claim: undefined, askedAt: NOW, now: NOW };
    expect(decideModule({ ...input, ...ALONE, isAwaited: true, canSwitch: true })).toMatchObject({ keeps: false });
    expect(decideModule({ ...input, ...ALONE, isAwaited: true, canSwitch: true }).command).toBeUndefined();
    expect(decideModule({ ...input, ...ALONE, canSwitch: true }).command).toBe('uninstall');
  });
});
