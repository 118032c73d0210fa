import { describe, expect, it } from 'vitest';
import type { ModuleLedger } from '../../../src/module/module-ledger.ts';
import { LEDGER_OPTIONS, makeLedger, makeList, makeResult, makeSpec } from '../../support/builders.ts';

const OWN = 'orders:2.0';
const OTHER = 'mine:1.0';
const { installDeadlineMs } = LEDGER_OPTIONS;
/** An install of an earlier controller has ended by then. */
const LATER = installDeadlineMs;
const REPEATED = makeResult('install', OWN, { outcome: 'already', code: 'REPEAT_BIZ' });
const BROUGHT = makeResult('install', OTHER, {
  outcome: 'failed',
  code: 'WRONG_MODULE',
  brought: makeList(OWN),
});

function knownSince(now: number, ...modules: string[]): ModuleLedger {
  const ledger = makeLedger();
  ledger.takeList(makeList(...modules), {}, now);
  return ledger;
}

const intruderOf = (ledger: ModuleLedger) => ledger.get(OWN)?.intruder;

describe('a module that the jar of another one has brought', () => {
  it('is known from the answer to that install, before a list has it', () => {
    const ledger = knownSince(0);
    ledger.installSent(makeSpec(OTHER), 1);
    ledger.takeResult(BROUGHT, {}, 2);
    expect(ledger.get(OWN)).toMatchObject({ intruder: 'wrong-jar', state: 'ACTIVATED', fingerprint: undefined });
    expect(ledger.get(OTHER)).toMatchObject({ state: undefined, intruder: undefined });
    ledger.takeList(makeList(OWN), {}, 3);
    expect(intruderOf(ledger)).toBe('wrong-jar');
  });

  it('is known also when its own install was taken for done, from REPEAT_BIZ or from a list', () => {
    for (const end of [
      (ledger: ModuleLedger) => ledger.takeResult(REPEATED, {}, 2),
      (ledger: ModuleLedger) => ledger.takeList(makeList(OWN), {}, 2),
    ]) {
      const ledger = knownSince(0);
      ledger.installSent(makeSpec(OWN), 1);
      end(ledger);
      expect(intruderOf(ledger)).toBeUndefined();
      ledger.takeResult(BROUGHT, {}, 3);
      expect(intruderOf(ledger)).toBe('wrong-jar');
    }
  });

  it('is none any more when it has gone, and its own install has brought it', () => {
    const ledger = knownSince(0);
    ledger.takeResult(BROUGHT, {}, 1);
    ledger.commandSent('uninstall', makeSpec(OWN), 2);
    ledger.takeResult(makeResult('uninstall', OWN), {}, 3);
    expect(ledger.get(OWN)).toMatchObject({ state: undefined, intruder: undefined });
    ledger.installSent(makeSpec(OWN), 4);
    ledger.takeResult(makeResult('install', OWN), {}, 5);
    expect(ledger.get(OWN)).toMatchObject({ state: 'ACTIVATED', intruder: undefined });
  });

  it('is not kept where a base names more modules than there is room for', () => {
    const ledger = knownSince(0, ...Array.from({ length: 3_995 }, (_, index) => `m${index}:1`));
    const brought = makeList(...Array.from({ length: 10 }, (_, index) => `x${index}:1`));
    ledger.takeResult({ ...BROUGHT, brought }, {}, 1);
    expect(ledger.recordCount).toBe(3_995);
  });
});

describe('REPEAT_BIZ', () => {
  function answered(prepare: (ledger: ModuleLedger) => void, now = LATER): string | undefined {
    const ledger = knownSince(0);
    prepare(ledger);
    ledger.installSent(makeSpec(OWN), now);
    ledger.takeResult(REPEATED, {}, now + 1);
    return intruderOf(ledger);
  }

  it('for the only install that was sent says that something else has brought the module', () => {
    expect(answered(() => {})).toBe('unknown');
  });

  it('may be about the install of an earlier controller, for as long as one may be in work', () => {
    expect(answered(() => {}, LATER - 2)).toBeUndefined();
  });

  it.each<[string, (ledger: ModuleLedger) => void]>([
    [
      'whose deadline was over',
      (ledger) => {
        ledger.installSent(makeSpec(OWN), 1);
        ledger.expire(1 + installDeadlineMs);
      },
    ],
    [
      'that may have arrived',
      (ledger) => {
        ledger.installSent(makeSpec(OWN), 1);
        ledger.sendFailed(makeSpec(OWN), true, 2);
        ledger.expire(1 + installDeadlineMs);
      },
    ],
  ])('may be about an install before it %s', (_, prepare) => {
    expect(answered(prepare)).toBeUndefined();
  });

  it('is not about an install before it that has failed', () => {
    const failed = makeResult('install', OWN, { outcome: 'failed' });
    const prepare = (ledger: ModuleLedger): void => {
      ledger.installSent(makeSpec(OWN), 1);
      ledger.takeResult(failed, {}, 2);
    };
    expect(answered(prepare)).toBe('unknown');
  });

  it('says nothing when the link was lost meanwhile: the command may have come twice', () => {
    const ledger = knownSince(0);
    ledger.installSent(makeSpec(OWN), LATER);
    ledger.linkLost();
    ledger.takeResult(REPEATED, {}, LATER + 1);
    expect(intruderOf(ledger)).toBeUndefined();
  });

  it('says nothing after the answer that the install is done: that is a second answer', () => {
    const ledger = knownSince(0);
    ledger.installSent(makeSpec(OWN), LATER);
    ledger.takeResult(makeResult('install', OWN), {}, LATER + 1);
    ledger.takeResult(REPEATED, {}, LATER + 2);
    expect(intruderOf(ledger)).toBeUndefined();
  });

  it('counts also after a list was taken for the end of the install', () => {
    const ledger = knownSince(0);
    ledger.installSent(makeSpec(OWN), LATER);
    ledger.takeList(makeList(OWN), {}, LATER + 1);
    expect(ledger.get(OWN)).toMatchObject({ inFlight: undefined, intruder: undefined });
    ledger.takeResult(REPEATED, {}, LATER + 2);
    expect(intruderOf(ledger)).toBe('unknown');
  });
});

describe('a module that a list has and that nobody was told to install', () => {
  it.each<[string, number, (ledger: ModuleLedger) => void, 'unknown' | undefined]>([
    ['while the base was watched', LATER, () => {}, 'unknown'],
    ['while an install of an earlier controller may be in work', LATER - 1, () => {}, undefined],
    ['after the link was lost', LATER, (ledger) => ledger.linkLost(), undefined],
    ['after the base restarted', LATER, (ledger) => ledger.baseRestarted(undefined), undefined],
  ])('and came %s', (_, now, prepare, intruder) => {
    const ledger = knownSince(0);
    prepare(ledger);
    ledger.takeList(makeList(OWN), {}, now);
    expect(ledger.get(OWN)).toMatchObject({ state: 'ACTIVATED', intruder });
    ledger.takeList(makeList(OWN), {}, now + 1);
    expect(intruderOf(ledger)).toBe(intruder);
  });

  it('and was there in the first list is none', () => {
    const ledger = knownSince(0, OWN);
    ledger.takeList(makeList(OWN), {}, LATER);
    expect(intruderOf(ledger)).toBeUndefined();
  });
});
