import { describe, expect, it } from 'vitest';
import type { ModuleRecord } from '../../../src/module/module-record.ts';
import type { Claim } from '../../../src/pod/claims.ts';
import { decideModule, type ModuleDecisionInput } from '../../../src/pod/module-decision.ts';
import type { VPod } from '../../../src/pod/vpod.ts';
import type { ModuleState } from '../../../src/tunnel/module.ts';
import { makePod, makeRecord, makeSpec, runningStatus } from '../../support/builders.ts';

const KEY = 'biz1:1.0.0';
const NOW = 1_000_000;
const owner = makePod();
const claimOf = (pod: VPod): Claim => {
  return { owner: pod, youngest: pod, spec: makeSpec(KEY), fingerprint: 'mine', isReplacement: false };
};
const claim = claimOf(owner);
const ALONE = {
  succession: {
    successor: undefined,
    coming: undefined,
    replacer: undefined,
    isNewest: true,
    isServed: false,
    isNext: false,
    hasYounger: false,
  },
  isInDoubt: false,
  heir: 'none',
  canSwitch: false,
  activatesNew: false,
} as const;
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

describe('a module that a Pod asks for, shown to the Pod', () => {
  const input = (record: Partial<ModuleRecord> | undefined, more: object = {}) => ({
    record: record && makeRecord(KEY, record),
    claim,
    askedAt: NOW - 1_000,
    now: NOW,
    ...ALONE,
    ...more,
  });
  const inFlight = {
    command: 'install',
    sentAt: NOW - 500,
    deadlineAt: NOW + 60_000,
    uncertain: false,
    isBusy: false,
    fingerprint: undefined,
    isReplacing: false,
  } as const;

  it('is not installed with a fault, and has ended then', () => {
    const decision = decideModule(input(undefined, { fault: 'no version' }));
    expect(decision).toEqual({
      view: { kind: 'Waiting', reason: 'CreateContainerConfigError', message: 'no version', isEnded: true },
      keeps: false,
    });
  });

  it('is looked at 15 s after the command or the last question, and 3 s where the command may be lost', () => {
    expect(decideModule(input({ inFlight }))).toEqual({
      view: { kind: 'Installing', sinceMs: NOW - 500, isSwitch: false },
      keeps: false,
      lookAt: NOW - 500 + 15_000,
      wakeAt: NOW + 60_000,
      isTakeover: false,
    });
    const uncertain = input({ inFlight: { ...inFlight, uncertain: true } }, { askedAt: NOW - 100 });
    expect(decideModule(uncertain).lookAt).toBe(NOW - 100 + 3_000);
    const switching = decideModule(input({ inFlight: { ...inFlight, command: 'switch' } }));
    expect(switching).toMatchObject({ isTakeover: true, view: { isSwitch: true } });
  });

  it('shows the failure before while it is tried again', () => {
    expect(decideModule(input({ inFlight, failure, failures: 1 })).view).toEqual({
      kind: 'Waiting',
      reason: 'RunContainerError',
      message: 'no',
      isEnded: true,
    });
  });

  it('is looked at when a list lacked it, or its state is not sure: at once, then every 3 s', () => {
    const missing = { state: 'ACTIVATED', missingSince: NOW - 500 } as const;
    expect(decideModule(input(missing)).lookAt).toBe(NOW - 500);
    expect(decideModule(input(missing, { askedAt: NOW - 500 })).lookAt).toBe(NOW + 2_500);
    const unsure = { state: 'ACTIVATED', unconfirmed: 'install', since: NOW - 700 } as const;
    expect(decideModule(input(unsure)).lookAt).toBe(NOW - 700);
  });

  it('in work by another’s command is looked at, and uninstalled after its failure', () => {
    const work = { state: 'RESOLVED', since: NOW - 500 } as const;
    expect(decideModule(input(work))).toEqual({
      view: { kind: 'Installing', sinceMs: NOW - 500 },
      keeps: true,
      lookAt: NOW - 500,
    });
    const failed = { ...work, failure, failures: 1 };
    expect(decideModule(input({ ...failed, retryAt: NOW + 1 }))).toMatchObject({ keeps: true, wakeAt: NOW + 1 });
    expect(decideModule(input({ ...failed, retryAt: NOW + 1 })).command).toBeUndefined();
    expect(decideModule(input({ ...failed, retryAt: NOW }))).toMatchObject({ keeps: true, command: 'uninstall' });
  });

  it('that is broken waits for its time to be uninstalled', () => {
    const broken = { state: 'BROKEN', failure, failures: 1 } as const;
    expect(decideModule(input({ ...broken, retryAt: NOW + 1 }))).toMatchObject({ keeps: true, wakeAt: NOW + 1 });
    expect(decideModule(input({ ...broken, retryAt: NOW + 1 })).command).toBeUndefined();
    expect(decideModule(input({ ...broken, retryAt: NOW })).command).toBe('uninstall');
  });

  it('that is there in another form waits for its time to be uninstalled, as ended', () => {
    const changed = { claim: { ...claim, isReplacement: true } };
    const message = 'the module is uninstalled first, since its URL, args or env changed';
    expect(decideModule(input({ state: 'ACTIVATED', retryAt: NOW + 1 }, changed))).toEqual({
      view: { kind: 'Waiting', reason: 'ContainerCreating', message, isEnded: true },
      keeps: false,
      wakeAt: NOW + 1,
    });
    expect(decideModule(input({ state: 'ACTIVATED', failure, retryAt: NOW }, changed))).toEqual({
      view: { kind: 'Waiting', reason: 'RunContainerError', message: `${message}: no`, isEnded: true },
      keeps: false,
      command: 'uninstall',
    });
  });

  it('beside the active version of a younger Pod has not ended, which is expected', () => {
    const beside = (successor: Claim | undefined) =>
      decideModule(
        input({ state: 'DEACTIVATED' }, { succession: { ...ALONE.succession, isNewest: false, successor } }),
      );
    expect(beside(claim)).toMatchObject({ keeps: true, view: { isEnded: false, isExpected: true } });
    expect(beside(undefined)).toMatchObject({ keeps: true, view: { isEnded: false } });
    expect(beside(undefined).view).not.toHaveProperty('isExpected');
  });

  it('whose switch failed is still there', () => {
    const switchFailure = { reason: 'SwitchError', message: 'no' } as const;
    const record = { state: 'DEACTIVATED', failure: switchFailure, retryAt: NOW + 1 } as const;
    const decision = decideModule(input(record, { canSwitch: true }));
    expect(decision).toMatchObject({ keeps: true, wakeAt: NOW + 1, view: { isEnded: false } });
  });

  it('is replaced by a younger Pod: it stays until that one is here', () => {
    const replaced = (isThere: boolean, record: Partial<ModuleRecord> | undefined) =>
      decideModule(input(record, { succession: { ...ALONE.succession, replacer: { claim, isThere } } }));
    expect(replaced(false, { state: 'ACTIVATED' })).toMatchObject({
      keeps: true,
      view: { reason: 'ModuleReplaced', isEnded: false },
    });
    expect(replaced(false, { state: 'ACTIVATED' }).command).toBeUndefined();
    expect(replaced(true, { state: 'ACTIVATED' })).toMatchObject({ keeps: true, command: 'uninstall' });
    expect(replaced(true, undefined)).toMatchObject({ keeps: true, view: { isEnded: true } });
    expect(replaced(true, { state: 'ACTIVATED', missingSince: NOW })).toMatchObject({ keeps: true, lookAt: NOW });
    expect(replaced(true, { inFlight })).toMatchObject({ keeps: false, view: { reason: 'ModuleReplaced' } });
  });

  it('is installed without the strategy that would take a younger Pod’s version off', () => {
    const replacing = { ...claim, spec: makeSpec(KEY, { strategy: 'uninstallThenInstall' }) };
    const installed = (hasYounger: boolean) =>
      decideModule(input(undefined, { claim: replacing, succession: { ...ALONE.succession, hasYounger } })).spec;
    expect(installed(false)?.strategy).toBe('uninstallThenInstall');
    expect(installed(true)).not.toHaveProperty('strategy');
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
    ['that ended before waits for its time', { retryAt: NOW + 5 }, true, 'nothing, Installing, again in 5'],
    ['that ended before is switched to in its time', { retryAt: NOW }, true, 'switch, Installing'],
    ['whose switch failed waits', { ...failed, retryAt: NOW + 5 }, true, 'nothing, SwitchError, again in 5'],
    ['whose switch failed is switched to again in its time', { ...failed, retryAt: NOW }, true, 'switch, SwitchError'],
    ['that is doubted is left alone', { missingSince: NOW }, true, 'nothing, Unknown'],
  ])('%s', (_, record, isNewest, decision) => {
    expect(decideSwitch(record, isNewest)).toBe(decision);
  });

  it.each<[string, Partial<ModuleRecord>]>([
    ['at once', {}],
    ['after the back-off of its crash', { retryAt: NOW + 5 }],
    ['after a failed switch', failed],
    ['after the back-off of that', { ...failed, retryAt: NOW + 5 }],
  ])('that is switched to %s stays: no leaving Pod waits for its end', (_, record) => {
    const input = { record: makeRecord(KEY, { state: 'DEACTIVATED', ...record }), claim, askedAt: NOW, now: NOW };
    expect(decideModule({ ...input, ...ALONE, canSwitch: true }).keeps).toBe(true);
  });

  it('keeps what it replaces on the base until it is the active one', () => {
    const input = { record: makeRecord(KEY, { state: 'ACTIVATED' }), claim: undefined, askedAt: NOW, now: NOW };
    expect(decideModule({ ...input, ...ALONE, heir: 'coming', canSwitch: true })).toMatchObject({ keeps: false });
    expect(decideModule({ ...input, ...ALONE, heir: 'coming', canSwitch: true }).command).toBeUndefined();
    expect(decideModule({ ...input, ...ALONE, heir: 'here', canSwitch: true }).command).toBe('uninstall');
  });
});

describe('a DEACTIVATED version on a base that makes a version active by its install', () => {
  const ran = makePod({ status: { phase: 'Running', containerStatuses: [runningStatus(KEY)] } });
  const decideInstallAgain = (more: Partial<ModuleDecisionInput>, record: Partial<ModuleRecord> = {}): string => {
    const own = { record: makeRecord(KEY, { state: 'DEACTIVATED', ...record }), askedAt: NOW, now: NOW };
    const { command = 'nothing', isTakeover } = decideModule({ ...ALONE, ...own, claim: claimOf(ran), ...more });
    return `${command}${isTakeover ? ', takes over' : ''}`;
  };
  const isServed = { succession: { ...ALONE.succession, isServed: true } };

  it.each<[string, Partial<ModuleDecisionInput>, string]>([
    ['that has run is uninstalled to be installed again', { activatesNew: true }, 'uninstall, takes over'],
    ['that has run is given one try where that is not known', { activatesNew: undefined }, 'uninstall, takes over'],
    ['that has run waits where the base does not do that', { activatesNew: false }, 'nothing'],
    ['that has not run waits: nothing would wait for its install', { activatesNew: true, claim }, 'nothing'],
    [
      'that has not run takes over from a Pod that stays',
      { activatesNew: true, claim, ...isServed },
      'uninstall, takes over',
    ],
    ['also where nothing is known', { activatesNew: undefined, claim, ...isServed }, 'uninstall, takes over'],
    ['but not where the base does not do that', { activatesNew: false, claim, ...isServed }, 'nothing'],
    [
      'that a younger one follows waits',
      { activatesNew: true, succession: { ...ALONE.succession, isNewest: false } },
      'nothing',
    ],
    [
      'that can take over sooner than the newest does so',
      { activatesNew: true, succession: { ...ALONE.succession, isNewest: false, isNext: true } },
      'uninstall, takes over',
    ],
  ])('%s', (_, more, decision) => {
    expect(decideInstallAgain(more)).toBe(decision);
  });

  it('whose uninstall failed waits for its time, and nothing waits for it meanwhile', () => {
    const killed = { failure: { reason: 'KillContainerError', message: 'no' }, failures: 1 } as const;
    expect(decideInstallAgain({ activatesNew: true }, { ...killed, retryAt: NOW + 5 })).toBe('nothing');
    expect(decideInstallAgain({ activatesNew: false }, { ...killed, retryAt: NOW })).toBe('uninstall');
  });
});

describe('a module that no living Pod asks for while another version of its name stays', () => {
  const decideLeaving = (record: Partial<ModuleRecord>, heir: ModuleDecisionInput['heir']): string => {
    const own = { record: makeRecord(KEY, record), claim: undefined, askedAt: NOW, now: NOW };
    const { command = 'nothing', lookAt } = decideModule({ ...ALONE, ...own, heir });
    return lookAt === undefined ? command : `${command}, looks`;
  };

  it.each<[Partial<ModuleRecord>, ModuleDecisionInput['heir'], string]>([
    [{ state: 'ACTIVATED' }, 'coming', 'nothing'],
    [{ state: 'ACTIVATED' }, 'here', 'uninstall'],
    [{ state: 'DEACTIVATED' }, 'coming', 'uninstall'],
    [{ state: 'ACTIVATED', unconfirmed: 'install' }, 'here', 'nothing, looks'],
    [{ state: 'ACTIVATED', unconfirmed: 'switch' }, 'here', 'nothing, looks'],
    [{ state: 'ACTIVATED', unconfirmed: 'install' }, 'none', 'uninstall'],
    [{ state: 'RESOLVED' }, 'here', 'nothing, looks'],
    [{ state: 'RESOLVED' }, 'none', 'uninstall'],
    [{ state: 'RESOLVED', failure: { reason: 'InstallTimeout', message: '' } }, 'here', 'uninstall'],
  ])('%o, heir %s: %s', (record, heir, decision) => {
    expect(decideLeaving(record, heir)).toBe(decision);
  });
});
