import { describe, expect, it } from 'vitest';
import type { ModuleLedger } from '../../../src/module/module-ledger.ts';
import { idOf, makeLedger, makeList, makeResult, makeSpec } from '../../support/builders.ts';

/** A base with version 1 active, and an install of version 2 under way. */
function installing(): ModuleLedger {
  const ledger = makeLedger();
  ledger.takeList(makeList('biz1:1'), {}, 0);
  ledger.installSent(makeSpec('biz1:2'), 1);
  return ledger;
}

const BOTH = (first: string, second: string) => makeList(`biz1:1 ${first}`, `biz1:2 ${second}`);

describe('whether a base makes a version active by its install', () => {
  it('is not known before an install beside an active version has ended', () => {
    const ledger = installing();
    expect(ledger.activatesNew).toBeUndefined();
    ledger.takeList(BOTH('ACTIVATED', 'RESOLVED'), {}, 2);
    expect(ledger.activatesNew).toBeUndefined();
  });

  it.each([
    ['DEACTIVATED', 'ACTIVATED', true],
    ['ACTIVATED', 'DEACTIVATED', false],
  ])('is shown by the list after it, answered or not: %s, %s', (first, second, shown) => {
    for (const isAnswered of [true, false]) {
      const ledger = installing();
      if (isAnswered) ledger.takeResult(makeResult('install', 'biz1:2'), {}, 2);
      expect(ledger.activatesNew).toBeUndefined();
      ledger.takeList(BOTH(first, second), {}, 3);
      expect(ledger.activatesNew).toBe(shown);
    }
  });

  it('is not shown by a switch, nor by an install beside a version that was not active', () => {
    const ledger = makeLedger();
    ledger.takeList(BOTH('ACTIVATED', 'DEACTIVATED'), {}, 0);
    ledger.commandSent('switch', idOf('biz1:2'), 1);
    ledger.takeResult(makeResult('switch', 'biz1:2'), {}, 2);
    ledger.takeList(BOTH('DEACTIVATED', 'ACTIVATED'), {}, 3);
    ledger.installSent(makeSpec('biz1:3'), 4);
    ledger.takeList([...BOTH('ACTIVATED', 'DEACTIVATED'), ...makeList('biz1:3 DEACTIVATED')], {}, 5);
    expect(ledger.activatesNew).toBeUndefined();
  });

  it('is not shown by two installs at a time: the one that ended last may have taken over', () => {
    const ledger = makeLedger();
    ledger.takeList([], {}, 0);
    for (const key of ['biz1:1', 'biz1:2']) ledger.installSent(makeSpec(key), 1);
    ledger.takeResult(makeResult('install', 'biz1:1'), {}, 2);
    expect(ledger.get('biz1:1')?.unconfirmed).toBe('install');
    ledger.takeList(BOTH('DEACTIVATED', 'ACTIVATED'), {}, 3);
    expect(ledger.activatesNew).toBeUndefined();
  });

  it('is forgotten with the process of the base', () => {
    const ledger = installing();
    ledger.takeList(BOTH('DEACTIVATED', 'ACTIVATED'), {}, 3);
    ledger.baseRestarted(undefined);
    expect(ledger.activatesNew).toBeUndefined();
  });
});
