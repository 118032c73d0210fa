import { beforeEach, describe, expect, it } from 'vitest';
import type { ModuleLedger } from '../../../src/module/module-ledger.ts';
import { idOf, makeLedger, makeList, makeResult, makeSpec } from '../../support/builders.ts';

const OLD = 'biz1:1';
const NEW = 'biz1:2';
let ledger: ModuleLedger;

beforeEach(() => {
  ledger = makeLedger();
});

const stateOf = (key: string) => ledger.get(key)?.state;
const list = (lines: string[], askedAt: number, now = askedAt): boolean => {
  ledger.listAsked(askedAt);
  return ledger.takeList(makeList(...lines), { askedAt }, now);
};
const answer =
  (...[command, key, more]: Parameters<typeof makeResult>) =>
  (now: number) =>
    ledger.takeResult(makeResult(command, key, more), {}, now);

describe('a list that answers a question (HTTP)', () => {
  it('says nothing of a module that the base has answered about since the question', () => {
    list([], 0);
    ledger.installSent(makeSpec(OLD), 1_000);
    answer('install', OLD)(3_000);
    ledger.takeList([], { askedAt: 2_000 }, 4_000);
    ledger.takeList([], { askedAt: 2_500 }, 5_000);
    expect(ledger.get(OLD)).toMatchObject({ state: 'ACTIVATED', missingSince: undefined });
  });

  it('does not bring back what was uninstalled since', () => {
    list([`${OLD} ACTIVATED`], 0);
    ledger.commandSent('uninstall', idOf(OLD), 1_000);
    answer('uninstall', OLD)(3_000);
    ledger.takeList(makeList(`${OLD} ACTIVATED`), { askedAt: 2_000 }, 4_000);
    expect(stateOf(OLD)).toBeUndefined();
  });

  it('says all about the other modules', () => {
    list([`${OLD} ACTIVATED`], 0);
    ledger.installSent(makeSpec('biz2:1'), 1_000);
    answer('install', 'biz2:1')(3_000);
    ledger.takeList(makeList(`${OLD} STOPPED`), { askedAt: 2_000 }, 4_000);
    expect([stateOf(OLD), stateOf('biz2:1')]).toEqual(['STOPPED', 'ACTIVATED']);
  });

  it('is believed about absence when it was asked for after that was first seen, not when it came after', () => {
    list([`${OLD} ACTIVATED`], 0);
    ledger.takeList([], { askedAt: 10_000 }, 12_000);
    ledger.takeList([], { askedAt: 11_000 }, 13_000);
    expect(stateOf(OLD)).toBe('ACTIVATED');
    ledger.takeList([], { askedAt: 12_500 }, 14_000);
    expect(stateOf(OLD)).toBeUndefined();
  });

  it('is as old as its question', () => {
    ledger.listAsked(5_000);
    ledger.takeList([], { askedAt: 3_000 }, 6_000);
    expect([ledger.listedAt, ledger.askedAt]).toEqual([3_000, 5_000]);
  });

  it('counts as asked for last where the transport does not tell (MQTT)', () => {
    ledger.listAsked(5_000);
    ledger.takeList([], {}, 6_000);
    expect(ledger.listedAt).toBe(5_000);
  });
});

describe('a switch', () => {
  beforeEach(() => {
    list([`${OLD} ACTIVATED`, `${NEW} DEACTIVATED`], 0);
    ledger.commandSent('switch', idOf(NEW), 1_000);
  });

  it('that is done makes the version active, and the next list tells what became of the others', () => {
    expect(answer('switch', NEW)(2_000)).toMatchObject({ command: 'switch', result: 'done', tookMs: 1_000 });
    expect(ledger.get(NEW)).toMatchObject({ state: 'ACTIVATED', inFlight: undefined });
    expect(ledger.get(NEW)?.unconfirmed).toBeTruthy();
    list([`${OLD} DEACTIVATED`, `${NEW} ACTIVATED`], 3_000);
    expect([stateOf(OLD), stateOf(NEW)]).toEqual(['DEACTIVATED', 'ACTIVATED']);
    expect(ledger.get(NEW)?.unconfirmed).toBeFalsy();
    expect(ledger.get(OLD)).toMatchObject({ failure: undefined, failures: 0 });
  });

  it('that failed keeps what is active, and waits before the next try', () => {
    answer('switch', NEW, { outcome: 'failed', message: 'no' })(2_000);
    expect(ledger.get(NEW)).toMatchObject({
      state: 'DEACTIVATED',
      inFlight: undefined,
      failure: { reason: 'SwitchError', message: 'switchBiz failed: no' },
      retryAt: 12_000,
    });
  });

  it('that is not answered has failed after a minute', () => {
    expect(ledger.expire(60_999)).toEqual([]);
    expect(ledger.expire(61_000)).toMatchObject([{ command: 'switch', result: 'timeout' }]);
    expect(ledger.get(NEW)?.failure?.reason).toBe('SwitchError');
  });

  it('whose answer was lost is over when a list shows the version active', () => {
    list([`${OLD} DEACTIVATED`, `${NEW} ACTIVATED`], 2_000);
    expect(ledger.get(NEW)).toMatchObject({ state: 'ACTIVATED', inFlight: undefined, failure: undefined });
  });

  it('that was perhaps lost itself is over when a later list shows the version as it was', () => {
    list([`${OLD} ACTIVATED`, `${NEW} DEACTIVATED`], 2_000);
    expect(ledger.get(NEW)?.inFlight).toBeDefined();
    ledger.sendFailed(idOf(NEW), true, 3_000);
    list([`${OLD} ACTIVATED`, `${NEW} DEACTIVATED`], 4_000);
    expect(ledger.get(NEW)).toMatchObject({ state: 'DEACTIVATED', inFlight: undefined });
  });

  it('of a module that is gone is over at the second list without it', () => {
    list([`${OLD} ACTIVATED`], 2_000);
    list([`${OLD} ACTIVATED`], 3_000);
    expect(ledger.get(NEW)).toMatchObject({ state: undefined, inFlight: undefined });
  });

  it('that is answered late and twice changes nothing more', () => {
    answer('switch', NEW)(2_000);
    list([`${OLD} DEACTIVATED`, `${NEW} ACTIVATED`], 3_000);
    expect(answer('switch', NEW)(4_000)).toBeUndefined();
    expect(ledger.get(NEW)).toMatchObject({ state: 'ACTIVATED', failures: 0 });
  });

  it('that is answered as done, while a later list shows it was not, has failed', () => {
    answer('switch', NEW)(2_000);
    list([`${OLD} ACTIVATED`, `${NEW} DEACTIVATED`], 3_000);
    expect(ledger.get(NEW)).toMatchObject({ state: 'DEACTIVATED', failure: { reason: 'SwitchError' } });
    expect(ledger.get(NEW)?.retryAt).toBeGreaterThan(3_000);
  });
});

describe('a version that has gone', () => {
  beforeEach(() => {
    list([`${OLD} ACTIVATED`], 0);
    ledger.installSent(makeSpec(NEW), 1_000);
    answer('install', NEW, { outcome: 'failed', message: 'Child name [biz1] is not unique' })(2_000);
    ledger.commandSent('uninstall', idOf(OLD), 3_000);
  });

  it('ends the wait of another version whose install failed: it may have been in its way', () => {
    expect(ledger.get(NEW)?.retryAt).toBe(12_000);
    answer('uninstall', OLD)(4_000);
    expect(ledger.get(NEW)).toMatchObject({ retryAt: 4_000, failure: { reason: 'RunContainerError' } });
  });

  it('is told by a list as well', () => {
    list([], 4_000);
    expect(ledger.get(NEW)?.retryAt).toBeLessThanOrEqual(4_000);
  });

  it('does nothing for modules of another name', () => {
    ledger.installSent(makeSpec('biz2:1'), 3_000);
    answer('install', 'biz2:1', { outcome: 'failed', message: 'no' })(3_500);
    answer('uninstall', OLD)(4_000);
    expect(ledger.get('biz2:1')?.retryAt).toBe(13_500);
  });

  it('does nothing when it could not be uninstalled', () => {
    answer('uninstall', OLD, { outcome: 'failed', message: 'in use' })(4_000);
    expect(ledger.get(NEW)?.retryAt).toBe(12_000);
  });
});
