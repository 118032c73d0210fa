import { describe, expect, it } from 'vitest';
import type { ModuleLedger } from '../../../src/module/module-ledger.ts';
import { fingerprintOf } from '../../../src/module/module-record.ts';
import { idOf, makeLedger, makeList, makeResult, makeSpec } from '../../support/builders.ts';

const KEY = 'biz1:1.0.0';

/** A base whose list was read: nothing on it. */
function emptyLedger(): ModuleLedger {
  const ledger = makeLedger();
  ledger.takeList([], {}, 0);
  return ledger;
}

function activeLedger(): ModuleLedger {
  const ledger = emptyLedger();
  ledger.installSent(makeSpec(KEY), 0);
  ledger.takeResult(makeResult('install', KEY), {}, 100);
  return ledger;
}

describe('what is known of a base', () => {
  it('is nothing before its list was read, whatever else it says', () => {
    const ledger = makeLedger();
    ledger.takeResult(makeResult('install', KEY), { publishedAt: 1 }, 0);
    expect(ledger.isKnown).toBe(false);
    ledger.listAsked(3);
    ledger.takeList(makeList(KEY), { publishedAt: 1 }, 5);
    expect(ledger.isKnown).toBe(true);
    expect(ledger.listedAt).toBe(3);
    expect(ledger.get(KEY)?.state).toBe('ACTIVATED');
  });

  it('is nothing again after the link was lost or the base restarted, until the next list', () => {
    for (const lose of [(it: ModuleLedger) => it.linkLost(), (it: ModuleLedger) => it.baseRestarted(undefined)]) {
      const ledger = activeLedger();
      lose(ledger);
      expect(ledger.isKnown).toBe(false);
      ledger.takeList(makeList(KEY), {}, 200);
      expect(ledger.isKnown).toBe(true);
    }
  });

  it('is that it restarts, from the report of a restart until the next list', () => {
    const ledger = makeLedger();
    const steps = [
      () => {},
      () => ledger.takeList([], {}, 0),
      () => ledger.baseRestarted(undefined),
      () => ledger.takeList([], {}, 1),
    ];
    const isRestarting = steps.map((step) => {
      step();
      return ledger.isRestarting;
    });
    expect(isRestarting).toEqual([false, false, true, false]);
  });

  it('keeps no module that is gone and that nobody asks about', () => {
    const ledger = emptyLedger();
    for (const key of ['a:1', 'b:1', 'c:1', 'd:1']) ledger.installSent(makeSpec(key), 0);
    ledger.takeResult(makeResult('install', 'a:1'), {}, 1);
    for (const key of ['b:1', 'c:1']) ledger.takeResult(makeResult('install', key, { outcome: 'failed' }), {}, 1);
    ledger.forgetUnless((key) => key === 'c:1');
    expect([...ledger.records()].map(({ id }) => id.name)).toEqual(['a', 'c', 'd']);
  });
});

describe('the answer to an install', () => {
  it('makes the module active, as what we sent', () => {
    const ledger = emptyLedger();
    const spec = makeSpec(KEY, { args: ['--x'] });
    ledger.installSent(spec, 0);
    const end = ledger.takeResult(makeResult('install', KEY), {}, 250);
    expect(end).toEqual({ command: 'install', id: idOf(KEY), result: 'done', tookMs: 250 });
    expect(ledger.get(KEY)).toMatchObject({ state: 'ACTIVATED', since: 250, failures: 0, inFlight: undefined });
    expect(ledger.get(KEY)?.fingerprint).toBe(fingerprintOf(spec));
  });

  it('is taken from the list when it was lost', () => {
    for (const state of ['ACTIVATED', 'DEACTIVATED']) {
      const ledger = emptyLedger();
      ledger.installSent(makeSpec(KEY), 0);
      ledger.takeList(makeList(`${KEY} ${state}`), {}, 100);
      expect(ledger.get(KEY)).toMatchObject({ state, inFlight: undefined, fingerprint: fingerprintOf(makeSpec(KEY)) });
    }
  });

  it('tells the state where the base says it', () => {
    const ledger = emptyLedger();
    ledger.installSent(makeSpec(KEY), 0);
    ledger.takeResult(makeResult('install', KEY, { state: 'DEACTIVATED' }), {}, 1);
    expect(ledger.get(KEY)?.state).toBe('DEACTIVATED');
  });

  it('is not trusted in its state while another version is on the base: the list tells', () => {
    const ledger = emptyLedger();
    ledger.takeList(makeList('biz1:0.9.0'), {}, 0);
    ledger.installSent(makeSpec(KEY), 0);
    ledger.takeResult(makeResult('install', KEY), {}, 1);
    expect(ledger.get(KEY)?.unconfirmed).toBe('install');
    ledger.takeList(makeList('biz1:0.9.0', `${KEY} DEACTIVATED`), {}, 2);
    expect(ledger.get(KEY)).toMatchObject({ unconfirmed: undefined, state: 'DEACTIVATED' });
  });

  it('that says REPEAT_BIZ is no failure, and no proof of a running module', () => {
    const ledger = emptyLedger();
    ledger.installSent(makeSpec(KEY), 0);
    const end = ledger.takeResult(makeResult('install', KEY, { outcome: 'already' }), {}, 1);
    expect(end?.result).toBe('done');
    expect(ledger.get(KEY)).toMatchObject({
      failures: 0,
      failure: undefined,
      inFlight: undefined,
      unconfirmed: 'install',
    });
    expect(ledger.get(KEY)?.state).not.toBe('ACTIVATED');
  });

  it('that says busy is no failure and no end: lists decide, and nothing is sent for 5 s', () => {
    const ledger = emptyLedger();
    ledger.installSent(makeSpec(KEY), 0);
    expect(ledger.takeResult(makeResult('install', KEY, { outcome: 'busy' }), {}, 1000)).toBeUndefined();
    expect(ledger.get(KEY)).toMatchObject({ failures: 0, retryAt: 6000, inFlight: { uncertain: true } });
    ledger.takeList(makeList(`${KEY} RESOLVED`), {}, 2000);
    expect(ledger.get(KEY)?.inFlight?.command).toBe('install');
    ledger.takeList(makeList(KEY), {}, 3000);
    expect(ledger.get(KEY)).toMatchObject({ inFlight: undefined, state: 'ACTIVATED', failure: undefined, retryAt: 0 });
  });

  it('that says busy to an uninstall: the base works on it until its deadline, and no other is sent', () => {
    const ledger = emptyLedger();
    ledger.takeList(makeList(KEY), {}, 0);
    ledger.commandSent('uninstall', idOf(KEY), 0);
    ledger.takeResult(makeResult('uninstall', KEY, { outcome: 'busy' }), {}, 1);
    ledger.takeList(makeList(`${KEY} DEACTIVATED`), { askedAt: 50_000 }, 50_000);
    expect(ledger.get(KEY)?.inFlight?.command).toBe('uninstall');
    ledger.expire(60_000);
    expect(ledger.get(KEY)).toMatchObject({ inFlight: undefined, failure: { reason: 'KillContainerError' } });
  });

  it('without a name is about the only command it can be about', () => {
    const ledger = emptyLedger();
    const failed = makeResult('install', KEY, { outcome: 'failed', module: undefined, message: 'bizUrl is blank' });
    ledger.installSent(makeSpec(KEY), 0);
    expect(ledger.takeResult(failed, {}, 1)?.id).toEqual(idOf(KEY));
    ledger.installSent(makeSpec(KEY), 2);
    ledger.installSent(makeSpec('biz2:1'), 2);
    expect(ledger.takeResult(failed, {}, 3)).toBeUndefined();
    expect(ledger.get(KEY)?.inFlight).toBeDefined();
  });

  it('about a module that nobody asked for changes nothing', () => {
    const ledger = emptyLedger();
    expect(ledger.takeResult(makeResult('install', 'other:1'), {}, 1)).toBeUndefined();
    expect([...ledger.records()]).toEqual([]);
  });
});

describe('the answer to an uninstall', () => {
  it.each(['done', 'already'] as const)('that says %s means that the module is gone', (outcome) => {
    const ledger = activeLedger();
    ledger.commandSent('uninstall', idOf(KEY), 1000);
    const end = ledger.takeResult(makeResult('uninstall', KEY, { outcome }), {}, 1500);
    expect(end).toMatchObject({ result: 'done', tookMs: 500 });
    expect(ledger.get(KEY)).toMatchObject({ state: undefined, inFlight: undefined, fingerprint: undefined });
  });

  it('that failed keeps the module and waits before the next try', () => {
    const ledger = activeLedger();
    ledger.commandSent('uninstall', idOf(KEY), 1000);
    ledger.takeResult(makeResult('uninstall', KEY, { outcome: 'failed', message: 'in use' }), {}, 2000);
    expect(ledger.get(KEY)).toMatchObject({
      state: 'ACTIVATED',
      inFlight: undefined,
      failure: { reason: 'KillContainerError', message: 'in use' },
      retryAt: 12_000,
    });
    ledger.takeList(makeList(KEY), {}, 3000);
    expect(ledger.get(KEY)).toMatchObject({ failure: { reason: 'KillContainerError' }, retryAt: 12_000 });
  });

  it('that comes late does not end the install that was sent since', () => {
    const ledger = activeLedger();
    ledger.commandSent('uninstall', idOf(KEY), 1000);
    ledger.takeList([], {}, 2000);
    ledger.installSent(makeSpec(KEY), 3000);
    ledger.takeResult(makeResult('uninstall', KEY), {}, 4000);
    expect(ledger.get(KEY)?.inFlight?.command).toBe('install');
  });

  it('is taken from a list without the module when it was lost', () => {
    const ledger = activeLedger();
    ledger.commandSent('uninstall', idOf(KEY), 1000);
    ledger.listAsked(2000);
    ledger.takeList([], {}, 2010);
    expect(ledger.get(KEY)).toMatchObject({ state: undefined, inFlight: undefined, failures: 0, failure: undefined });
  });

  it('is not taken from a list that was asked for before: it may be from before the install had ended', () => {
    const ledger = activeLedger();
    ledger.listAsked(900);
    ledger.commandSent('uninstall', idOf(KEY), 1000);
    ledger.takeList([], {}, 1010);
    expect(ledger.get(KEY)?.inFlight?.command).toBe('uninstall');
  });
});

describe('a module that fails to install', () => {
  const failed = makeResult('install', KEY, { outcome: 'failed', message: 'java.lang.Error' });

  it('waits 10 s before the next try, doubled each time up to 5 min', () => {
    const ledger = emptyLedger();
    const waits: number[] = [];
    for (let times = 0; times < 7; times++) {
      ledger.installSent(makeSpec(KEY), 0);
      ledger.takeResult(failed, {}, 0);
      waits.push(ledger.get(KEY)?.retryAt ?? 0);
    }
    expect(waits).toEqual([10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
  });

  it('has failed once, also when the base then lists it as BROKEN, and keeps the base’s words', () => {
    const ledger = emptyLedger();
    ledger.installSent(makeSpec(KEY), 0);
    ledger.takeResult(failed, {}, 0);
    ledger.takeList(makeList(`${KEY} BROKEN`), {}, 1000);
    expect(ledger.get(KEY)).toMatchObject({ state: 'BROKEN', failures: 1, failure: { message: 'java.lang.Error' } });
  });

  it('has no failure any more once a list shows it active', () => {
    const ledger = emptyLedger();
    ledger.installSent(makeSpec(KEY), 0);
    ledger.takeResult(failed, {}, 0);
    ledger.takeList(makeList(KEY), {}, 1000);
    expect(ledger.get(KEY)).toMatchObject({ state: 'ACTIVATED', failure: undefined, retryAt: 0 });
  });
});
