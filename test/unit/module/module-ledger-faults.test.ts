import { describe, expect, it } from 'vitest';
import type { ModuleLedger } from '../../../src/module/module-ledger.ts';
import type { ModuleState } from '../../../src/tunnel/module.ts';
import { idOf, makeLedger, makeList, makeResult, makeSpec } from '../../support/builders.ts';

const KEY = 'biz1:1.0.0';
const T0 = 1_795_000_000_000;

function activeLedger(): ModuleLedger {
  const ledger = makeLedger();
  ledger.takeList([], {}, 0);
  ledger.installSent(makeSpec(KEY), 0);
  ledger.takeResult(makeResult('install', KEY), {}, 0);
  return ledger;
}

/** The module ends, is installed again and runs; returns when the next try may be. */
function crashOnce(ledger: ModuleLedger, now: number): number {
  ledger.takeList(makeList(`${KEY} STOPPED`), {}, now);
  const waitMs = Math.max(0, (ledger.get(KEY)?.retryAt ?? 0) - now);
  ledger.commandSent('uninstall', idOf(KEY), now + waitMs);
  ledger.takeResult(makeResult('uninstall', KEY), {}, now + waitMs);
  ledger.installSent(makeSpec(KEY), now + waitMs);
  ledger.takeResult(makeResult('install', KEY), {}, now + waitMs);
  return waitMs;
}

describe('a command whose answer does not come', () => {
  it.each([
    ['install', 300_000, 'InstallTimeout'],
    ['uninstall', 60_000, 'KillContainerError'],
  ] as const)('(%s) has failed after its deadline, and not before', (command, deadlineMs, reason) => {
    const ledger = activeLedger();
    if (command === 'install') ledger.installSent(makeSpec(KEY), 1000);
    else ledger.commandSent('uninstall', idOf(KEY), 1000);
    expect(ledger.expire(deadlineMs + 999)).toEqual([]);
    const ends = ledger.expire(deadlineMs + 1000);
    expect(ends).toEqual([{ command, id: idOf(KEY), result: 'timeout', tookMs: deadlineMs }]);
    expect(ledger.get(KEY)).toMatchObject({ inFlight: undefined, failures: 1, failure: { reason } });
    expect(ledger.get(KEY)?.failure?.message).toContain(`within ${deadlineMs / 1000} s`);
    expect(ledger.expire(deadlineMs + 2000)).toEqual([]);
  });

  it('and that an earlier controller sent has failed once the module stood in work for the install deadline', () => {
    const ledger = makeLedger();
    ledger.takeList(makeList(`${KEY} RESOLVED`), {}, 1000);
    ledger.expire(300_999);
    expect(ledger.get(KEY)?.failure).toBeUndefined();
    ledger.expire(301_000);
    ledger.expire(302_000);
    expect(ledger.get(KEY)).toMatchObject({ failures: 1, failure: { reason: 'InstallTimeout' } });
  });

  it('(install) was lost when two lists, one of them asked for, lack the module a minute later', () => {
    const ledger = makeLedger();
    ledger.takeList([], {}, 0);
    ledger.installSent(makeSpec(KEY), 0);
    for (const now of [15_000, 30_000, 59_000]) {
      ledger.listAsked(now);
      ledger.takeList([], {}, now);
      expect(ledger.get(KEY)?.inFlight).toBeDefined();
    }
    for (const now of [61_000, 64_000]) {
      ledger.listAsked(now);
      ledger.takeList([], {}, now);
    }
    expect(ledger.get(KEY)).toMatchObject({ inFlight: undefined, failures: 0, failure: undefined });
  });

  it('is decided about by two lists, not at once, when it may have been handed over', () => {
    const ledger = makeLedger();
    ledger.takeList([], {}, 0);
    ledger.installSent(makeSpec(KEY), 0);
    ledger.sendFailed(idOf(KEY), true, 0);
    expect(ledger.get(KEY)).toMatchObject({ retryAt: 1000, failures: 0, inFlight: { uncertain: true } });
    for (const now of [500, 5_000]) {
      ledger.listAsked(now);
      ledger.takeList([], {}, now);
      expect(ledger.get(KEY)?.inFlight).toBeDefined();
    }
    ledger.listAsked(6_000);
    ledger.takeList([], {}, 6_100);
    expect(ledger.get(KEY)).toMatchObject({ inFlight: undefined, failures: 0 });
  });

  it('is free to be sent again when it was not handed over', () => {
    const ledger = makeLedger();
    ledger.takeList([], {}, 0);
    ledger.installSent(makeSpec(KEY), 0);
    ledger.sendFailed(idOf(KEY), false, 0);
    expect(ledger.get(KEY)).toMatchObject({ retryAt: 1000, failures: 0, inFlight: undefined });
  });

  it('to uninstall never came when the module is active in a list that was asked for 10 s later', () => {
    const ledger = activeLedger();
    ledger.commandSent('uninstall', idOf(KEY), 0);
    ledger.listAsked(5_000);
    ledger.takeList(makeList(KEY), {}, 5_100);
    expect(ledger.get(KEY)?.inFlight).toBeDefined();
    ledger.listAsked(15_000);
    ledger.takeList(makeList(KEY), {}, 15_100);
    expect(ledger.get(KEY)).toMatchObject({ inFlight: undefined, failures: 0, state: 'ACTIVATED' });
  });

  it('is decided about by the next list after the link was lost', () => {
    const ledger = activeLedger();
    ledger.commandSent('uninstall', idOf(KEY), 0);
    ledger.linkLost();
    expect(ledger.get(KEY)?.inFlight?.uncertain).toBe(true);
    ledger.takeList(makeList(KEY), {}, 1000);
    expect(ledger.get(KEY)).toMatchObject({ inFlight: undefined, state: 'ACTIVATED', failure: undefined });
  });
});

describe('an uninstall', () => {
  it('is still in work when the link was lost and the module is DEACTIVATED, which it is meanwhile', () => {
    const ledger = activeLedger();
    ledger.commandSent('uninstall', idOf(KEY), 0);
    ledger.linkLost();
    ledger.takeList(makeList(`${KEY} DEACTIVATED`), {}, 10_000);
    expect(ledger.get(KEY)?.inFlight).toMatchObject({ command: 'uninstall', uncertain: true });
    ledger.expire(60_000);
    expect(ledger.get(KEY)).toMatchObject({ inFlight: undefined, failure: { reason: 'KillContainerError' } });
  });

  it('that may be lost is given up when a list asked for later still has the module DEACTIVATED after 10 s', () => {
    const ledger = activeLedger();
    ledger.commandSent('uninstall', idOf(KEY), 0);
    ledger.linkLost();
    ledger.listAsked(9_000);
    ledger.takeList(makeList(`${KEY} DEACTIVATED`), {}, 9_900);
    expect(ledger.get(KEY)?.inFlight).toBeDefined();
    ledger.listAsked(10_000);
    ledger.takeList(makeList(`${KEY} DEACTIVATED`), {}, 10_100);
    expect(ledger.get(KEY)?.inFlight).toBeUndefined();
  });

  it('that follows a switch explains why the module is DEACTIVATED: the switch has not failed', () => {
    const ledger = makeLedger();
    ledger.takeList(makeList(`${KEY} DEACTIVATED`), {}, 0);
    ledger.commandSent('switch', idOf(KEY), 1_000);
    ledger.takeResult(makeResult('switch', KEY), {}, 1_000);
    ledger.commandSent('uninstall', idOf(KEY), 2_000);
    ledger.takeList(makeList(`${KEY} DEACTIVATED`), {}, 3_000);
    expect(ledger.get(KEY)).toMatchObject({ inFlight: { command: 'uninstall' }, failure: undefined });
  });
});

describe('a module that is DEACTIVATED', () => {
  const OLD = 'biz1:1';
  const NEW = 'biz1:2';
  const listOf = (...lines: [string, ModuleState][]) => lines.map(([key, state]) => ({ ...idOf(key), state }));

  it('is as it should be beside an active version, or one in work', () => {
    for (const state of ['ACTIVATED', 'RESOLVED'] as const) {
      const ledger = makeLedger();
      ledger.takeList(listOf([OLD, 'DEACTIVATED'], [NEW, state]), {}, 0);
      expect(ledger.get(OLD)).toMatchObject({ failure: undefined, failures: 0 });
    }
  });

  it('has ended when no version is active any more: nothing on the base would ever activate it', () => {
    const ledger = makeLedger();
    ledger.takeList(listOf([OLD, 'DEACTIVATED'], [NEW, 'ACTIVATED']), {}, 0);
    ledger.takeList(listOf([OLD, 'DEACTIVATED']), {}, 1_000);
    expect(ledger.get(OLD)?.failure).toBeUndefined();
    ledger.listAsked(1_000);
    ledger.takeList(listOf([OLD, 'DEACTIVATED']), {}, 1_100);
    expect(ledger.get(OLD)).toMatchObject({ failure: { reason: 'BizDeactivated' }, failures: 1, retryAt: 1_100 });
  });

  it('is well again when another version is active after all', () => {
    const ledger = makeLedger();
    ledger.takeList(listOf([OLD, 'DEACTIVATED']), {}, 0);
    expect(ledger.get(OLD)?.failure).toBeDefined();
    ledger.takeList(listOf([OLD, 'DEACTIVATED'], [NEW, 'ACTIVATED']), {}, 1_000);
    expect(ledger.get(OLD)?.failure).toBeUndefined();
  });
});

describe('a module that a list lacks', () => {
  it('is believed gone only when a list that was asked for afterwards lacks it too', () => {
    const ledger = activeLedger();
    ledger.listAsked(900);
    ledger.takeList([], {}, 1000);
    ledger.takeList([], {}, 1100);
    expect(ledger.get(KEY)).toMatchObject({ state: 'ACTIVATED', missingSince: 1000, failure: undefined });
    ledger.listAsked(1200);
    ledger.takeList([], {}, 1300);
    expect(ledger.get(KEY)).toMatchObject({ state: undefined, failures: 1, failure: { reason: 'ModuleVanished' } });
  });

  it('is as it was when the next list has it again', () => {
    const ledger = activeLedger();
    ledger.takeList([], {}, 1000);
    ledger.listAsked(1100);
    ledger.takeList(makeList(KEY), {}, 1200);
    expect(ledger.get(KEY)).toMatchObject({ state: 'ACTIVATED', since: 0, missingSince: undefined, failures: 0 });
  });
});

describe('an install that fails after a list had the module in work', () => {
  it.each(['RESOLVED', 'BROKEN'])('is one failure, whatever lists say later of what it left: %s', (left) => {
    const ledger = makeLedger();
    ledger.takeList([], {}, 0);
    ledger.installSent(makeSpec(KEY), 100);
    ledger.takeList(makeList(`${KEY} RESOLVED`), {}, 200);
    ledger.takeResult(makeResult('install', KEY, { outcome: 'failed', message: 'no database' }), {}, 300);
    expect(ledger.get(KEY)).toMatchObject({ state: undefined, failures: 1, retryAt: 10_300 });
    for (const [list, now] of [
      [makeList(`${KEY} ${left}`), 400],
      [[], 500],
      [[], 600],
    ] as const) {
      ledger.listAsked(now - 50);
      ledger.takeList(list, {}, now);
    }
    const failure = { reason: 'RunContainerError', message: 'no database' };
    expect(ledger.get(KEY)).toMatchObject({ state: undefined, failures: 1, retryAt: 10_300, failure });
  });
});

describe('a module that ends by itself', () => {
  it.each(['BROKEN', 'STOPPED'])('(%s) may be started again at once the first time, then after 10 s, 20 s, …', () => {
    const ledger = activeLedger();
    const waits: number[] = [];
    let now = 60_000;
    for (let times = 0; times < 5; times++) {
      const waitMs = crashOnce(ledger, now);
      waits.push(waitMs);
      now += waitMs + 60_000;
    }
    expect(waits).toEqual([0, 10_000, 20_000, 40_000, 80_000]);
  });

  it('counts from the start again when it had run for ten minutes', () => {
    const ledger = activeLedger();
    expect(crashOnce(ledger, 1000)).toBe(0);
    expect(crashOnce(ledger, 600_999)).toBe(10_000);
    expect(crashOnce(ledger, 600_999 + 10_000 + 600_000)).toBe(0);
  });
});

describe('messages of a base', () => {
  it('that come out of order change nothing: an older list is dropped', () => {
    const ledger = makeLedger();
    expect(ledger.takeList(makeList(KEY), { publishedAt: T0 + 2000 }, 0)).toBe(true);
    expect(ledger.takeList([], { publishedAt: T0 + 1000 }, 10)).toBe(false);
    expect(ledger.get(KEY)).toMatchObject({ state: 'ACTIVATED', missingSince: undefined });
  });

  it('do not undo an answer that is newer than the list', () => {
    const ledger = activeLedger();
    ledger.commandSent('uninstall', idOf(KEY), 0);
    ledger.takeResult(makeResult('uninstall', KEY), { publishedAt: T0 + 2000 }, 10);
    ledger.takeList(makeList(KEY), { publishedAt: T0 + 1000 }, 20);
    expect(ledger.get(KEY)?.state).toBeUndefined();
    ledger.takeList(makeList(KEY), { publishedAt: T0 + 3000 }, 30);
    expect(ledger.get(KEY)?.state).toBe('ACTIVATED');
  });

  it.each([
    ['an hour back', -3_600_000],
    ['an hour ahead', 3_600_000],
  ])('are still taken after its clock jumped %s', (_, jumpMs) => {
    const ledger = makeLedger();
    ledger.takeList([], { publishedAt: T0 }, 0);
    expect(ledger.takeList(makeList(KEY), { publishedAt: T0 + jumpMs }, 1000)).toBe(true);
    expect(ledger.takeList(makeList(`${KEY} DEACTIVATED`), { publishedAt: T0 + jumpMs + 1000 }, 2000)).toBe(true);
    expect(ledger.get(KEY)?.state).toBe('DEACTIVATED');
  });

  it('without a time are taken as they come', () => {
    const ledger = makeLedger();
    ledger.takeList([], { publishedAt: T0 }, 0);
    expect(ledger.takeList(makeList(KEY), {}, 1)).toBe(true);
  });
});

describe('a base that was restarted', () => {
  it('has lost what its next list lacks: at once, without a back-off', () => {
    const ledger = activeLedger();
    ledger.baseRestarted(T0);
    ledger.takeList([], { publishedAt: T0 + 100 }, 1000);
    expect(ledger.get(KEY)).toMatchObject({ state: undefined, failure: { reason: 'BaseRestarted' }, retryAt: 0 });
  });

  it('has lost the command that it was given before, which is no failure', () => {
    const ledger = activeLedger();
    ledger.installSent(makeSpec('biz2:1'), 0);
    ledger.baseRestarted(T0);
    ledger.takeList([], { publishedAt: T0 + 100 }, 1000);
    expect(ledger.get('biz2:1')).toMatchObject({
      state: undefined,
      inFlight: undefined,
      failures: 0,
      failure: undefined,
    });
  });

  it('is not judged by a list from before', () => {
    const ledger = activeLedger();
    ledger.takeList(makeList(KEY), { publishedAt: T0 }, 0);
    ledger.baseRestarted(T0 + 1000);
    expect(ledger.takeList(makeList(KEY), { publishedAt: T0 + 500 }, 1000)).toBe(false);
    expect(ledger.isKnown).toBe(false);
  });

  it('has what it lists', () => {
    const ledger = activeLedger();
    ledger.baseRestarted(undefined);
    ledger.takeList(makeList(KEY), {}, 1000);
    expect(ledger.get(KEY)).toMatchObject({ state: 'ACTIVATED', failure: undefined });
  });
});

describe('an answer that is heard again', () => {
  const at = (publishedAt: number) => ({ publishedAt: T0 + publishedAt });

  it('does not end the next command for the module, nor bring back one that is gone', () => {
    const ledger = makeLedger();
    ledger.takeList([], at(0), 0);
    ledger.installSent(makeSpec(KEY), 1_000);
    expect(ledger.takeResult(makeResult('install', KEY), at(1_000), 1_100)).toBeDefined();
    ledger.commandSent('uninstall', idOf(KEY), 2_000);
    ledger.takeResult(makeResult('uninstall', KEY), at(2_000), 2_100);
    expect(ledger.takeResult(makeResult('install', KEY), at(1_000), 2_200)).toBeUndefined();
    expect(ledger.get(KEY)?.state).toBeUndefined();
    ledger.forgetUnless(() => false);
    ledger.installSent(makeSpec(KEY), 3_000);
    expect(ledger.takeResult(makeResult('install', KEY), at(1_000), 3_100)).toBeUndefined();
    expect(ledger.get(KEY)?.inFlight?.command).toBe('install');
    expect(ledger.takeResult(makeResult('install', KEY), at(4_000), 4_100)).toBeDefined();
  });

  it('is news again from a process that was started anew, or from a base without a clock', () => {
    const ledger = makeLedger();
    ledger.takeList([], at(0), 0);
    ledger.installSent(makeSpec(KEY), 1_000);
    ledger.takeResult(makeResult('install', KEY), at(5_000), 1_100);
    ledger.baseRestarted(T0 + 4_000);
    ledger.takeList([], at(4_000), 1_200);
    ledger.installSent(makeSpec(KEY), 1_300);
    expect(ledger.takeResult(makeResult('install', KEY), at(4_500), 1_400)).toBeDefined();
    ledger.commandSent('uninstall', idOf(KEY), 1_500);
    expect(ledger.takeResult(makeResult('uninstall', KEY), {}, 1_600)).toBeDefined();
  });
});
